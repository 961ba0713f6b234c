"""Long rows under a sparse pattern: cut into tiles, each tile of queries meets only the tiles of keys that its pattern may see.

Memory and time grow with the pairs that are seen, not with the square of the row (all that is squared is one bit for each pair of tiles).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.nn.attention.biases import ByDistance, NoBias
from regard.nn.attention.kernels import sdpa
from regard.nn.attention.predicate import FAR, Stretch, differs_by_head
from regard.nn.attention.sight import Sight
from regard.nn.view import Tokens

TILE = 64
FEW = 512  # pairs of tiles that go through at once, at least; more if the whole would need more than about eight goes


class Group(NamedTuple):
    """Tiles of queries that meet equally many tiles of keys, and who sees whom there."""

    queries: Int[Tensor, "M"]
    keys: Int[Tensor, "M*C"]
    sight: Sight


class Layout(NamedTuple):
    """All groups, and where each tile of queries is found in their outputs, one group after the other."""

    groups: list[Group]
    places: Int[Tensor, "N"]


def attend(query, key, value, *, sight: Sight, score, bias, dropout: float) -> Float[Tensor, "B H T E"]:
    """Heads that see differently go one by one, so that none pays for the others; unless parameters hold them together."""
    heads, batch = query.shape[1], query.shape[0]
    apart = not hasattr(score, "parameters") and not hasattr(bias, "parameters")
    if not (apart and sight.remember("heads differ", lambda: differs_by_head(sight.pattern, heads, sight.device))):
        layout = sight.remember(f"tiles {batch}", lambda: _layout(sight, batch))
        return _through(query, key, value, layout, score=score, bias=bias, dropout=dropout)
    each, shared = [], heads // key.shape[1]
    for head in range(heads):
        layout = sight.remember(f"tiles {batch} {head}", lambda head=head: _layout(sight.of_head(head), batch))
        mine, group = slice(head, head + 1), slice(head // shared, head // shared + 1)
        own_bias = bias if isinstance(bias, NoBias) else OneHead(bias, head, heads)
        each.append(_through(query[:, mine], key[:, group], value[:, group], layout, score=score, bias=own_bias, dropout=dropout))
    return torch.cat(each, 1)


def seen(sight: Sight) -> int:
    """How many pairs the heads see, all together; counted in the tiles that meet."""
    if not differs_by_head(sight.pattern, sight.heads, sight.device):
        return sight.heads * _seen(sight.of_head(0))
    return sum(_seen(sight.of_head(head)) for head in range(sight.heads))


def _seen(sight: Sight) -> int:
    return sum(int(group.sight.allowed().sum()) for group in _layout(sight, 1).groups)


@dataclass(frozen=True)
class OneHead(ByDistance):
    """What a bias says to one of its heads."""

    kind: ClassVar[str] = "one-head"
    bias: ByDistance
    head: int
    heads: int

    def at(self, distance, head, heads):
        return self.bias.at(distance, head + self.head, self.heads)


def _through(query, key, value, layout: Layout, *, score, bias, dropout: float) -> Tensor:
    time = query.shape[2]

    def one(group: Group, query_HNLE: Tensor, key_GNLE: Tensor, value_GNLE: Tensor) -> Tensor:
        out_MHLE = sdpa.attend(
            query_HNLE.index_select(1, group.queries).transpose(0, 1),
            _joined(key_GNLE, group),
            _joined(value_GNLE, group),
            sight=group.sight,
            score=score,
            bias=bias,
            dropout=dropout,
        )
        return out_MHLE.transpose(0, 1)

    # What was gathered is many times what it was gathered from, so it is not kept for the backward pass but gathered again.
    tiled, found = (_tiled(query), _tiled(key), _tiled(value)), []
    for group in layout.groups:
        if torch.is_grad_enabled():
            found.append(checkpoint(one, group, *tiled, use_reentrant=False, preserve_rng_state=dropout > 0))
        else:
            found.append(one(group, *tiled))
    out_HNLE = torch.cat(found, 1).index_select(1, layout.places)
    return out_HNLE.unflatten(1, (query.shape[0], -1)).transpose(0, 1).flatten(2, 3)[:, :, :time]


def _tiled(heads_BHTE: Float[Tensor, "B H T E"]) -> Float[Tensor, "H N L E"]:
    more = -heads_BHTE.shape[2] % TILE
    padded = F.pad(heads_BHTE, (0, 0, 0, more)) if more else heads_BHTE
    return padded.unflatten(2, (-1, TILE)).transpose(0, 1).flatten(1, 2)


def _joined(heads_GNLE: Float[Tensor, "G N L E"], group: Group) -> Float[Tensor, "M G C*L E"]:
    return heads_GNLE.index_select(1, group.keys).unflatten(1, (len(group.queries), -1)).flatten(2, 3).transpose(0, 1)


def _layout(sight: Sight, batch: int) -> Layout:
    queries, keys = (_tiles(tokens, batch) for tokens in sight.tokens())
    met_BQK = _met(sight, queries, keys)
    columns = met_BQK.shape[2]
    met_NK = met_BQK.flatten(0, 1)
    counts = met_NK.sum(1).tolist()
    rows_of: dict[int, list[int]] = {}
    for row, count in enumerate(counts):
        rows_of.setdefault(min(_rounded(count), columns), []).append(row)
    groups, order = [], []
    limit = max(FEW, sum(count * len(rows) for count, rows in rows_of.items()) // 8)
    parts = [(count, some) for count, rows in sorted(rows_of.items()) for some in _cut(rows, max(1, limit // count))]
    for count, rows in parts:
        places = torch.tensor(rows, device=sight.device)
        # A tile that is met less often than its group takes others besides, in which it may see nothing.
        chosen_MC = met_NK[places].to(torch.uint8).sort(dim=1, descending=True, stable=True).indices[:, :count]
        chosen_MC = chosen_MC + (places // met_BQK.shape[1] * columns)[:, None]
        inner = _inner(sight, _take(queries, places[:, None]), _take(keys, chosen_MC))
        groups.append(Group(places, chosen_MC.flatten(), inner))
        order += rows
    return Layout(groups, torch.tensor(order, device=sight.device).argsort())


def _rounded(count: int) -> int:
    """Up to a number of four binary digits, so that groups are few: an eighth of waste at most."""
    step = 1 << max(0, count.bit_length() - 4)
    return max(1, -(-count // step) * step)


def _cut(rows: list[int], length: int) -> list[list[int]]:
    return [rows[start : start + length] for start in range(0, len(rows), length)]


def _tiles(tokens: Tokens, batch: int) -> Tokens:
    """The facts of each tile, (B, tiles, TILE); what fills up the last one is not real."""
    more = -tokens.real.shape[1] % TILE

    def tiled(fact: Tensor) -> Tensor:
        return F.pad(fact, (0, more)).unflatten(1, (-1, TILE)).expand(batch, -1, -1)

    lengths = None if tokens.lengths is None else tiled(tokens.lengths)
    return Tokens(tiled(tokens.positions), tiled(tokens.documents), tiled(tokens.real), lengths=lengths)


def _met(sight: Sight, queries: Tokens, keys: Tokens) -> Bool[Tensor, "B Q K"]:
    """Which tiles may see which, by what is known of them as a whole."""
    (asking, asking_documents), (asked, asked_documents) = _stretch(queries, query=True), _stretch(keys, query=False)
    head_H11 = torch.arange(sight.heads, device=sight.device)[:, None, None] + sight.first_head
    met = sight.pattern.meets(asking, asked, head_H11).any(1, keepdim=True)
    apart = (asking_documents[0] > asked_documents[1]) | (asked_documents[0] > asking_documents[1])  # so is a tile without real tokens
    return (met & ~apart)[:, 0]


def _stretch(tokens: Tokens, *, query: bool) -> tuple[Stretch, tuple[Tensor, Tensor]]:
    def least(fact: Tensor) -> Tensor:
        found = torch.where(tokens.real, fact, FAR).amin(2)
        return found[:, None, :, None] if query else found[:, None, None, :]

    def most(fact: Tensor) -> Tensor:
        return -least(-fact)

    low, high, documents = least(tokens.positions), most(tokens.positions), (least(tokens.documents), most(tokens.documents))
    lengths = low if tokens.lengths is None else least(tokens.lengths)
    even = (documents[0] == documents[1]) & (high - low < TILE)
    return Stretch(low, high, lengths, even, TILE), documents


def _take(tiles: Tokens, chosen_MC: Int[Tensor, "M C"]) -> Tokens:
    def taken(fact: Tensor) -> Tensor:
        return fact.flatten(0, 1)[chosen_MC].flatten(1)

    lengths = None if tiles.lengths is None else taken(tiles.lengths)
    return Tokens(taken(tiles.positions), taken(tiles.documents), taken(tiles.real), lengths=lengths)


def _inner(sight: Sight, queries: Tokens, keys: Tokens) -> Sight:
    memo = {} if sight.memo is not None else None  # of the groups' masks; lives inside the one that was handed down
    lengths = queries.real.shape[1], keys.real.shape[1]
    return Sight(queries, keys, sight.pattern, lengths=lengths, heads=sight.heads, first=sight.first_head, device=sight.device, memo=memo)
