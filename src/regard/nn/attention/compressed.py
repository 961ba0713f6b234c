"""Memory-compressed attention: a strided convolution makes one key and one value of every few (Liu 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.patterns import Causal
from regard.nn.cache import Slots, Written
from regard.nn.layout import Rows
from regard.nn.view import Tokens, View


@dataclass(frozen=True)
class Compressed:
    """Keys and values go through a convolution whose stride is its width; queries keep their length. For self-attention."""

    kind: ClassVar[Literal["compressed"]] = "compressed"
    short: ClassVar[str] = "DMCA"
    size: int = 3
    "How many tokens become one slot; what is left over at the end of a document becomes none."
    null: bool = False
    "One more slot, learned and always seen; without it the first tokens of a decoder, whose slot is not closed yet, see nothing."
    attention: Attention = Attention()
    "Scores, bias and all else of every head; to its patterns a slot stands where its last token does."

    def __post_init__(self):
        if self.size < 1:
            raise UsageError(f"size is {self.size}", where=self.kind, do="give 1 or more")


class CompressedAttention(MultiHead):
    """Slot m holds the tokens size * m ... size * m + size - 1 of a document, and a causal query sees it from the last of them on."""

    packs = False
    maps = False

    def __init__(self, config: Compressed, d_model: int, *, heads: int, groups: int, d_head: int, causal: bool, name: str):
        order = (Causal(),) if causal else ()
        super().__init__(config.attention, d_model, heads=heads, groups=groups, d_head=d_head, pattern=order, name=name)
        self.size = config.size
        self.key_convolution = nn.Conv1d(groups * d_head, groups * d_head, config.size, stride=config.size)
        self.value_convolution = nn.Conv1d(groups * self.d_value, groups * self.d_value, config.size, stride=config.size)
        self.widths = [groups * d_head, groups * self.d_value]
        self.null = nn.ParameterList(torch.zeros(groups, width) for width in (d_head, self.d_value)) if config.null else None

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, memory: int | None = None) -> Float[Tensor, "B T D"]:
        assert memory is None
        rows = Rows.of(view.own)
        x_NLD, tokens = rows.take(x_BTD), Tokens.padded(rows.real)
        more = max(0, self.size - x_NLD.shape[1])  # at least one slot, if only one that is not real
        key_NWL, value_NWL = (F.pad(self._flat(raw), (0, more)) for raw in self.project(x_NLD, tokens))
        real_NM = F.pad(rows.real, (0, more))[:, self.size - 1 :: self.size]
        key, value, seen = self._slots(self.key_convolution(key_NWL), self.value_convolution(value_NWL), real_NM)
        return rows.put(self._attend(self._query(x_NLD, tokens), key, value, tokens, seen, view.memo))

    def new_cache(self, rows: int, capacity: int) -> Written:
        return Closing(rows, capacity, self.size)

    def step(self, x_RTD: Float[Tensor, "R T D"], view: View, past: Written, slots: Slots) -> Float[Tensor, "R T D"]:
        assert isinstance(past, Closing)
        raw_RTW = torch.cat([self._flat(raw).mT for raw in self.project(x_RTD, view.own)], -1)
        closed_RMSW, column = past.extend(raw_RTW, view.own)
        key_window, value_window = closed_RMSW.flatten(0, 1).mT.split(self.widths, 1)
        made = torch.cat([self.key_convolution(key_window), self.value_convolution(value_window)], 1)[..., 0]
        kept_RMW = past.write(made.unflatten(0, closed_RMSW.shape[:2]), column, used=slots.used // self.size)
        key_RWM, value_RWM = kept_RMW.mT.split(self.widths, 1)
        key, value, seen = self._slots(key_RWM, value_RWM, past.real(kept_RMW.shape[1]))
        return self._attend(self._query(x_RTD, view.own), key, value, view.own, seen, view.memo)

    @staticmethod
    def _flat(heads_NGLE: Float[Tensor, "N G L E"]) -> Float[Tensor, "N W L"]:
        return heads_NGLE.transpose(2, 3).flatten(1, 2)

    def _slots(self, key_NWM: Tensor, value_NWM: Tensor, real_NM: Tensor) -> tuple[Tensor, Tensor, Tokens]:
        """Split into heads, with the facts of the slots and, in front, the one that is always seen."""
        key, value = (slots.unflatten(1, (self.groups, -1)).transpose(2, 3).contiguous() for slots in (key_NWM, value_NWM))
        positions = torch.arange(1, real_NM.shape[1] + 1, device=real_NM.device) * self.size - 1
        if self.null is not None:
            key, value = (
                torch.cat([null.to(slots.dtype)[:, None].expand(len(slots), -1, -1, -1), slots], 2)
                for null, slots in zip(self.null, (key, value), strict=True)
            )
            positions, real_NM = F.pad(positions, (1, 0), value=-1), F.pad(real_NM, (1, 0), value=True)
        positions = positions.expand(real_NM.shape)
        return key, value, Tokens(positions, torch.zeros_like(positions), real_NM)


class Closing:
    """The slots of one layer that are closed, and of the one that is open its tokens (one less than a slot holds, at most)."""

    def __init__(self, rows: int, capacity: int, size: int):
        self.rows, self.size, self.slots = rows, size, max(1, capacity // size)
        self.open: Tensor | None = None
        self.closed: Tensor | None = None
        self.lengths: Tensor | None = None  # tokens that each row has

    def extend(self, raw_RTW: Float[Tensor, "R T W"], tokens: Tokens) -> tuple[Float[Tensor, "R M size W"], Tensor]:
        """The tokens of every slot that may close in this step, and its place; the last ones are kept for the next step."""
        time, width, device = raw_RTW.shape[1], raw_RTW.shape[2], raw_RTW.device
        if self.open is None or self.closed is None or self.lengths is None:
            self.open = raw_RTW.new_zeros(self.rows, self.size - 1, width)
            self.closed = raw_RTW.new_zeros(self.rows, self.slots + 1, width)  # one more takes what lies beyond the last
            self.lengths = torch.zeros(self.rows, dtype=torch.long, device=device)
        row, first = torch.arange(self.rows, device=device)[:, None], self.lengths[:, None]
        joined = torch.cat([self.open, raw_RTW.new_zeros(self.rows, time + self.size + 1, width)], 1)
        place = torch.where(tokens.real, tokens.positions - first + self.size - 1, joined.shape[1] - 1)
        joined = joined.index_put((row, place), raw_RTW)
        count = tokens.real.sum(1, keepdim=True)
        self.lengths = (first + count)[:, 0]
        self.open = joined[row, count + torch.arange(self.size - 1, device=device)]
        slot = first // self.size + torch.arange(-(-time // self.size), device=device)
        within = (slot * self.size - first + self.size - 1)[..., None] + torch.arange(self.size, device=device)
        return joined[row[..., None], within], slot.clamp_max(self.slots)  # one that stays open is not real yet, and written again

    def write(self, made_RMW: Float[Tensor, "R M W"], column: Tensor, *, used: int) -> Float[Tensor, "R used W"]:
        """Put these slots where they belong; all there are by now."""
        assert self.closed is not None
        self.closed[torch.arange(self.rows, device=column.device)[:, None], column] = made_RMW
        return self.closed[:, : max(1, used)]

    def real(self, slots: int) -> Tensor:
        """Which of the first so many slots are closed in each row."""
        assert self.lengths is not None
        return torch.arange(1, slots + 1, device=self.lengths.device) * self.size <= self.lengths[:, None]

    def reorder(self, rows: Tensor, used: int) -> None:
        if self.open is not None and self.closed is not None and self.lengths is not None:
            self.open, self.closed, self.lengths = self.open[rows], self.closed[rows], self.lengths[rows]

    def trim(self, length: int) -> None:
        raise UsageError("a compressed layer that keeps only its open slot cannot forget its last words", do="begin the row again")

    def clear(self, rows: Sequence[int]) -> None:
        if self.open is not None and self.lengths is not None:
            self.open[list(rows)] = 0
            self.lengths[list(rows)] = 0
