"""Each pattern drawn out: x where a query (row) may see a key (column)."""

import pytest
import torch

from regard.errors import UsageError
from regard.nn.attention import And, Causal, Document, Facts, Full, Not, Or, Padding, Prefix, Window
from regard.nn.attention.patterns import together
from regard.nn.attention.predicate import EVERYWHERE, PAST, Band, Predicate
from regard.nn.attention.sight import Sight
from regard.nn.view import Tokens


def drawn(pattern, queries=None, keys=None, *, lengths=(5, 5), heads=1):
    sight = Sight(queries, keys, pattern, lengths=lengths, heads=heads, device=torch.device("cpu"))
    mask = sight.allowed().expand(1, -1, *lengths)[0, 0]
    return ["".join("x" if seen else "." for seen in row) for row in mask.tolist()]


def test_full_and_the_names_of_what_always_holds():
    everything = ["xxxxx"] * 5
    for pattern in (Full(), Document(), Padding(), And(()), Not(Not(Full()))):
        assert drawn(pattern) == everything
    assert drawn(Or(())) == drawn(~Full()) == ["....."] * 5


def test_causal():
    assert drawn(Causal()) == ["x....", "xx...", "xxx..", "xxxx.", "xxxxx"]
    assert drawn(~Causal()) == [".xxxx", "..xxx", "...xx", "....x", "....."]


def test_a_window_names_its_reach():
    assert drawn(Window(1)) == ["xx...", "xxx..", ".xxx.", "..xxx", "...xx"]
    assert drawn(Window(0)) == ["x....", ".x...", "..x..", "...x.", "....x"]
    assert drawn(Causal() & Window(2)) == ["x....", "xx...", "xxx..", ".xxx.", "..xxx"]


def test_a_prefix_language_model():
    assert drawn(Causal() | Prefix(3)) == ["xxx..", "xxx..", "xxx..", "xxxx.", "xxxxx"]


def test_pairs_of_a_window_are_counted():
    n, reach = 41, 7
    two_sided = sum(row.count("x") for row in drawn(Window(reach), lengths=(n, n)))
    causal = sum(row.count("x") for row in drawn(Causal() & Window(reach), lengths=(n, n)))
    assert two_sided == n * (2 * reach + 1) - reach * (reach + 1)
    assert causal == n * (reach + 1) - reach * (reach + 1) // 2


def test_documents_padding_and_positions_come_from_the_tokens():
    tokens = Tokens.packed(torch.tensor([2, 3]))
    assert drawn(Causal(), tokens, tokens) == ["x....", "xx...", "..x..", "..xx.", "..xxx"]
    padded = Tokens.padded(torch.tensor([[False, True, True, True, False]]))  # left padding moves nothing; unreal queries see nothing
    assert drawn(Causal(), padded, padded) == [".....", ".x...", ".xx..", ".xxx.", "....."]
    assert drawn(~Causal(), padded, padded) == [".....", "..xx.", "...x.", ".....", "....."]


def test_a_cache_is_asked_by_position_whatever_the_order_of_its_slots():
    cache = Tokens(torch.tensor([[4, 1, 2, 3, -1]]), torch.zeros(1, 5, dtype=torch.long), torch.tensor([[True, True, True, True, False]]))
    step = Tokens(torch.tensor([[3, 4]]), torch.zeros(1, 2, dtype=torch.long), torch.ones(1, 2, dtype=torch.bool))
    assert drawn(Causal(), step, cache, lengths=(2, 5)) == [".xxx.", "xxxx."]
    assert drawn(Causal() & Window(1), step, cache, lengths=(2, 5)) == ["..xx.", "x..x."]


def test_operators_are_flat_and_equal_by_value():
    assert Causal() & Window(3) & Prefix(2) == And((Causal(), Window(3), Prefix(2)))
    assert Causal() | Window(3) | Prefix(2) == Or((Causal(), Window(3), Prefix(2)))
    assert ~~Causal() == Causal()
    assert together((Causal(), Window(3))) == Causal() & Window(3)
    assert together((Causal(),)) == Causal() == together(Causal())


def test_bands():
    assert Full().band == Document().band == Padding().band == And(()).band == EVERYWHERE
    assert Causal().band == (Causal() & Document()).band == PAST
    assert Window(3).band == Band(3, 3)
    assert (Causal() & Window(3) & Window(5)).band == Band(3, 0)
    for pattern in (Prefix(2), ~Causal(), Causal() | Window(3), Causal() & Prefix(2)):
        assert pattern.band is None


def test_one_may_bring_a_pattern_of_ones_own_that_differs_by_head():
    class EveryOther(Predicate):
        def allows(self, query: Facts, key: Facts, head):
            return (query.positions - key.positions) % (head + 1) == 0

    sight = Sight(None, None, EveryOther() & Causal(), lengths=(5, 5), heads=2, device=torch.device("cpu"))
    assert (
        sight.allowed()[0, 0].tolist()
        == Sight(None, None, Causal(), lengths=(5, 5), heads=2, device=torch.device("cpu")).allowed()[0, 0].tolist()
    )
    assert sight.allowed()[0, 1].int().tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 1, 0, 1]]


def test_lengths_below_zero_are_refused():
    for wrong in (lambda: Window(-1), lambda: Prefix(-1)):
        with pytest.raises(UsageError, match="-1"):
            wrong()


def test_a_memo_makes_a_mask_once():
    tokens, memo = Tokens.packed(torch.tensor([2, 3])), {}

    def sight(pattern):
        return Sight(tokens, tokens, pattern, lengths=(5, 5), heads=3, device=torch.device("cpu"), memo=memo)

    assert sight(Causal()).allowed() is sight(Causal()).allowed()
    assert sight(Causal()).allowed() is not sight(Full()).allowed()
    assert sight(Causal()).additive(torch.float32).tolist() != sight(Full()).additive(torch.float32).tolist()
