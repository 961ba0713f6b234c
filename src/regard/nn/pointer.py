"""A pointer as output: the places of the memory themselves are what can be answered, and beside them the end (Vinyals 2015)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.scores import Score
from regard.nn.cache import Kept
from regard.nn.tap import tap


class PointerOutput(nn.Module):
    """score(hidden, [end; places]): 0 is the end, a place of its own that is learned; place j is j + 1."""

    def __init__(self, score: Score, *, d_hidden: int, d_memory: int):
        super().__init__()
        if d_hidden != d_memory and not score.mixes:
            raise UsageError(
                f"{score.kind} compares the decoder's {d_hidden} numbers with the encoder's {d_memory}",
                where="model.score",
                do="choose bilinear or additive, or trunks of one width",
            )
        self.end = nn.Parameter(torch.randn(d_memory) * d_memory**-0.5)
        self.score = score.build(1, d_hidden, d_memory)

    def keys(self, states_BSD: Float[Tensor, "B S D"]) -> Float[Tensor, "B S+1 K"]:
        """What is worked out of the places once."""
        end_B1D = self.end.to(states_BSD.dtype).expand(len(states_BSD), 1, -1)
        return self.score.prepare(torch.cat([end_B1D, states_BSD], 1)[:, None])[:, 0]

    def forward(
        self, hidden_RTD: Float[Tensor, "R T D"], keys_BSK: Float[Tensor, "B S+1 K"], real_BS: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "R T S+1"]:
        """Scores, minus infinity for padding. Rows that share a memory ask together, as one longer query."""
        rows, time = hidden_RTD.shape[:2]
        query_B1TD = hidden_RTD.reshape(len(keys_BSK), 1, -1, hidden_RTD.shape[-1])
        scores_BTS = self.score.prepared.pairwise(query_B1TD, keys_BSK[:, None].to(hidden_RTD.dtype))[:, 0]
        return tap(without(scores_BTS.reshape(rows, time, -1), real_BS), "pointer.scores")


class PlaceOutput(nn.Module):
    """A row of a table for the end and for each place, whatever stands there: what pointing is measured by."""

    def __init__(self, places: int, *, d_hidden: int):
        super().__init__()
        self.table = nn.Linear(d_hidden, places + 1)

    def keys(self, states_BSD: Float[Tensor, "B S D"]) -> Float[Tensor, "B S+1 0"]:
        """Nothing is asked of the places, but that there be no more of them than rows."""
        if states_BSD.shape[1] >= self.table.out_features:
            what = f"{states_BSD.shape[1]} points, and answers for {self.table.out_features - 1} of them"
            raise UsageError(what, where="model.places", do="give fewer points, or train with more places")
        return states_BSD.new_zeros(len(states_BSD), states_BSD.shape[1] + 1, 0)

    def forward(
        self, hidden_RTD: Float[Tensor, "R T D"], keys_BSK: Float[Tensor, "B S+1 0"], real_BS: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "R T S+1"]:
        scores_RTS = self.table(hidden_RTD)[..., : keys_BSK.shape[1]]
        return tap(without(scores_RTS, real_BS), "pointer.scores")


def without(scores_RTS: Float[Tensor, "R T S+1"], real_BS: Bool[Tensor, "B S"]) -> Float[Tensor, "R T S+1"]:
    """In full precision, and minus infinity for padding; rows of one set stand side by side."""
    scores_RTS = scores_RTS.to(torch.promote_types(scores_RTS.dtype, torch.float32))
    absent_BS = torch.cat([real_BS.new_zeros(len(real_BS), 1), ~real_BS], 1)
    return scores_RTS.masked_fill(absent_BS.repeat_interleave(len(scores_RTS) // len(real_BS), 0)[:, None], -torch.inf)


class PointedAt:
    """What a search keeps of each memory: its places as inputs (the start before them), as keys, and which are real."""

    def __init__(self, memories: int):
        self.kept = Kept(memories, along=1)

    def write(self, inputs_BSD: Tensor, keys_BSK: Tensor, real_BS: Tensor, slots: Tensor | None) -> None:
        self.kept.write((inputs_BSD, keys_BSK, torch.nn.functional.pad(real_BS, (1, 0), value=True)), slots)

    @property
    def inputs(self) -> Float[Tensor, "B S+1 D"]:
        return self.kept.tensors[0]

    @property
    def keys(self) -> Float[Tensor, "B S+1 K"]:
        return self.kept.tensors[1]

    @property
    def real(self) -> Bool[Tensor, "B S"]:
        return self.kept.tensors[2][:, 1:]

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        """Nothing here is a row's own."""

    def trim(self, length: int) -> None:
        """Nothing here was written by rows."""

    def clear(self, rows: Sequence[int]) -> None:
        """Nothing here is a row's own."""
