"""Search over caches, refilled slots and reordered beams finds what search over whole forward passes finds."""

import functools
import random

import numpy as np
import pytest
import torch

from regard.data.layouts import Rows, padded
from regard.decode.beam import Beam
from regard.decode.constrain import NoRepeat
from regard.decode.draft import Job
from regard.decode.engine import Room, decode
from regard.decode.ensemble import ensemble
from regard.decode.penalties import Exponent
from regard.decode.sample import Greedy, Sample
from regard.decode.score import score_pairs
from regard.decode.step_function import function_stepper
from regard.decode.step_translator import opener
from regard.models.build import translator
from regard.models.configs import EncoderDecoder
from regard.models.translator import Translator
from regard.nn.attention.scores import Additive
from regard.nn.copying import PointerGenerator
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer

HEADS = ((0, 1), (1, 2))


TRANSFORMER = Transformer(layers=2, heads=4, dropout=0.0, feed_forward=FeedForward(d_ff=22))
GRU = Recurrent(bidirectional=True, dropout=0.0)
CONVOLUTIONS = Convolutional(layers=2, dropout=0.0)
KINDS = {
    "transformer": {"encoder": TRANSFORMER, "decoder": TRANSFORMER},
    "alone": {"encoder": GRU, "decoder": Recurrent(cell="lstm", layers=2, attention=NoAttention(every_step=True))},
    "bahdanau": {"encoder": GRU, "decoder": Recurrent(attention=Bahdanau(score=Additive(7)))},
    "luong, two encoders": {"encoder": GRU, "more_encoders": (TRANSFORMER,), "decoder": Recurrent(attention=Luong())},
    "convolutional": {"encoder": CONVOLUTIONS, "decoder": CONVOLUTIONS},
    "pointer, lstm": {"encoder": GRU, "decoder": Recurrent(cell="lstm"), "copy": PointerGenerator(width=7, coverage=True)},
}


@functools.cache
def model(seed: int = 5, kind: str = "transformer") -> Translator:
    torch.manual_seed(seed)
    options = {"embedding": Embedding(dropout=0.0), "source_vocabulary": 13, "target_vocabulary": 13, "tie": "none"}
    config = EncoderDecoder(d_model=16, **(options | KINDS[kind]))
    made = translator(config).eval()
    for parameter in made.parameters():  # away from the even probabilities of a fresh model
        torch.nn.init.normal_(parameter, std=0.5) if parameter.dim() > 1 else None
    return made


def slow(source: tuple[int, ...], written: tuple[int, ...]) -> torch.Tensor:
    """The definition: the whole target through the whole model for every token."""
    batch = padded(_rows(source[:-1]), _rows(written[1:]), np.array([0]))
    with torch.no_grad():
        return model().output(model()(batch))[0, -1].float().log_softmax(-1)


def _rows(ids: tuple[int, ...]) -> Rows:
    return Rows(np.array(ids, dtype=np.int64), np.array([len(ids)]))


def jobs(count: int) -> list[Job]:
    lot = random.Random(2)
    sources = [(*(lot.randrange(4, 13) for _ in range(lot.randrange(1, 12))), 2) for _ in range(count)]
    return [Job(source, 9, minimum=lot.choice([2, 6]), number=number) for number, source in enumerate(sources)]


SEARCHES = [Greedy(), Sample(draws=2, temperature=1.3), Beam(size=3, n_best=3), Beam(size=4, penalty=Exponent(1.0), coverage=0.1)]


@pytest.mark.parametrize("search", SEARCHES[:3], ids=str)
@pytest.mark.parametrize("rows", [3, 12, 99])
def test_cached_search_is_the_slow_one(search, rows):
    run = functools.partial(decode, search=search, constraints=[NoRepeat(1)])  # a model that learned nothing repeats itself
    expected = run(function_stepper(slow), jobs(17))
    found = run(opener(model()), jobs(17), room=Room(rows=rows))
    for want, have in zip(expected, found, strict=True):
        assert [one.tokens for one in have] == [one.tokens for one in want]
        for one, other in zip(have, want, strict=True):
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    assert len({each[0].tokens for each in found}) > 6


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_neighbours_change_nothing(search):
    run = functools.partial(decode, opener(model(), heads=HEADS), search=search, attention=True)
    together = run(jobs(19), room=Room(rows=16, refill=0.3))
    for have, job in zip(together, jobs(19), strict=True):
        (alone,) = run([job])
        assert [one.tokens for one in have] == [one.tokens for one in alone]
        for one, other in zip(have, alone, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.attention is not None and other.attention is not None
            assert one.attention.shape == (len(one.tokens) + 1, len(job.source))
            torch.testing.assert_close(one.attention, other.attention, atol=1e-5, rtol=0)
            assert one.attention.sum(1).tolist() == pytest.approx([1] * len(one.attention), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_search_and_teacher_forcing_give_the_same_log_probabilities(kind):
    """Sources come in where others have ended, and beams are reordered, whatever the trunks keep."""
    made = model(kind=kind)
    found = decode(opener(made), jobs(11), search=Beam(size=3), room=Room(rows=9, refill=0.3))
    assert len({each[0].tokens for each in found}) >= 3
    pairs = [(job.source[:-1], each[0].tokens) for job, each in zip(jobs(11), found, strict=True)]
    scores = score_pairs(made.scores, pairs)
    for score, each in zip(scores, found, strict=True):
        assert score.log_probs == pytest.approx(each[0].log_probs, abs=1e-4)


def test_an_ensemble_of_one_model_is_that_model():
    alone = decode(opener(model()), jobs(7), search=Beam(size=2))
    twice = decode(ensemble([opener(model()), opener(model())]), jobs(7), search=Beam(size=2))
    mixed = decode(ensemble([opener(model()), opener(model(8))]), jobs(7), search=Beam(size=2))
    assert [each[0].tokens for each in twice] == [each[0].tokens for each in alone]
    assert [each[0].tokens for each in mixed] != [each[0].tokens for each in alone]
