"""Sparse patterns drawn out by hand, counted by formula, and asked about stretches: nothing that is seen may be left out."""

import pytest
import torch

from regard.config.toml import structure
from regard.errors import UsageError
from regard.nn.attention import BigBird, BlockEnds, BlockLocal, Causal, Dilated, Full, Global, Prefix, RandomBlocks, Strided, Window
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.predicate import Facts, Stretch
from regard.nn.attention.sight import Sight
from regard.nn.view import Tokens


def masks(pattern, tokens=None, *, length=7, heads=1):
    sight = Sight(tokens, tokens, pattern, lengths=(length, length), heads=heads, device=torch.device("cpu"))
    return sight.allowed().expand(-1, heads, length, length)[0]


def drawn(pattern, tokens=None, *, length=7, heads=1, head=0):
    return ["".join("x" if seen else "." for seen in row) for row in masks(pattern, tokens, length=length, heads=heads)[head].tolist()]


def test_a_dilated_window_has_gaps():
    assert drawn(Dilated(1)) == ["x.x....", ".x.x...", "x.x.x..", ".x.x.x.", "..x.x.x", "...x.x.", "....x.x"]
    assert drawn(Causal() & Dilated(2, (3,))) == ["x......", ".x.....", "..x....", "x..x...", ".x..x..", "..x..x.", "x..x..x"]
    assert drawn(Dilated(2, (1,))) == drawn(Window(2))


def test_each_head_has_a_step_of_its_own():
    pattern = Dilated(1, (1, 3))
    assert drawn(pattern, heads=3, head=0) == drawn(pattern, heads=3, head=2) == drawn(Window(1))
    assert drawn(pattern, heads=3, head=1) == ["x..x...", ".x..x..", "..x..x.", "x..x..x", ".x..x..", "..x..x.", "...x..x"]


def test_strides_and_blocks():
    assert drawn(Causal() & Strided(3)) == ["x......", ".x.....", "..x....", "x..x...", ".x..x..", "..x..x.", "x..x..x"]
    assert drawn(BlockLocal(3)) == ["xxx....", "xxx....", "xxx....", "...xxx.", "...xxx.", "...xxx.", "......x"]
    assert drawn(BlockLocal(2, reach=1)) == ["xxxx...", "xxxx...", "xxxxxx.", "xxxxxx.", "..xxxxx", "..xxxxx", "....xxx"]
    assert drawn(Causal() & BlockLocal(3))[:4] == ["x......", "xx.....", "xxx....", "...x..."]


def test_global_positions_see_and_are_seen():
    assert drawn(Global(2), length=4) == ["xxxx", "xxxx", "xx..", "xx.."]
    assert drawn(Global(0, at=(2,)), length=4) == ["..x.", "..x.", "xxxx", "..x."]
    assert drawn(Global(1, side="keys"), length=4) == ["x...", "x...", "x...", "x..."]
    assert drawn(Global(1, side="queries"), length=4) == ["xxxx", "....", "....", "...."]
    assert drawn(Window(1) | Global(1), length=5) == ["xxxxx", "xxx..", "xxxx.", "x.xxx", "x..xx"]
    assert drawn(Causal() & (Window(1) | Global(1)), length=5) == ["x....", "xx...", "xxx..", "x.xx.", "x..xx"]


def test_bigbird_by_its_parts():
    assert drawn(BlockEnds(2)) == ["xxxxxxx", "xxxxxxx", "xx....x", "xx....x", "xx....x", "xx....x", "xxxxxxx"]
    seen = masks(BigBird(1, random=2, seed=3), length=11, heads=2)
    ends, window, random = (masks(part, length=11, heads=2) for part in (BlockEnds(1), BlockLocal(1, reach=1), RandomBlocks(1, 2, 3)))
    assert torch.equal(seen, ends | window | random)
    assert not (random & (ends | window)).any()
    assert random[:, 1:-1].sum(-1).tolist() == [[2] * 9] * 2 and not random[:, [0, -1]].any()
    assert not torch.equal(random[0], random[1])  # each head its own table


def test_the_table_of_random_blocks_is_what_it_always_was():
    """A model that was trained with one must find it again."""
    assert drawn(RandomBlocks(1, 2, seed=5), length=9) == TABLE
    assert drawn(RandomBlocks(1, 2, seed=6), length=9) != TABLE


TABLE = [".........", "...x..x..", ".....x.x.", ".x.....x.", "..x....x.", "..x....x.", ".x.x.....", ".x.x.....", "........."]


