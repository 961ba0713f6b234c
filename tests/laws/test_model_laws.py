"""Layout, padding and cache change nothing: whatever the variant, the same numbers come out."""

from dataclasses import replace

import pytest
import torch

from regard.data.batch import IGNORED, PairBatch, Side
from regard.errors import UsageError
from regard.models.build import translator
from regard.models.configs import EncoderDecoder
from regard.nn.attention.biases import ALiBi, T5Buckets
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.lowrank import Linformer
from regard.nn.attention.multihead import Attention
from regard.nn.attention.normalise import Sparsemax
from regard.nn.attention.patterns import Window
from regard.nn.attention.scores import Additive, Bilinear, Cosine, Gaussian, ScaledDot
from regard.nn.attention.sparse import BigBird, BlockLocal, Dilated
from regard.nn.cache import Growing
from regard.nn.embed import Embedding
from regard.nn.experts import Experts, NoisyTopK, Switch, TopTwo
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Binary, Integer, Learned, NoPositions, Rotary, Sinusoid
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer
from regard.nn.view import Tokens, View
from toy_layouts import packed, padded

SOURCES = [[5, 6, 7, 8, 2], [9, 2], [5, 11, 2]]
TARGETS = [[12, 7, 2], [6, 8, 9, 10, 11, 2], [4, 2]]

SMALL = Transformer(layers=2, heads=4, dropout=0.0, feed_forward=FeedForward(d_ff=22))
VARIANTS = {
    "paper": {},
    "pre-norm": {"placement": "pre"},
    "grouped": {"key_value_heads": 2},
    "narrow": {"d_head": 3},
    "gated": {"feed_forward": FeedForward(d_ff=22, gated=True, activation="silu")},
    "rotary": {"own": Attention(rotation=Rotary())},
    "alibi": {"own": Attention(bias=ALiBi())},
    "buckets": {"own": Attention(bias=T5Buckets())},
    "window": {"own": Attention(pattern=(Window(1),))},
    "bilinear": {"cross": Attention(score=Bilinear())},
    "additive": {"own": Attention(score=Additive()), "cross": Attention(score=Additive())},
    "cosine": {"cross": Attention(score=Cosine())},
    "gaussian": {"own": Attention(score=Gaussian())},
    "experts": {"feed_forward": Experts(count=5, router=NoisyTopK(chosen=3), expert=FeedForward(d_ff=7))},
    "switch": {"feed_forward": Experts(count=3, router=Switch(capacity=1.0), expert=FeedForward(d_ff=7))},
    "top-2": {"feed_forward": Experts(count=3, router=TopTwo(), expert=FeedForward(d_ff=7))},
}
ATTENTIONS = {
    "alone": NoAttention(),
    "every-step": NoAttention(every_step=True),
    "bahdanau": Bahdanau(score=Additive(7)),
    "bahdanau-split": Bahdanau(score=Additive(7), keys="split"),
    "luong": Luong(),
    "luong-unfed": Luong(input_feeding=False),
    "luong-projected": Luong(score=Cosine(), keys="projected", normalise=Sparsemax()),
}
OTHERS = {  # encoder, decoder, further encoders
    "rnn": (Recurrent(cell="rnn"), Recurrent(cell="rnn", attention=NoAttention())),
    "lstm": (Recurrent(cell="lstm", layers=2), Recurrent(cell="lstm", layers=2, attention=Luong(score=Additive(7)))),
    **{
        name: (Recurrent(bidirectional=True, width=6), Recurrent(layers=2, width=10, attention=attention))
        for name, attention in ATTENTIONS.items()
    },
    "convolutional": (Convolutional(layers=3, width=6, dropout=0.0), Convolutional(layers=3, width=6, dropout=0.0)),
    "plain convolutions": (
        Convolutional(gated=False, skip=False, kernel=5, dropout=0.0),
        Convolutional(layers=2, kernel=2, dilated=True, score=Additive(7), dropout=0.0),
    ),
    "one pair of maps": (Convolutional(dropout=0.0), Convolutional(shared_maps=True, dropout=0.0)),
    "convolutional, lstm": (Convolutional(dropout=0.0), Recurrent(cell="lstm")),
    "gru, convolutional": (Recurrent(bidirectional=True, output=16), Convolutional(dropout=0.0)),
    "two encoders, transformer": (SMALL, SMALL, Recurrent(output=16)),
    "two encoders, gru": (Recurrent(bidirectional=True), Recurrent(attention=Luong()), Convolutional(layers=2, dropout=0.0)),
    "two encoders, alone": (Recurrent(), Recurrent(layers=2, attention=NoAttention(every_step=True)), SMALL),
    "two encoders, convolutional": (Convolutional(layers=2, dropout=0.0), Convolutional(layers=2, dropout=0.0), SMALL),
    "gru, lstm": (Recurrent(layers=3, width=6, output=16), Recurrent(cell="lstm", output=16)),
    "transformer, gru": (SMALL, Recurrent(layers=2)),
    "longformer, alternating": (
        replace(SMALL, own=Longformer(reach=1, first=1, at=(3,))),
        replace(SMALL, cycle=(Attention(pattern=(BlockLocal(4),)), Compressed(size=2)), layers=3),
    ),
    "alternating, compressed": (
        replace(SMALL, cycle=(Attention(pattern=(BlockLocal(2),)), Compressed(size=2, null=True)), key_value_heads=2),
        replace(SMALL, own=Compressed(null=True, attention=Attention(bias=ALiBi()))),
    ),
    "linformer": (
        replace(SMALL, own=Linformer(rank=3, length=17, sharing="layerwise")),
        replace(SMALL, cross=Linformer(rank=3, length=9, sharing="none"), key_value_heads=2),
    ),
    "bigbird, dilated": (
        replace(SMALL, own=Attention(pattern=(BigBird(1, random=1),))),
        replace(SMALL, own=Attention(pattern=(Dilated(1, (1, 2)),))),
    ),
    "lstm, transformer": (Recurrent(cell="lstm", layers=2, bidirectional=True, output=16), SMALL),
}
POSITIONS = {"sinusoid": Sinusoid(), "integer": Integer(), "binary": Binary(6), "learned": Learned(length=17), "none": NoPositions()}


