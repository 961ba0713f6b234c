"""Recurrent decoders by numbers worked out by hand, their keys and values, and what they refuse."""

import math
from dataclasses import replace

import pytest
import torch

from regard.data.batch import PairBatch, Side
from regard.errors import UsageError
from regard.models.build import translator
from regard.models.configs import EncoderDecoder
from regard.nn.attention.scores import Additive, Bilinear, Cosine, Dot, Gaussian, NegativeDistance, ScaledDot
from regard.nn.copying import JointCopy
from regard.nn.embed import Embedding
from regard.nn.tap import record
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent, RecurrentDecoder, RecurrentEncoder
from regard.nn.view import Memory, Tokens, View

PLAIN = Recurrent(cell="rnn", dropout=0.0)


def decoder_of_one(attention, *, inward: list[float], join: list[float] = ()):
    """Every vector is one number: s' = tanh(inward . x + s / 10), from s = 2 on; the source is 1, 2."""
    encoder = RecurrentEncoder(PLAIN, 1, name="encoder")
    trunk = RecurrentDecoder(replace(PLAIN, attention=attention), 1, memories=[encoder], name="decoder")
    with torch.no_grad():
        for parameter in trunk.cells.parameters():
            parameter.zero_()
        trunk.cells.layers.weight_ih_l0.copy_(torch.tensor([inward]))
        trunk.cells.layers.weight_hh_l0.fill_(0.1)
        if join:
            trunk.join.weight.copy_(torch.tensor([join]))
    memory = Memory(torch.tensor([[[1.0], [2.0]]]), Tokens.plain(1, 2), final=torch.full((1, 1, 1, 1), 2.0))
    return lambda x: trunk(torch.tensor(x)[None, :, None], View(Tokens.plain(1, len(x)), (memory,)))[0].tolist()


def test_bahdanau_looks_with_the_state_before_the_step():
    run = decoder_of_one(Bahdanau(score=Dot()), inward=[0.5, 0.25])
    # 2 looks at 1, 2: scores 2, 4, weights .1192, .8808, c = 1.8808; s = tanh(.5 + .25 c + .2) = .8244
    # .8244 looks: weights .3048, .6952, c = 1.6952; s = tanh(1.5 + .25 c + .0824) = .9645
    assert run([1.0, 3.0]) == [pytest.approx([0.8244, 1.8808, 1.0], abs=1e-4), pytest.approx([0.9645, 1.6952, 3.0], abs=1e-4)]


def test_luong_looks_with_the_state_after_the_step():
    run = decoder_of_one(Luong(score=Dot()), inward=[0.5, 0.25], join=[0.5, 1.0])
    # s = tanh(.5 + .2) = .6044 looks: weights .3533, .6467, c = 1.6467; out = tanh(c / 2 + s) = .8912
    # fed back: s = tanh(1.5 + .25 .8912 + .0604) = .9450; weights .2799, .7201, c = 1.7201; out = tanh(.8601 + .9450) = .9473
    assert run([1.0, 3.0]) == [pytest.approx([0.8912], abs=1e-4), pytest.approx([0.9473], abs=1e-4)]
    unfed = decoder_of_one(Luong(score=Dot(), input_feeding=False), inward=[0.5], join=[0.5, 1.0])
    # the second state is tanh(1.5 + .0604) = .9155; weights .2859, .7141
    assert unfed([1.0, 3.0]) == [pytest.approx([0.8912], abs=1e-4), pytest.approx([math.tanh(1.7141 / 2 + 0.9155)], abs=1e-4)]


def test_without_attention_the_last_state_is_all():
    assert decoder_of_one(NoAttention(), inward=[0.5])([1.0]) == [pytest.approx([math.tanh(0.7)])]
    # Cho: 2 enters the step and stands beside its answer
    assert decoder_of_one(NoAttention(every_step=True), inward=[0.5, 0.25])([1.0]) == [pytest.approx([math.tanh(1.2), 2.0, 1.0])]


def model_of(encoder: Recurrent, decoder: Recurrent, **changes):
    torch.manual_seed(2)
    options = {"d_model": 8, "embedding": Embedding(dropout=0.0), "tie": "none", "source_vocabulary": 11, "target_vocabulary": 11}
    encoder, decoder = replace(encoder, dropout=0.0), replace(decoder, dropout=0.0)
    return translator(EncoderDecoder(encoder=encoder, decoder=decoder, **(options | changes)))


def batch_of(targets: list[list[int]]) -> PairBatch:
    real = torch.tensor([[bool(word) for word in row] for row in targets])
    source = Side(torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]), Tokens.padded(torch.tensor([[True] * 4, [True] * 2 + [False] * 2])))
    return PairBatch(source, Side(torch.tensor(targets), Tokens.padded(real)), torch.tensor(targets), (), 0, 0)


@pytest.mark.parametrize(
    "score", [Dot(), ScaledDot(), Bilinear(), Cosine(), Cosine(learned=True), Gaussian(), NegativeDistance(), Additive(3)]
)
@pytest.mark.parametrize("kind", [Bahdanau, Luong])
@pytest.mark.parametrize("keys", ["states", "split", "projected"])
def test_any_score_gathers_within_the_hull_of_the_values(score, kind, keys):
    model = model_of(Recurrent(), Recurrent(attention=kind(score=score, keys=keys))).double().train()
    batch = batch_of([[1, 4, 5], [1, 6, 0]])
    values = model.decoder.glances.project(model.encode(batch.source))[0][1]
    with record(model, "decoder.0.cross.*") as seen:
        model.output(model(batch)).sum().backward()
    weights, found = torch.cat(seen["decoder.0.cross.weights"], 2), torch.cat(seen["decoder.0.cross.context"], 1)
    assert weights.shape == (2, 1, 3, 4) and not weights[1, ..., 2:].any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 3, dtype=torch.double))
    torch.testing.assert_close(found, (weights @ values)[:, 0])
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.decoder.glances.parameters())


