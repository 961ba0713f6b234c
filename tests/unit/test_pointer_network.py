"""The pointer network by hand: its size, its scores, the golden numbers, and what cannot be built."""

import pytest
import torch

from regard.data.point_batch import PointBatch
from regard.errors import UsageError
from regard.models.build import build, pointer_network
from regard.models.configs import PointerNetwork
from regard.nn.attention.scores import Additive, Dot
from regard.nn.pointer import PointerOutput
from regard.nn.tap import record, replace
from regard.nn.trunk_recurrent import NoAttention, Recurrent
from regard.train.loss import CrossEntropy
from regard.train.pointing_loss import PointingObjective


def lstm(width, **changes):
    return Recurrent("lstm", width=width, attention=NoAttention(), dropout=0.0, **changes)


def test_how_many_parameters_it_has():
    d, h, a = 7, 11, 5
    model = build(PointerNetwork(d_model=d, encoder=lstm(h), decoder=lstm(h), score=Additive(width=a), problem="hull"))
    points, start, end = 2 * d + d, d, h
    cells = 2 * 4 * (h * d + h * h + 2 * h)
    pointer = 2 * h * a + a
    assert sum(parameter.numel() for parameter in model.parameters()) == points + start + end + cells + pointer


def test_its_rival_has_a_table_of_places_and_no_more():
    d, h, places = 7, 11, 4
    model = pointer_network(PointerNetwork(d_model=d, encoder=lstm(h), decoder=lstm(h), places=places, problem="hull"))
    trunks = sum(parameter.numel() for trunk in (model.encoder, model.decoder) for parameter in trunk.parameters())
    assert sum(parameter.numel() for parameter in model.parameters()) == 2 * d + d + d + trunks + (h + 1) * (places + 1)
    batch = lambda count: PointBatch(torch.rand(1, count, 2), torch.tensor([count]), torch.tensor([[1, 2, 0]]), (0,), count, 3)
    assert model(batch(4)).shape == (1, 3, 5) and model(batch(3)).shape == (1, 3, 4)
    with pytest.raises(UsageError, match="5 points, and answers for 4 of them"):
        model(batch(5))


def test_the_pointer_is_the_equation_of_the_paper():
    torch.manual_seed(1)
    output = PointerOutput(Additive(width=3), d_hidden=4, d_memory=5).double()
    states, hidden = torch.randn(2, 3, 5, dtype=torch.double), torch.randn(2, 2, 4, dtype=torch.double)
    real = torch.tensor([[True, True, False], [True, True, True]])
    found = output(hidden, output.keys(states), real)
    w_d, w_e, v = output.score.query_HEA[0], output.score.key_HEA[0], output.score.vector_HA[0]
    for row, step in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        expected = [float((v @ torch.tanh(e @ w_e + hidden[row, step] @ w_d)).detach()) for e in (output.end, *states[row])]
        expected = torch.tensor(expected, dtype=torch.double).masked_fill(~torch.cat([torch.tensor([True]), real[row]]), -torch.inf)
        torch.testing.assert_close(found[row, step], expected)


def test_pointing_alone_is_the_softmax_of_the_scores():
    output = PointerOutput(Dot(), d_hidden=1, d_memory=1)
    with torch.no_grad():
        output.end.fill_(2.0)
    states = torch.tensor([[[1.0], [0.5], [9.0]]])
    shares = output(torch.ones(1, 1, 1), output.keys(states), torch.tensor([[True, True, False]])).softmax(-1)
    torch.testing.assert_close(shares[0, 0], torch.tensor([0.6285, 0.2312, 0.1402, 0.0]), atol=5e-5, rtol=0)  # e^2, e, e^.5


def test_the_point_that_was_pointed_at_is_the_next_input():
    model = pointer_network(PointerNetwork(d_model=6, encoder=lstm(6), decoder=lstm(6), problem="hull")).eval()
    points = torch.rand(1, 4, 2)
    told = [model(PointBatch(points, torch.tensor([4]), torch.tensor([[first, 2, 0]]), (0,), 4, 3))[0] for first in (1, 3)]
    assert torch.equal(told[0][0], told[1][0])  # the first step knows nothing of it yet
    assert not torch.isclose(told[0][1], told[1][1]).any()


def test_scores_can_be_watched_and_vectors_replaced():
    model = pointer_network(PointerNetwork(d_model=6, encoder=lstm(6), decoder=lstm(6), problem="hull")).eval()
    batch = PointBatch(torch.rand(1, 4, 2), torch.tensor([4]), torch.tensor([[1, 2, 0]]), (0,), 4, 3)
    with record(model, "pointer.scores") as seen:
        scores = model(batch)
    assert torch.equal(seen["pointer.scores"][0], scores)
    with replace(model, "encoder.memory", torch.zeros_like):
        places = model(batch)[0, 0, 1:]
    assert torch.equal(places, places[:1].expand(4)) and not torch.equal(places, scores[0, 0, 1:])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "does not know what it answers"),
        ({"problem": "hull", "score": Dot(), "decoder": lstm(5)}, "dot compares the decoder's 5 numbers with the encoder's 6"),
        ({"problem": "hull", "decoder": lstm(6, forcing=0.5)}, "set forcing = 1"),
    ],
)
def test_what_cannot_be_built_says_why(wrong, says):
    with pytest.raises(UsageError, match=says):
        build(PointerNetwork(**({"d_model": 6, "encoder": lstm(6), "decoder": lstm(6)} | wrong)))


@pytest.mark.parametrize("loss", [CrossEntropy(r_drop=1.0), CrossEntropy(convention="annotated")])
def test_losses_of_words_are_refused(loss):
    model = pointer_network(PointerNetwork(d_model=6, encoder=lstm(6), decoder=lstm(6), problem="hull"))
    with pytest.raises(UsageError, match="for words"):
        PointingObjective(model, loss)
