"""Each rule alone, on rows whose contents are written out; then in a search."""

import math

import pytest
import torch

from regard.decode.beam import Beam
from regard.decode.constrain import Banned, Limit, Minimum, Never, NoRepeat, Only, Prefix, WayOut, possible
from regard.decode.draft import Job, Written
from regard.decode.engine import decode
from regard.decode.sample import Greedy, Sample
from regard.decode.state import Marks
from regard.decode.step_function import function_stepper
from regard.errors import UsageError

V = 7


def rows(*targets: list[int], minimum: int = 0, limit: int = 9, prefix: tuple[int, ...] = ()) -> Written:
    """One row for each of these unfinished targets."""
    jobs = [Job((3, 2), limit, minimum, prefix)] * len(targets)
    written = Written(len(targets), 1, jobs=jobs, marks=Marks(), device=torch.device("cpu"), attention=False)
    written.begin(range(len(targets)), jobs)
    written.reserve(11)
    for row, target in enumerate(targets):
        written.tokens[row, : len(target)] = torch.tensor(target, dtype=torch.long)
        written.lengths[row] = written.steps[row] = len(target)
    return written


def allowed(constraint, written: Written, before: torch.Tensor | None = None) -> list[set[int]]:
    start = torch.ones(len(written.lengths), V, dtype=torch.bool) if before is None else before
    kept = start.clone()
    after = constraint(written, start)
    assert torch.equal(start, kept), "a rule changed its input"
    return [set(row.nonzero().flatten().tolist()) for row in after]


ALL = set(range(V))


def test_never_and_only():
    assert allowed(Never((0, 5)), rows([3])) == [{1, 2, 3, 4, 6}]
    assert allowed(Only((4, 6)), rows([3])) == [{2, 4, 6}]


def test_banned_phrases_of_several_lengths():
    banned = Banned(((6,), (3, 4), (3, 5), (5, 3, 4)))
    assert allowed(banned, rows([], [3], [4, 3], [5, 3], [3, 5])) == [ALL - {6}, *[ALL - {6, 4, 5}] * 3, ALL - {6}]
    assert allowed(Banned(((5, 3, 4),)), rows([3], [5, 3], [3, 5, 3], [5, 4])) == [ALL, ALL - {4}, ALL - {4}, ALL]
    with pytest.raises(UsageError):
        Banned(((3,), ()))


def test_no_n_gram_twice():
    assert allowed(NoRepeat(1), rows([], [3, 5])) == [ALL, ALL - {3, 5}]
    assert allowed(NoRepeat(2), rows([3], [3, 4, 3], [3, 3], [3, 4, 5, 3, 6, 3])) == [ALL, ALL - {4}, ALL - {3}, ALL - {4, 6}]
    assert allowed(NoRepeat(3), rows([3, 4], [3, 4, 5, 3, 4], [3, 3, 3])) == [ALL, ALL - {5}, ALL - {3}]


def test_lengths():
    assert allowed(Minimum(), rows([], [3], [3, 4], minimum=2)) == [ALL - {2}, ALL - {2}, ALL]
    assert allowed(Limit(), rows([3], [3, 4], limit=2)) == [ALL, {2}]


def test_prefix_overrules_and_then_lets_go():
    nothing = torch.zeros(3, V, dtype=torch.bool)
    assert allowed(Prefix(), rows([], [4], [4, 5], prefix=(4, 5)), nothing) == [{4}, {5}, set()]
    assert allowed(Prefix(), rows([3]), nothing[:1]) == [set()]


def test_the_way_out_opens_only_when_all_else_is_closed():
    before = torch.tensor([[False] * V, [False, False, False, True, False, False, False]])
    assert allowed(WayOut(), rows([3], [3]), before) == [{2}, {3}]


def test_what_is_possible_keeps_the_models_own_numbers():
    log_probs = torch.randn(1, V).log_softmax(1)
    scores = possible(log_probs, rows([3, 4], minimum=3), [NoRepeat(1)])
    assert scores[0, [5, 6]].tolist() == log_probs[0, [5, 6]].tolist()
    assert scores[0, [0, 1, 2, 3, 4]].tolist() == [-math.inf] * 5


def chatter(source, written):
    """Says 3 4 3 4 ... for ever, the end never being likely."""
    likely = 4 if written[-1] == 3 else 3
    log_probs = torch.full((V,), -5.0)
    log_probs[likely], log_probs[2] = -0.1, -7.0
    return log_probs


@pytest.mark.parametrize("search", [Greedy(), Beam(size=1), Beam(size=3), Sample(top_k=1)], ids=str)
def test_rules_hold_in_every_search(search):
    def found(job, *constraints):
        return decode(function_stepper(chatter), [job, job], search=search, constraints=constraints)[1][0].tokens

    assert found(Job((3, 2), 4)) == (3, 4, 3, 4)
    assert found(Job((3, 2), 4, prefix=(6, 6, 6))) == (6, 6, 6, 3)
    assert found(Job((3, 2), 1, prefix=(5, 6))) == (5, 6)  # a prefix past the limit moves the limit
    assert found(Job((3, 2), 4, minimum=4), Only((4,))) == (4, 4, 4, 4)
    assert (3, 4) not in list(zip(found(Job((3, 2), 6), Banned(((3, 4),))), found(Job((3, 2), 6), Banned(((3, 4),)))[1:]))
    bigrams = list(zip(long := found(Job((3, 2), 8), NoRepeat(2)), long[1:]))
    assert len(bigrams) == len(set(bigrams)) > 3


def test_minimum_holds_in_search():
    def hasty(source, written):
        return torch.tensor([-9.0, -9, -0.01, -5, -6, -7, -8])

    for search in (Greedy(), Beam(size=3)):
        assert decode(function_stepper(hasty), [Job((3, 2), 9)], search=search)[0][0].tokens == ()
        assert len(decode(function_stepper(hasty), [Job((3, 2), 9, minimum=4)], search=search)[0][0].tokens) == 4


def test_prefix_counts_in_the_score():
    found = decode(function_stepper(chatter), [Job((3, 2), 2, prefix=(6, 5))], search=Greedy())[0][0]
    assert found.log_probs == (-5.0, -5.0, -7.0)


def test_each_source_has_its_own_prefix():
    jobs = [Job((3, 2), 4, prefix=(6,)), Job((3, 2), 4), Job((3, 2), 4, prefix=(5, 4, 6))]
    for search in (Greedy(), Beam(size=2)):
        found = [each[0].tokens for each in decode(function_stepper(chatter), jobs, search=search)]
        assert found == [(6, 3, 4, 3), (3, 4, 3, 4), (5, 4, 6, 3)]


def test_a_row_with_nowhere_to_go_ends_even_before_its_minimum():
    for search in (Greedy(), Beam(size=2)):
        found = decode(function_stepper(chatter), [Job((3, 2), 5, minimum=3)], search=search, constraints=[Only((4,)), NoRepeat(1)])
        assert found[0][0].tokens == (4,)