def test_halves_of_the_states_are_keys_and_values():
    model = model_of(Recurrent(), Recurrent(attention=Bahdanau(score=Dot(), keys="split")))
    (memory,), glance = model.encode(batch_of([[1], [1]]).source), model.decoder.glances.each[0]
    key, value = glance.project(memory)
    assert torch.equal(key[:, 0], memory.states[..., :4]) and torch.equal(value[:, 0], memory.states[..., 4:])
    query = torch.randn(2, 1, 8)
    ask = lambda query: glance(query, key, value, keys=memory.tokens, memo={}, name="")
    torch.testing.assert_close(ask(query), ask(torch.cat([query[..., :4], torch.zeros(2, 1, 4)], -1)))
    assert (ask(query) - ask(-query)).abs().max() > 1e-3


def test_it_is_the_top_layer_that_looks():
    model = model_of(Recurrent(), Recurrent(layers=2, attention=Bahdanau(score=Dot()))).double()
    batch = batch_of([[1], [1]])
    (memory,) = model.encode(batch.source)
    first = {"h": torch.randn(2, 2, 8, dtype=torch.double)}
    looked = model.decoder.glances.project((memory,))
    out, _ = model.decoder._step(torch.zeros(2, 1, 8, dtype=torch.double), first, looked, {})
    scores = (memory.states @ first["h"][:, 1, :, None]).squeeze(2).masked_fill(~memory.tokens.real, -torch.inf)
    torch.testing.assert_close(out[:, 0, 8:16], (scores.softmax(1)[:, None] @ memory.states)[:, 0])


def test_the_bridge_matches_layers_from_the_top():
    model = model_of(Recurrent(cell="lstm", layers=2), Recurrent(cell="lstm", layers=3, attention=NoAttention()))
    memories = model.encode(batch_of([[1], [1]]).source)
    first = model.decoder.bridge(memories, memories[0].states)
    final = memories[0].final
    for name, vector in zip(("h", "c"), final):
        assert torch.equal(first[name], vector[[0, 0, 1]].transpose(0, 1)), name
    gru = model_of(Recurrent(layers=2), Recurrent(cell="lstm", attention=NoAttention()))
    memories = gru.encode(batch_of([[1], [1]]).source)
    first = gru.decoder.bridge(memories, memories[0].states)
    assert torch.equal(first["c"], first["h"]) and torch.equal(first["h"][:, 0], memories[0].final[0, 1])


@pytest.mark.parametrize("kind", [NoAttention(), Bahdanau(), Luong()])
def test_forcing_tells_the_right_word_or_not(kind, monkeypatch):
    model = model_of(Recurrent(), Recurrent(attention=kind, forcing=0.5)).train()
    batch = batch_of([[1, 4, 5, 6], [1, 6, 0, 0]])
    told = model.eval()(batch)
    model.train()
    monkeypatch.setattr(type(model.decoder), "draw", lambda self, length: [True] * length)
    torch.testing.assert_close(model(batch)[batch.target.tokens.real], told[batch.target.tokens.real])
    monkeypatch.setattr(type(model.decoder), "draw", lambda self, length: [False] * length)
    own = model(batch)
    words = model.output(own).argmax(-1)
    again = batch_of([[1, *words[0, :3].tolist()], [1, int(words[1, 0]), 0, 0]])  # its own words, told
    torch.testing.assert_close(own[again.target.tokens.real], model.eval()(again)[again.target.tokens.real])


def test_forcing_is_drawn_for_each_step():
    model = model_of(Recurrent(), Recurrent(forcing=0.25))
    torch.manual_seed(1)
    assert 0.2 < sum(model.decoder.draw(2000)) / 2000 < 0.3


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("kind", [NoAttention(), Bahdanau(), Luong()])
def test_sixteen_bits_train(cell, kind):
    model = model_of(Recurrent(cell=cell, bidirectional=True), Recurrent(cell=cell, attention=kind, forcing=0.5)).train()
    with torch.autocast("cpu", torch.bfloat16):
        model.output(model(batch_of([[1, 4, 5], [1, 6, 0]]))).float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    ("encoder", "decoder", "changes", "says"),
    [
        (Recurrent(), Recurrent(bidirectional=True), {}, "yet to write"),
        (Recurrent(width=6), Recurrent(attention=Luong(score=Dot())), {}, "compares 8 numbers of the decoder with 6 of the encoder"),
        (Recurrent(width=7), Recurrent(attention=Luong(keys="split")), {}, "no halves"),
        (Recurrent(), Recurrent(), {"tie": "all"}, "width 24"),
        (Recurrent(), Recurrent(forcing=0.5), {"copy": JointCopy()}, "forcing = 1"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_built(encoder, decoder, changes, says):
    with pytest.raises(UsageError) as refused:
        model_of(encoder, decoder, **changes)
    assert says in str(refused.value)


def test_a_share_is_a_share():
    with pytest.raises(UsageError, match="forcing"):
        Recurrent(forcing=1.5)