def model_of(variant="paper", positions="sinusoid", **changes):
    torch.manual_seed(3)
    if variant in OTHERS:
        encoder, decoder, *more = OTHERS[variant]
    else:
        encoder = decoder = replace(SMALL, **(VARIANTS[variant] | changes))
        more = ()
    config = EncoderDecoder(
        d_model=16,
        encoder=encoder,
        decoder=decoder,
        more_encoders=tuple(more),
        embedding=Embedding(positions=POSITIONS[positions], dropout=0.0),
        tie="none",
        source_vocabulary=13,
        target_vocabulary=13,
    )
    return translator(config).double().eval()


def batch_of(sources, targets, layout=padded, **padding):
    inputs = [[1, *row[:-1]] for row in targets]
    source, target, labels = layout(sources, **padding), layout(inputs, **padding), layout(targets, **padding)
    labels = labels.ids.masked_fill(~target.tokens.real, IGNORED)
    return PairBatch(source, target, labels, (), 0, 0)


def by_sentence(model, batch):
    """The real logits of each sentence, whatever the layout."""
    logits, tokens = model.output(model(batch)), batch.target.tokens
    flat, real, documents = logits[tokens.real], tokens.real, tokens.documents + torch.arange(len(tokens.real))[:, None]
    return [flat[documents[real] == document] for document in range(len(TARGETS))]


@pytest.mark.parametrize("variant", [*VARIANTS, *OTHERS])
def test_packed_padded_and_alone_give_the_same_numbers(variant):
    model = model_of(variant)
    alone = [model.output(model(batch_of([s], [t])))[0] for s, t in zip(SOURCES, TARGETS)]
    for layout in (
        batch_of(SOURCES, TARGETS),
        batch_of(SOURCES, TARGETS, right=3),
        batch_of(SOURCES, TARGETS, left=2, right=1),
        batch_of(SOURCES, TARGETS, packed),
    ):
        for one, among in zip(alone, by_sentence(model, layout), strict=True):
            torch.testing.assert_close(among, one, atol=1e-9, rtol=0)


@pytest.mark.parametrize("variant", ["paper", *OTHERS])
def test_packed_gradients_equal_padded_gradients(variant):
    gradients = []
    for layout in (padded, packed):
        model, batch = model_of(variant), batch_of(SOURCES, TARGETS, layout)
        logits = model.output(model(batch))
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED, reduction="sum").backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-9, rtol=0, msg=name)


@pytest.mark.parametrize("score", [ScaledDot(), Bilinear(), Gaussian()], ids=lambda score: score.kind)
@pytest.mark.parametrize("kernel", ["sdpa", "gathered"])
def test_the_kernel_changes_neither_scores_nor_gradients(kernel, score):
    found = []
    for chosen in ("reference", kernel):
        slot = Attention(score=score, kernel=chosen)
        model, batch = model_of(own=slot, cross=slot), batch_of(SOURCES, TARGETS, packed)
        scores = model.output(model(batch))
        scores.logsumexp(-1).sum().backward()
        found.append({"scores": scores.detach(), **{name: p.grad for name, p in model.named_parameters()}})
    for name, ours in found[0].items():
        torch.testing.assert_close(found[1][name], ours, atol=1e-9, rtol=0, msg=name)


