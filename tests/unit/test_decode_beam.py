"""Beam search against the whole tree, written out by hand."""

import functools
import itertools
import math

import pytest
import torch

from regard.decode.beam import Beam, best
from regard.decode.draft import Job
from regard.decode.engine import decode
from regard.decode.penalties import Exponent, Gnmt, NoPenalty, bound, coverage
from regard.decode.sample import Greedy
from regard.decode.step_function import function_stepper
from regard.errors import ModelError, UsageError

END, WORDS, LONGEST = 2, (3, 4), 4  # the tree has 3 leaves a node: two words and the end
PENALTIES = [NoPenalty(), Gnmt(), Gnmt(1.0), Gnmt(-0.5), Exponent(1.0), Exponent(2.0), Exponent(-1.0)]
SOURCES = [(3, 2), (4, 3, 2), (4, 4, 3, 2)]


@functools.cache
def table(source: tuple[int, ...], written: tuple[int, ...]) -> torch.Tensor:
    """A language model of five tokens: other log-probabilities after each beginning."""
    generator = torch.Generator().manual_seed(hash((source, written)) % 2**31)
    return (2 * torch.randn(5, generator=generator)).log_softmax(0)


def log_prob(source: tuple[int, ...], words: tuple[int, ...]) -> float:
    """The sum that teacher forcing gives: each token after those before it."""
    target = (1, *words, END)
    return sum(table(source, target[:place])[target[place]].item() for place in range(1, len(target)))


