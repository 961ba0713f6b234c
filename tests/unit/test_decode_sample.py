"""Sampling: the cut-offs by hand, the lot by counting, the seed by repeating."""

import collections
import math

import pytest
import torch

from regard.decode.draft import Job
from regard.decode.engine import decode
from regard.decode.sample import Greedy, Sample, draw, narrow
from regard.decode.step_function import function_stepper
from regard.errors import UsageError

PROBS = torch.tensor([[0.05, 0.4, 0.1, 0.25, 0.2]])


def narrowed(**settings) -> list[float]:
    probs = narrow(PROBS.log(), Sample(**settings))
    return (probs / probs.sum()).flatten().tolist()


def test_cut_offs_by_hand():
    assert narrowed() == pytest.approx(PROBS.flatten().tolist())
    assert narrowed(top_k=2) == pytest.approx([0, 0.4 / 0.65, 0, 0.25 / 0.65, 0])
    assert narrowed(top_k=9) == narrowed()
    assert narrowed(top_p=0.6) == pytest.approx([0, 0.4 / 0.65, 0, 0.25 / 0.65, 0])  # .4 is too little, .4 + .25 enough
    assert narrowed(top_p=0.3) == [0, 1, 0, 0, 0]
    assert narrowed(min_p=0.49) == pytest.approx([0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85])
    assert narrowed(min_p=1.0) == [0, 1, 0, 0, 0]
    squares = PROBS.flatten() ** 2
    assert narrowed(temperature=0.5) == pytest.approx((squares / squares.sum()).tolist())
    assert narrowed(temperature=0.5, top_p=0.6) == pytest.approx([0, 0.16 / 0.2225, 0, 0.0625 / 0.2225, 0])


def test_luck_chooses_the_stretch_it_falls_into():
    for luck, token in ((0, 0), (0.049, 0), (0.051, 1), (0.449, 1), (0.451, 2), (0.551, 3), (0.799, 3), (0.801, 4), (1, 4)):
        assert draw(PROBS, torch.tensor([luck], dtype=torch.double)).tolist() == [token]
    gap = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]])  # what has no probability is never drawn, not even at the edges
    assert [draw(gap, torch.tensor([luck], dtype=torch.double)).item() for luck in (0, 0.500001, 1)] == [1, 3, 3]


def dice(source, written):
    """Tokens 3, 4, 5 with .5, .3, .2, once; then the end."""
    log_probs = torch.full((6,), -torch.inf)
    if len(written) > 1:
        log_probs[2] = 0.0
    else:
        log_probs[3:] = torch.tensor([0.5, 0.3, 0.2]).log()
    return log_probs


def test_tokens_come_as_often_as_they_should():
    jobs = [Job((3, 2), 2, number=number) for number in range(4000)]
    found = decode(function_stepper(dice), jobs, search=Sample())
    counts = collections.Counter(each[0].tokens[0] for each in found)
    for token, share in ((3, 0.5), (4, 0.3), (5, 0.2)):
        assert counts[token] / 4000 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 4000))


def test_draws_differ_from_each_other_and_by_seed_and_repeat_exactly():
    def tokens(**settings):
        jobs = [Job((3, 2), 2, number=number) for number in range(13)]
        return [[one.tokens for one in each] for each in decode(function_stepper(dice), jobs, search=Sample(**settings))]

    assert tokens(draws=5) == tokens(draws=5)
    assert tokens(draws=5) != tokens(draws=5, seed=1)
    assert [each[0] for each in tokens(draws=1)] != [tokens(draws=1)[0][0]] * 13
    assert len({each[k] for each in tokens(draws=5) for k in range(5)}) == 3
    assert sum(len(set(each)) > 1 for each in tokens(draws=5)) > 9  # a source's own draws are not all one
    singles = {number: each[0] for number, each in enumerate(tokens(draws=1))}
    assert all(singles[number] in each for number, each in enumerate(tokens(draws=5)))


def test_log_probabilities_are_the_models_own_whatever_the_temperature():
    found = decode(function_stepper(dice), [Job((3, 2), 2)], search=Sample(temperature=9.0))[0][0]
    assert found.log_probs[0] == pytest.approx(math.log({3: 0.5, 4: 0.3, 5: 0.2}[found.tokens[0]]))


def test_surest_sampling_is_greedy():
    jobs = [Job((3, 2), 2, number=number) for number in range(7)]
    greedy = decode(function_stepper(dice), jobs, search=Greedy())
    for search in (Sample(top_k=1), Sample(top_p=0.01), Sample(min_p=1.0), Sample(temperature=0.01)):
        assert [each[0].tokens for each in decode(function_stepper(dice), jobs, search=search)] == [each[0].tokens for each in greedy]


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}, {"min_p": 2.0}, {"draws": 0}, {"seed": -1}]
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Sample(**wrong)