def test_random_blocks_go_everywhere():
    random = torch.stack([masks(RandomBlocks(1, 1, seed), length=13)[0] for seed in range(300)]).float().mean(0)
    for row in range(1, 12):
        left = [column for column in range(1, 12) if abs(row - column) > 1]
        assert random[row, left].tolist() == pytest.approx([1 / len(left)] * len(left), abs=0.08)


def test_pairs_of_bigbird_are_counted():
    nb, r = 64, 3
    counted = int(masks(BigBird(1, random=r), length=nb).sum())
    assert counted == 2 * nb + 2 * (4 + r) + (nb - 4) * (5 + r)
    assert 64**2 * counted == 2_547_712


def test_few_blocks_see_all_there_are():
    for length in (1, 4, 6, 7):
        assert masks(BigBird(2, random=3), length=length).all()


def test_pairs_of_dilated_windows_are_counted():
    n, r, step = 41, 5, 3
    assert int(masks(Dilated(r, (step,)), length=n).sum()) == n * (2 * r + 1) - step * r * (r + 1)


def test_each_document_has_its_own_ends():
    tokens = Tokens.packed(torch.tensor([5, 7]))
    whole = masks(BigBird(1, random=1), tokens, length=12)[0]
    assert torch.equal(whole[:5, :5], masks(BigBird(1, random=1), length=5)[0])
    assert torch.equal(whole[5:, 5:], masks(BigBird(1, random=1), length=7)[0])
    padded = Tokens.padded(torch.tensor([[False, True, True, True, True, True, False]]))
    assert torch.equal(masks(BigBird(1, random=1), padded)[0, 1:6, 1:6], masks(BigBird(1, random=1), length=5)[0])


PATTERNS = [
    Full(),
    Causal(),
    Window(3),
    Causal() & Window(9),
    Prefix(3),
    ~Window(2),
    Dilated(2, (1, 3)),
    Strided(5),
    BlockLocal(3),
    BlockLocal(5, reach=1),
    Global(2, at=(11,)),
    Global(0, at=(17,), side="keys"),
    Window(2) | Global(1),
    BlockEnds(3),
    BlockEnds(7),
    RandomBlocks(3, 2),
    RandomBlocks(7, 1),
    Causal() & RandomBlocks(2, 3),
    BigBird(2, random=2),
]


@pytest.mark.parametrize("size", [1, 4, 5])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_a_stretch_that_is_seen_is_met(pattern, size):
    n, heads = 40, 2
    positions = torch.arange(n)
    facts = Facts(positions, positions * 0, positions >= 0, positions * 0 + n)
    head = torch.arange(heads)[:, None, None]
    seen = pattern.allows(Facts(*(f[:, None] for f in facts)), Facts(*(f[None] for f in facts)), head).expand(heads, n, n)
    tiled = seen.unflatten(1, (-1, size)).unflatten(3, (-1, size)).any(4).any(2)
    low = positions[::size]
    stretch = Stretch(low, low + size - 1, low * 0 + n, low >= 0, size)
    query, key = (Stretch(*(f if isinstance(f, int) else f.reshape(shape) for f in stretch)) for shape in ((-1, 1), (1, -1)))
    met = pattern.meets(query, key, head).expand(heads, n // size, n // size)
    assert not (tiled & ~met).any()
    if pattern.sparse and size == 1 and not isinstance(pattern, Dilated):
        assert torch.equal(met, tiled)


def test_they_are_written_in_toml():
    table = {"pattern": [{"kind": "or", "parts": [{"kind": "window", "reach": 9}, {"kind": "global", "first": 2}]}, "bigbird"]}
    assert structure(Attention, table).pattern == (Window(9) | Global(2), BigBird())
    assert structure(Attention, {"pattern": {"kind": "dilated", "reach": 4, "steps": [1, 2]}}).pattern == (Dilated(4, (1, 2)),)


WRONG = [
    lambda: Dilated(-1),
    lambda: Dilated(1, ()),
    lambda: Dilated(1, (0,)),
    lambda: Strided(0),
    lambda: BlockLocal(0),
    lambda: BlockLocal(2, -1),
    lambda: Global(-1),
    lambda: BlockEnds(0),
    lambda: RandomBlocks(0),
    lambda: BigBird(random=-1),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_sizes_that_cannot_be_are_refused(wrong):
    with pytest.raises(UsageError, match="or more"):
        wrong()


def test_what_measures_a_document_cannot_write_one():
    config = Attention(pattern=(BigBird(2),))
    MultiHead(config, 8, heads=2, groups=2, d_head=4, pattern=(), name="encoder.0.own")
    with pytest.raises(UsageError, match="how long the row is"):
        MultiHead(config, 8, heads=2, groups=2, d_head=4, pattern=(Causal(),), name="decoder.0.own")