@pytest.mark.parametrize(
    ("variant", "positions"),
    [(variant, name) for variant in VARIANTS for name in ("sinusoid", "learned", "none")]
    + [("paper", "integer"), ("paper", "binary")]
    + [(variant, "sinusoid") for variant in OTHERS],
)
def test_prefill_and_steps_equal_the_whole(variant, positions):
    model = model_of(variant, positions)
    batch = batch_of(SOURCES, TARGETS)
    whole = model.output(model(batch))
    ids, tokens = batch.target.ids, batch.target.tokens
    state = model.new_state(3, 11)
    model.admit(state, batch.source)
    for start, end in ((0, 3), (3, 4), (4, 6)):
        facts = Tokens(tokens.positions[:, start:end], tokens.documents[:, start:end], tokens.real[:, start:end])
        hidden = model.step(ids[:, start:end], facts, state, longest=end)
        torch.testing.assert_close(model.output(hidden)[facts.real], whole[:, start:end][facts.real], atol=1e-9, rtol=0)


@pytest.mark.parametrize("variant", ["paper", *OTHERS])
@pytest.mark.parametrize("left", [0, 1])
def test_rows_go_on_from_prefixes_of_their_own_lengths(variant, left):
    """Padding in a prefill leaves nothing behind."""
    model = model_of(variant)
    batch = batch_of(SOURCES, TARGETS)
    state = model.new_state(3, 11)
    model.admit(state, batch.source)
    ids, whole = batch.target.ids, model.output(model(batch))
    if left:
        begun = torch.tensor([[0, 0, 1], ids[1, :3].tolist(), [0, *ids[2, :2].tolist()]])
        prefix = Side(begun, Tokens.padded(begun != 0))
    else:
        prefix = padded([[1], ids[1, :3].tolist(), ids[2, :2].tolist()])
    model.step(prefix.ids, prefix.tokens, state, longest=3)
    places = torch.tensor([[1], [3], [2]])
    facts = Tokens(places, torch.zeros_like(places), torch.tensor([[True], [True], [False]]))  # the last row has ended
    hidden = model.step(ids.gather(1, places), facts, state, longest=4)
    for row in range(2):
        torch.testing.assert_close(model.output(hidden)[row, 0], whole[row, places[row, 0]], atol=1e-9, rtol=0)


@pytest.mark.parametrize("variant", ["paper", *OTHERS])
def test_reorder_trim_and_beam_rows(variant):
    model = model_of(variant)
    source = padded(SOURCES[:2])
    state = model.new_state(4, 9, beam=2)  # two sources, two rows each
    model.admit(state, source)
    rows = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9], [1, 10, 11, 12], [1, 3, 4, 5]])
    at = lambda start, end: Tokens.plain(4, end - start)
    step = lambda ids, start, end: model.step(
        ids, Tokens(at(start, end).positions + start, at(start, end).documents, at(start, end).real), state, longest=end
    )
    step(rows[:, :3], 0, 3)
    state.reorder(torch.tensor([1, 0, 2, 2]))
    swapped = rows[[1, 0, 2, 2]]
    if all(isinstance(layer, Growing) for layer in state.layers):
        step(torch.full((4, 1), 7), 3, 4)  # a token that is taken back
        state.trim(3)
    else:
        with pytest.raises(UsageError, match="cannot forget"):
            state.trim(3)
    last = model.output(step(swapped[:, 3:], 3, 4))[:, 0]
    for row, sentence in enumerate(swapped):
        alone = batch_of([SOURCES[row // 2]], [[*sentence[1:].tolist(), 2]])
        torch.testing.assert_close(last[row], model.output(model(alone))[0, 3], atol=1e-9, rtol=0)


@pytest.mark.parametrize("variant", ["paper", *OTHERS])
def test_no_gradient_from_the_future(variant):
    model = model_of(variant)
    x = torch.randn(1, 5, 16, dtype=torch.double, requires_grad=True)
    view = View(Tokens.plain(1, 5), model.encode(padded([[5, 6, 7]])))
    (gradient,) = torch.autograd.grad(model.decoder(x, view)[0, 2, 0], x)
    assert gradient[0, :3].abs().sum() > 0
    assert not gradient[0, 3:].any()


def test_an_encoder_without_positions_is_a_set_encoder():
    model = model_of(positions="none")
    order = torch.tensor([2, 0, 1])
    source = Side(torch.tensor([[5, 6, 7]]), Tokens.plain(1, 3))
    mixed = Side(source.ids[:, order], source.tokens)
    torch.testing.assert_close(model.encode(mixed)[0].states, model.encode(source)[0].states[:, order], atol=1e-9, rtol=0)
    ordered = model_of(positions="sinusoid")
    assert (ordered.encode(mixed)[0].states - ordered.encode(source)[0].states[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize("variant", ["paper", *OTHERS])
def test_padding_rows_get_no_gradient(variant):
    model, batch = model_of(variant), batch_of(SOURCES, TARGETS, right=2)
    model.output(model(batch))[..., 0].sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
