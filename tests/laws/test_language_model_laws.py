"""A language model over any trunk: layout, padding and cache change nothing, and nothing is known of the future."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from regard.data.batch import IGNORED
from regard.data.text_batch import TextBatch
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import LanguageModel
from regard.nn.attention.biases import ALiBi
from regard.nn.attention.multihead import Attention
from regard.nn.attention.patterns import Window
from regard.nn.attention.segments import TransformerXL
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.init import Normal
from regard.nn.positions import Learned, Rotary, Sinusoid
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View
from toy_layouts import packed, padded

TEXTS = [[1, 12, 7, 5], [1, 6, 8, 9, 10, 11, 3], [1, 4]]
SMALL = Transformer(layers=2, heads=4, dropout=0.0, feed_forward=FeedForward(d_ff=22))
POSITIONS = {"sinusoid": Sinusoid(), "learned": Learned(length=17)}
OWN = {
    "paper": SMALL,
    "pre-norm": replace(SMALL, placement="pre", feed_forward=FeedForward(d_ff=22, activation="gelu")),
    "rotary": replace(SMALL, key_value_heads=2, own=Attention(rotation=Rotary())),
    "alibi": replace(SMALL, own=Attention(bias=ALiBi())),
    "transformer-xl": replace(SMALL, own=TransformerXL(memory=9)),
    "same-length": replace(SMALL, own=TransformerXL(memory=3, same_length=True)),
    "window": replace(SMALL, own=Attention(pattern=(Window(1),))),
}
OTHERS = {
    "rnn": Recurrent(cell="rnn", attention=NoAttention()),
    "lstm": Recurrent(cell="lstm", layers=2, attention=NoAttention(), dropout=0.0),
    "bahdanau": Recurrent(attention=Bahdanau()),
    "luong": Recurrent(layers=2, attention=Luong(), dropout=0.0),
    "convolutional": Convolutional(layers=3, width=6, dropout=0.0),
    "dilated": Convolutional(layers=2, kernel=2, gated=False, dilated=True, dropout=0.0),
}
TRUNKS = OWN | OTHERS


def model_of(trunk="paper", positions="sinusoid", **changes):
    torch.manual_seed(3)
    embedding = Embedding(positions=POSITIONS[positions], dropout=0.0)
    config = LanguageModel(d_model=16, trunk=TRUNKS[trunk], embedding=embedding, tie=False, vocabulary=13)
    return build(replace(config, **changes)).double().eval()


def batch_of(texts, layout=padded, **padding):
    text = layout(texts, **padding)
    labels = layout([[*ids[1:], 2] for ids in texts], **padding).ids.masked_fill(~text.tokens.real, IGNORED)
    return TextBatch(text, labels, tuple(range(len(texts))), int((labels != IGNORED).sum()))


def by_text(model, batch):
    """The real scores of each text, whatever the layout."""
    scores, tokens = model.output(model(batch)), batch.text.tokens
    documents = tokens.documents + torch.arange(len(tokens.real))[:, None]
    return [scores[tokens.real & (documents == number)] for number in range(len(TEXTS))]


@pytest.mark.parametrize("trunk", TRUNKS)
def test_packed_padded_and_alone_give_the_same_numbers(trunk):
    model = model_of(trunk)
    alone = [model.output(model(batch_of([text])))[0] for text in TEXTS]
    for batch in (batch_of(TEXTS), batch_of(TEXTS, right=3), batch_of(TEXTS, left=2, right=1), batch_of(TEXTS, packed)):
        for one, among in zip(alone, by_text(model, batch), strict=True):
            torch.testing.assert_close(among, one, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("trunk", "positions"), [(t, p) for t in OWN for p in POSITIONS] + [(t, "sinusoid") for t in OTHERS])
def test_prefill_and_steps_equal_the_whole(trunk, positions):
    model, batch = model_of(trunk, positions), batch_of(TEXTS)
    ids, tokens, whole = batch.text.ids, batch.text.tokens, model.output(model(batch))
    state = model.new_state(3, 9)
    for start, end in ((0, 3), (3, 4), (4, 7)):
        facts = Tokens(tokens.positions[:, start:end], tokens.documents[:, start:end], tokens.real[:, start:end])
        found = model.output(model.step(ids[:, start:end], facts, state, longest=end))
        torch.testing.assert_close(found[facts.real], whole[:, start:end][facts.real], atol=1e-9, rtol=0)


@pytest.mark.parametrize("trunk", TRUNKS)
def test_rows_follow_others_and_forget(trunk):
    model, state = model_of(trunk), None
    state = model.new_state(3, 9)
    rows = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9], [1, 10, 11, 12]])
    facts = Tokens.plain(3, 4)
    at = lambda start, end: Tokens(facts.positions[:, start:end], facts.documents[:, start:end], facts.real[:, start:end])
    model.step(rows[:, :3], at(0, 3), state, longest=3)
    state.reorder(torch.tensor([1, 1, 2]))
    if isinstance(model.trunk, TransformerTrunk) and trunk != "same-length":
        model.step(torch.full((3, 1), 7), at(3, 4), state, longest=4)
        state.trim(3)
    last = model.output(model.step(rows[:, 3:], at(3, 4), state, longest=4))[:, 0]
    for row, text in enumerate(([1, 7, 8, 6], [1, 7, 8, 9], [1, 10, 11, 12])):
        torch.testing.assert_close(last[row], model.output(model(batch_of([text])))[0, 3], atol=1e-9, rtol=0)


def test_far_positions_are_reached_by_steps():
    model = model_of()
    place = torch.full((1, 1), 700)
    found = model.step(place * 0 + 5, Tokens(place, place * 0, place > 0), model.new_state(1, 800), longest=701)
    assert found.isfinite().all()


@pytest.mark.parametrize("trunk", TRUNKS)
def test_no_gradient_from_the_future(trunk):
    model = model_of(trunk)
    x = torch.randn(1, 5, 16, dtype=torch.double, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.trunk(x, View(Tokens.plain(1, 5)))[0, 2, 0], x)
    assert gradient[0, 2].abs().sum() > 0
    assert not gradient[0, 3:].any()


@pytest.mark.parametrize("layout", [padded, packed])
def test_part_of_a_batch_is_a_batch(layout):
    model, batch = model_of(), batch_of(TEXTS, layout)
    part = batch.part(range(1, 3))
    assert part.pairs == (1, 2) and part.target_tokens == len(TEXTS[1]) + len(TEXTS[2])
    tokens = part.text.tokens
    found = model.output(model(part))[tokens.real]
    torch.testing.assert_close(found, torch.cat(by_text(model, batch)[1:]), atol=1e-9, rtol=0)


def test_one_table_or_two_and_first_values():
    tied = model_of(tie=True)
    assert tied.output.table is tied.embedding.table
    plain = LanguageModel(d_model=64, trunk=replace(SMALL, heads=4), embedding=Embedding(positions=POSITIONS["learned"]), vocabulary=999)
    drawn = build(replace(plain, init=Normal(0.02)))
    for table in (drawn.output.table, drawn.embedding.positions.weight):
        assert abs(table.std().item() - 0.02) < 1e-3
    assert not drawn.output.table[0].any() and drawn.embedding.positions.weight[0].any()


def test_what_cannot_be_built_says_why():
    with pytest.raises(UsageError, match="vocabulary"):
        build(LanguageModel())
    with pytest.raises(UsageError, match="width"):
        model_of("bahdanau", tie=True)
    with pytest.raises(UsageError, match="right words"):
        build(LanguageModel(d_model=16, trunk=Recurrent(forcing=0.5, output=16), vocabulary=13))