def whole_tree(source: tuple[int, ...], penalty) -> list[tuple[float, tuple[int, ...]]]:
    targets = [words for length in range(LONGEST + 1) for words in itertools.product(WORDS, repeat=length)]
    scored = [(log_prob(source, words) / float(penalty.divisor(torch.tensor(len(words) + 1))), words) for words in targets]
    return sorted(scored, key=lambda each: -each[0])


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_beam_as_wide_as_the_tree_is_exhaustive_search(penalty):
    jobs = [Job(source, LONGEST) for source in SOURCES]
    search = Beam(size=3**LONGEST, penalty=penalty, n_best=3**LONGEST)
    for source, found in zip(SOURCES, decode(function_stepper(table), jobs, search=search), strict=True):
        expected = whole_tree(source, penalty)
        assert [one.tokens for one in found] == [words for _, words in expected]
        assert [one.score for one in found] == pytest.approx([score for score, _ in expected], abs=1e-5, rel=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("wanted", [1, 2, 5])
def test_stopping_early_changes_no_answer(penalty, wanted):
    jobs = [Job(source, LONGEST) for source in SOURCES]
    steps: list[object] = []
    found = decode(function_stepper(table), jobs, search=Beam(size=3**LONGEST, penalty=penalty, n_best=wanted), watch=steps.append)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        assert [one.tokens for one in hypotheses] == [words for _, words in whole_tree(source, penalty)[:wanted]]


def test_search_stops_as_soon_as_nothing_can_win():
    def sure(source, written):  # ends at once, nearly certainly
        return torch.tensor([-9.0, -9, -0.001, -8, -8.0])

    steps: list[object] = []
    decode(function_stepper(sure), [Job((3, 2), 50)], search=Beam(size=4, penalty=NoPenalty()), watch=steps.append)
    assert len(steps) == 1


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_beam_of_one_is_greedy(penalty):
    jobs = [Job((number, 2), 7) for number in range(23)]
    one = decode(function_stepper(table), jobs, search=Beam(size=1, penalty=penalty))
    greedy = decode(function_stepper(table), jobs, search=Greedy())
    assert [found[0].tokens for found in one] == [found[0].tokens for found in greedy]
    assert [found[0].log_probs for found in one] == [found[0].log_probs for found in greedy]
    assert len({found[0].tokens for found in greedy}) > 5  # or the test would compare nothing


def test_n_best_is_sorted_distinct_and_tells_the_models_own_log_probabilities():
    for found in decode(function_stepper(table), [Job((number, 2), 7) for number in range(11)], search=Beam(size=5, n_best=5)):
        assert len({one.tokens for one in found}) == len(found) > 1
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    source, one = (10, 2), found[0]
    assert one.log_prob == pytest.approx(log_prob(source, one.tokens), abs=1e-5)
    assert one.score == pytest.approx(log_prob(source, one.tokens) / ((5 + len(one.tokens) + 1) / 6) ** 0.6, abs=1e-5)


def test_gnmt_divisor_has_the_papers_values():
    lengths = torch.tensor([1, 5, 9, 10, 20])
    assert Gnmt(0.6).divisor(lengths).tolist() == pytest.approx([1, 1.3587, 1.6626, 1.7329, 2.3544], abs=1e-4)
    assert Exponent(2.0).divisor(lengths).tolist() == [1, 25, 81, 100, 400]
    assert NoPenalty().divisor(lengths).tolist() == [1] * 5


def test_bound_is_the_best_that_can_come():
    total, length, longest = torch.tensor([-6.0]), torch.tensor([3]), torch.tensor([12])
    for penalty in PENALTIES:
        reachable = [-6.0 / float(penalty.divisor(torch.tensor(end))) for end in range(4, 13)]
        assert float(bound(penalty, total, length, longest=longest)) == pytest.approx(max(reachable))


def test_coverage_by_hand():
    looked = torch.tensor([[0.5, 2.0, 0.25], [0.5, 1.0, 0.0]])  # the second source has two tokens
    expected = [0.2 * (math.log(0.5) + math.log(0.25)), 0.2 * math.log(0.5)]
    assert coverage(0.2, looked, torch.tensor([3, 2])).tolist() == pytest.approx(expected)


def looking(source, written):
    """Two targets, [3] and [4]; the first looks at the first source token twice, the second at both."""
    log_probs = torch.full((5,), -20.0)
    if len(written) == 1:
        log_probs[3], log_probs[4] = math.log(0.6), math.log(0.4)
    else:
        log_probs[END] = 0.0
    looks = {(1,): [0.5, 0.5], (1, 3): [0.5, 0.5], (1, 4): [0.25, 0.75]}
    return log_probs, torch.tensor(looks.get(written, [0.5, 0.5]))


def test_coverage_counts_every_look_of_the_winning_row_only():
    search = Beam(size=2, n_best=2, penalty=NoPenalty(), coverage=1.0)
    first, second = decode(function_stepper(looking), [Job((3, 2), 5)], search=search, attention=True)[0]
    assert (first.tokens, second.tokens) == ((3,), (4,))
    assert first.score == pytest.approx(math.log(0.6), abs=1e-5)  # looked 1, 1
    assert second.score == pytest.approx(math.log(0.4) + math.log(0.75), abs=1e-5)  # looked .75, 1.25
    assert second.attention is not None and second.attention.tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_best_takes_the_first_of_equals():
    scores = torch.tensor([[1.0, 3, 3, 2, 3, 2], [0, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1, -torch.inf]])
    values, places = best(scores, 3)
    assert values.tolist() == [[3, 3, 3], [0, 0, 0], [5, 4, 3]]
    assert places.tolist() == [[1, 2, 4], [0, 1, 2], [0, 1, 2]]


def test_equal_hypotheses_come_in_a_fixed_order():
    def flat(source, written):
        return torch.full((5,), -1.5)

    found = decode(function_stepper(flat), [Job((3, 2), 2)] * 3, search=Beam(size=4, n_best=4, penalty=Exponent(1.0)))
    assert [[one.tokens for one in each] for each in found] == [[(), (3,), (3, 3), (3, 4)]] * 3


def test_hypotheses_at_the_limit_say_so():
    def endless(source, written):
        return torch.tensor([-9.0, -9, -30, -0.1, -5])

    for search in (Beam(size=2), Greedy()):
        found = decode(function_stepper(endless), [Job((3, 2), 3)], search=search)[0][0]
        assert found.tokens == (3, 3, 3) and found.full
        assert found.log_probs == pytest.approx([-0.1, -0.1, -0.1, -30])  # the forced end costs what the model says


def test_what_makes_no_sense_is_refused():
    for wrong in ({"size": 0}, {"size": 2, "n_best": 3}, {"coverage": -0.1}):
        with pytest.raises(UsageError):
            Beam(**wrong)
    with pytest.raises(UsageError, match="attention"):
        decode(function_stepper(table), [Job((3, 2), 3)], search=Beam(coverage=0.1))


@pytest.mark.parametrize("search", [Beam(), Greedy()], ids=str)
def test_a_model_without_numbers_is_named(search):
    with pytest.raises(ModelError, match="not a number"):
        decode(function_stepper(lambda source, written: torch.full((5,), torch.nan)), [Job((3, 2), 3)], search=search)


def test_a_model_that_rules_the_end_out_still_ends():
    def never(source, written):
        return torch.tensor([-torch.inf, -torch.inf, -torch.inf, -0.5, -0.9])

    for search in (Beam(size=3), Greedy()):
        assert len(decode(function_stepper(never), [Job((3, 2), 3)], search=search)[0][0].tokens) == 3
