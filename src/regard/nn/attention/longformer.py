"""Longformer's attention: a window for most, everything for a few, which look with projections of their own (Beltagy 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.patterns import Window, together
from regard.nn.attention.sparse import Global
from regard.nn.view import View


@dataclass(frozen=True)
class Longformer:
    """A window, and global positions with queries, keys and values of their own; for encoders."""

    kind: ClassVar[Literal["longformer"]] = "longformer"
    reach: int = 256
    "How far the window reaches on each side (half of what others call the attention window)."
    first: int = 1
    "How many positions at the start of the document are global."
    at: tuple[int, ...] = ()
    "Further positions that are."
    attention: Attention = Attention()
    "Scores, bias and all else of every head; its patterns hold besides."


class LongformerAttention(MultiHead):
    """One softmax over window and global keys for all others; for global positions one over everything, through the second set of maps.

    Each of the two calls leaves the other's rows empty, that is zero; so their sum is the output.
    """

    maps = False  # its weights come in two parts: NAME.weights and NAME.global_weights

    def __init__(self, config: Longformer, d_model: int, *, heads: int, groups: int, d_head: int, causal: bool, name: str):
        if causal:
            do = "keep it for encoders, or combine the patterns window and global"
            raise UsageError("its global positions see the whole row, which a decoder is still writing", where=name, do=do)
        looking = Global(config.first, config.at, side="queries")
        local = (Window(config.reach) | Global(config.first, config.at, side="keys")) & ~looking
        super().__init__(config.attention, d_model, heads=heads, groups=groups, d_head=d_head, pattern=(local,), name=name)
        biases = config.attention.biases
        self.global_query = nn.Linear(d_model, heads * d_head, bias=biases)
        self.global_key = nn.Linear(d_model, groups * d_head, bias=biases)
        self.global_value = nn.Linear(d_model, groups * self.d_value, bias=biases)
        self.everything = together((looking, *config.attention.pattern))

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, memory: int | None = None) -> Float[Tensor, "B T D"]:
        assert memory is None
        own, memo = view.own, view.memo
        near = self.found(self._query(x_BTD, own), *self.project(x_BTD, own), own, own, memo, pattern=self.pattern, name="weights")
        query_BHTE = self._split(self.global_query, x_BTD, self.heads, turned=own)
        key_BGSE = self._split(self.global_key, x_BTD, self.groups, turned=own)
        value_BGSE = self._split(self.global_value, x_BTD, self.groups)
        far = self.found(query_BHTE, key_BGSE, value_BGSE, own, own, memo, pattern=self.everything, name="global_weights")
        return self._join(near + far)

    def copy_maps(self) -> None:
        """The second set of maps begins as the first."""
        for mine, ordinary in ((self.global_query, self.query), (self.global_key, self.key), (self.global_value, self.value)):
            mine.load_state_dict(ordinary.state_dict())
