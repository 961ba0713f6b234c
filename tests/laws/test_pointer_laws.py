"""Pointer networks keep the laws of all models: shares sum to 1, padding and neighbours change nothing, steps say what the whole says."""

import numpy as np
import pytest
import torch

from regard.data.point_batch import PointBatch
from regard.decode import pointing
from regard.decode.beam import Beam
from regard.decode.penalties import NoPenalty
from regard.decode.sample import Greedy
from regard.models.build import pointer_network
from regard.models.configs import PointerNetwork
from regard.nn.attention.scores import Additive, Bilinear, Cosine, Dot, Gaussian, NegativeDistance, ScaledDot
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer
from regard.nn.view import Tokens
from regard.train.loss import CrossEntropy
from regard.train.pointing_loss import PointingObjective

ROUND = Transformer(layers=2, heads=2, dropout=0.0, feed_forward=FeedForward(d_ff=13))
TRUNKS = {
    "lstm": (Recurrent("lstm", dropout=0.0), Recurrent("lstm", attention=NoAttention(), dropout=0.0)),
    "both ways": (Recurrent("gru", width=5, bidirectional=True, dropout=0.0), Recurrent("gru", attention=NoAttention(), dropout=0.0)),
    "bahdanau": (Recurrent("lstm", layers=2, dropout=0.0), Recurrent("lstm", layers=2, attention=Bahdanau(Additive(5)), dropout=0.0)),
    "luong": (Recurrent("rnn", dropout=0.0), Recurrent("gru", attention=Luong(), dropout=0.0)),
    "transformer": (ROUND, ROUND),
    "table": (Recurrent("lstm", dropout=0.0), Recurrent("lstm", attention=Bahdanau(Additive(5)), dropout=0.0)),
}
SCORES = [Additive(7), Bilinear(), Dot(), ScaledDot(), Cosine(learned=True), Gaussian(2.0), NegativeDistance()]
SIZES, ASKED = (6, 3, 5), ([2, 0, 5, 1], [0, 1, 2], [4])


def model_of(trunks="lstm", *, score=SCORES[0], problem="hull"):
    torch.manual_seed(4)
    encoder, decoder = TRUNKS[trunks]
    config = PointerNetwork(
        d_model=10, encoder=encoder, decoder=decoder, score=score, places=9 if trunks == "table" else 0, problem=problem
    )
    return pointer_network(config).double().eval()


def sets():
    return [np.random.default_rng(size).random((size, 2)) for size in SIZES]


def batch_of(*wanted, more=0):
    places = wanted or range(len(SIZES))
    points = [sets()[place] for place in places]
    points += [np.ones((9, 2))] * more
    asked = [np.array(ASKED[place]) for place in places] + [np.arange(9)] * more
    return PointBatch.of(points, asked, range(len(points)))


def answer(model, given, *, search):
    return [ranked[0].tokens for ranked in pointing.answer(model, given, search=search)]


def shares(model, batch):
    return model(batch).softmax(-1)


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.kind)
def test_shares_sum_to_one_and_padding_gets_none(score):
    batch = batch_of()
    found = shares(model_of(score=score), batch)
    assert found.shape == (3, 5, 7)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 5, dtype=torch.double))
    for row, size in zip(found, SIZES):
        assert (row[:, : size + 1] > 0).all() and not row[:, size + 1 :].any()


@pytest.mark.parametrize("trunks", TRUNKS)
def test_neighbours_and_padding_change_nothing(trunks):
    model = model_of(trunks)
    among = shares(model, batch_of(more=1))
    for place, (size, asked) in enumerate(zip(SIZES, ASKED)):
        alone = shares(model, batch_of(place))[0]
        torch.testing.assert_close(among[place, : len(asked) + 1, : size + 1], alone, atol=1e-12, rtol=0)


@pytest.mark.parametrize("trunks", TRUNKS)
def test_steps_say_what_the_whole_says(trunks):
    model, batch = model_of(trunks), batch_of()
    whole = model(batch)
    for prefill in (1, 3):
        state = model.new_state(3, 5)
        model.admit(state, batch.points, batch.real)
        told = torch.cat([torch.zeros(3, 1, dtype=torch.long), batch.labels[:, :-1].clamp_min(0)], 1)
        facts = Tokens.plain(3, 5)
        found = []
        for start, end in [(0, prefill), *((step, step + 1) for step in range(prefill, 5))]:
            now = slice(start, end)
            tokens = Tokens(facts.positions[:, now], facts.documents[:, now], facts.real[:, now])
            found.append(model.step(told[:, now], tokens, state, longest=end))
        for row, asked in enumerate(ASKED):
            torch.testing.assert_close(torch.cat(found, 1)[row, : len(asked) + 1], whole[row, : len(asked) + 1], atol=1e-12, rtol=0)


@pytest.mark.parametrize("trunks", TRUNKS)
def test_rows_of_a_beam_share_their_points(trunks):
    model, batch = model_of(trunks), batch_of()
    ids = torch.tensor([[0, 3, 1], [0, 1, 5], [0, 1, 2], [0, 3, 0], [0, 2, 5], [0, 4, 2]])
    state, plain = model.new_state(6, 3, beam=2), model.new_state(6, 3)
    model.admit(state, batch.points, batch.real)
    model.admit(plain, batch.points.repeat_interleave(2, 0), batch.real.repeat_interleave(2, 0))
    for one, other in zip(*(model.step(ids, Tokens.plain(6, 3), each, longest=3) for each in (state, plain))):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


def test_the_loss_does_not_see_padding_and_is_that_of_a_loop():
    model, smoothing = model_of(), 0.2
    expected = 0.0
    for place, asked in enumerate(ASKED):
        log_probs = model(batch_of(place)).log_softmax(-1)[0]
        for step, label in enumerate([*(one + 1 for one in asked), 0]):
            expected = expected - (1 - smoothing) * log_probs[step, label] - smoothing * log_probs[step].mean()
    loss = PointingObjective(model, CrossEntropy(smoothing=smoothing))(batch_of())
    torch.testing.assert_close(loss, expected, atol=1e-10, rtol=0)
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("search", [Greedy(), Beam(1), Beam(3), Beam(8)], ids=str)
@pytest.mark.parametrize("problem", ["hull", "tour"])
def test_no_point_comes_twice_and_a_tour_has_them_all(problem, search):
    given = [torch.from_numpy(one) for one in sets()]
    model = model_of(problem=problem)
    found = answer(model, given, search=search)
    for one, size in zip(found, SIZES):
        assert len(set(one)) == len(one) and set(one) <= set(range(size))
        assert problem == "hull" or len(one) == size
    alone = [answer(model, [one], search=search)[0] for one in given]
    assert found == alone


def test_a_wide_beam_finds_the_most_probable_tour():
    from itertools import permutations

    model, points = model_of(problem="tour"), sets()[1]
    orders = list(permutations(range(3)))
    batch = PointBatch.of([points] * 6, [np.array(order) for order in orders], range(6))
    log_probs = model(batch).log_softmax(-1).gather(2, batch.labels[..., None]).sum((1, 2))
    (found,) = answer(model, [torch.from_numpy(points)], search=Beam(6, NoPenalty()))
    assert found == orders[int(log_probs.argmax())]
