"""Laws of search: neighbours, the order of the input, refilled slots and the size of the batch change nothing."""

import functools
import itertools
import random

import pytest
import torch

from regard.decode.beam import Beam
from regard.decode.constrain import NoRepeat
from regard.decode.draft import Job
from regard.decode.engine import Room, decode, groups
from regard.decode.penalties import Exponent, NoPenalty
from regard.decode.sample import Greedy, Sample
from regard.decode.step_function import function_stepper

SEARCHES = [
    Greedy(),
    Sample(seed=3, draws=2),
    Sample(temperature=1.5, top_p=0.9),
    Beam(size=3, n_best=2),
    Beam(size=5, coverage=0.2, penalty=Exponent(0.7)),
]


@functools.cache
def table(source: tuple[int, ...], written: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """A model of 11 tokens that ends after about five, with attention."""
    generator = torch.Generator().manual_seed(hash((source, written)) % 2**31)
    scores = 1.5 * torch.randn(11, generator=generator)
    scores[2] += 1.0
    return scores.log_softmax(0), torch.randn(len(source), generator=generator).softmax(0)


def jobs(count: int) -> list[Job]:
    lot = random.Random(5)
    made = []
    for number in range(count):
        source = (*(lot.randrange(3, 11) for _ in range(lot.randrange(1, 14))), 2)
        prefix = tuple(lot.randrange(3, 11) for _ in range(lot.choice([0, 0, 0, 2])))
        made.append(Job(source, len(source) + 5, minimum=lot.choice([0, 3]), prefix=prefix, number=number))
    return made


def answers(found):
    return [[(one.tokens, one.log_probs, one.score, one.full) for one in each] for each in found]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_alone_or_among_others_a_source_gets_the_same_targets(search):
    work = jobs(29)
    run = functools.partial(decode, function_stepper(table), search=search, constraints=[NoRepeat(2)])
    together = answers(run(work))
    assert together == [answers(run([job]))[0] for job in work]
    assert len({each[0][0] for each in together}) > 20
    assert together == answers(run(work[::-1]))[::-1]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("rows", [1, 7, 23, 999])
def test_refilled_slots_and_plain_batches_give_the_same(search, rows):
    work = jobs(31)
    small = Room(rows=rows, refill=0.3)
    continuous = decode(function_stepper(table), work, search=search, room=small)
    plain = decode(function_stepper(table, continuous=False), work, search=search, room=small)
    assert answers(continuous) == answers(plain) == answers(decode(function_stepper(table), work, search=search))


def test_refilling_takes_fewer_steps():
    """The point of it: a slot does not wait for the longest of its batch."""

    def steps(continuous: bool) -> int:
        seen: list[object] = []
        opener = function_stepper(table, continuous=continuous)
        decode(opener, jobs(101), search=Greedy(), room=Room(rows=8, refill=0.1), watch=seen.append)
        return len(seen)

    assert steps(True) < 0.8 * steps(False)


def test_attention_follows_its_row_through_the_beam():
    found = decode(function_stepper(table), jobs(17), search=Beam(size=4, n_best=4), attention=True, room=Room(rows=12))
    for each, job in zip(found, jobs(17), strict=True):
        for one in each:
            written = (1, *one.tokens)
            expected = [table(job.source, written[: place + 1])[1] for place in range(len(written))]
            assert one.attention is not None and torch.equal(one.attention, torch.stack(expected))


def test_groups_hold_every_job_once_and_sources_of_like_length():
    work = jobs(200)
    made = list(groups(work, Beam(), Room(rows=32)))
    assert sorted(number for group in made for number, _ in group) == list(range(200))
    assert len(made) > 1
    for group, following in itertools.pairwise(made):
        assert 2 * len(following[0][1].source) <= len(group[0][1].source)


def test_no_jobs_no_answers():
    assert decode(function_stepper(table), [], search=Greedy()) == []


def test_coverage_follows_its_row_through_the_beam():
    search = Beam(size=4, n_best=4, penalty=NoPenalty(), coverage=0.3)
    for each in decode(function_stepper(table), jobs(17), search=search, attention=True, room=Room(rows=12)):
        for one in each:
            assert one.attention is not None
            expected = one.log_prob + 0.3 * one.attention.sum(0).clamp_max(1).log().sum().item()
            assert one.score == pytest.approx(expected, abs=1e-4)
