"""Multi-head attention: project, split into heads, attend, join, project. Self- or cross-attention by what it is given as memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.attend import attend
from regard.nn.attention.biases import Bias, NoBias
from regard.nn.attention.dispatch import Kernel
from regard.nn.attention.normalise import Normaliser, Softmax
from regard.nn.attention.patterns import Causal, Full, Pattern, together
from regard.nn.attention.predicate import Predicate
from regard.nn.attention.scores import ScaledDot, Score
from regard.nn.attention.slot import Slot
from regard.nn.cache import Fixed, Growing, Slots, Written
from regard.nn.positions import NoRotation, Rotary, Rotation, rotate
from regard.nn.tap import Stages, tap
from regard.nn.view import Tokens, View


@dataclass(frozen=True)
class Attention:
    """What one attention slot computes; the trunk says how many heads there are and how wide."""

    kind: ClassVar[Literal["attention"]] = "attention"
    score: Score = ScaledDot()
    "How well a query fits a key."
    pattern: tuple[Pattern, ...] = ()
    "Who may see whom, all of them together; a decoder's self-attention is causal besides."
    bias: Bias = NoBias()
    "What is added to the scores for the distance."
    rotation: Rotation = NoRotation()
    "Whether queries and keys are turned by their position."
    normalise: Normaliser = Softmax()
    "How scores become weights."
    kernel: Literal["auto"] | Kernel = "auto"
    "The implementation: auto takes what serves best; one that is named serves, or it is an error with the reason."
    d_value: int = 0
    "Width of each head's values, where it is not that of its queries and keys; 0: it is."
    biases: bool = True
    "Whether the four projections have biases."
    dropout: float = 0.0
    "Dropout on the weights (the fast GPU kernels have none)."


class MultiHead(Slot):
    """softmax(Q K^T / sqrt(d_k) + ..) V for each head, concatenated, times W_O."""

    maps = True

    def __init__(self, config: Attention, d_model: int, *, heads: int, groups: int, d_head: int, pattern: tuple[Pattern, ...], name: str):
        super().__init__()
        if heads % groups:
            raise UsageError(f"{heads} heads cannot share {groups} key-value heads evenly", where=name, do="choose a divisor of heads")
        self.heads, self.groups, self.d_head, self.name = heads, groups, d_head, name
        self.d_value = config.d_value or d_head
        if self.d_value < 0:
            raise UsageError(f"d_value is {self.d_value}", where=name, do="give 1 or more, or 0 for that of the keys")
        if config.bias.asks == "values" and self.d_value != d_head:
            do = "leave out d_value, or the bias's values"
            raise UsageError("its bias adds vectors as wide as keys to the values, which are not", where=name, do=do)
        self.query = nn.Linear(d_model, heads * d_head, bias=config.biases)
        self.key = nn.Linear(d_model, groups * d_head, bias=config.biases)
        self.value = nn.Linear(d_model, groups * self.d_value, bias=config.biases)
        self.output = nn.Linear(heads * self.d_value, d_model, bias=config.biases)
        self.score = config.score.build(heads, d_head, d_head)
        self.bias = config.bias.build(heads, d_head)
        self.pattern = together((*pattern, *config.pattern) or Full())
        if Causal() in pattern and self.pattern.measures:
            do = "keep it for encoders; a window, blocks or global positions serve decoders too"
            raise UsageError("its pattern asks how long the row is, and a row that is being written has no length yet", where=name, do=do)
        self.config = config

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, memory: int | None = None) -> Float[Tensor, "B T D"]:
        """Attend to the row itself, or to the memory of this number."""
        source, keys = (x_BTD, view.own) if memory is None else (view.memories[memory].states, view.memories[memory].tokens)
        return self._attend(self._query(x_BTD, view.own), *self.project(source, keys), view.own, keys, view.memo)

    def new_cache(self, rows: int, capacity: int) -> Written:
        """What `step` keeps of the past."""
        return Growing(rows, capacity)

    def step(self, x_RTD: Float[Tensor, "R T D"], view: View, past: Written, slots: Slots) -> Float[Tensor, "R T D"]:
        """Attend to the past and to oneself, and leave one's own keys and values in the cache."""
        assert isinstance(past, Growing)
        key_RGSE, value_RGSE = past.extend(*self.project(x_RTD, view.own), slots)
        return self._attend(self._query(x_RTD, view.own), key_RGSE, value_RGSE, view.own, slots.keys, view.memo)

    def look(self, x_RTD: Float[Tensor, "R T D"], view: View, memory: Fixed, memory_tokens: Tokens) -> Float[Tensor, "R T D"]:
        """Attend to a memory projected before; the rows of one source ask together, as one longer query."""
        assert memory.key is not None and memory.value is not None
        rows, time, sources = x_RTD.shape[0], x_RTD.shape[1], memory.key.shape[0]
        query_RHTE, tokens = self._query(x_RTD, view.own), view.own
        if rows != sources:
            query_RHTE = query_RHTE.unflatten(0, (sources, -1)).transpose(1, 2).flatten(2, 3)
            if "together" not in view.memo:
                view.memo["together"] = Tokens(
                    tokens.positions.reshape(sources, -1), tokens.documents.reshape(sources, -1), tokens.real.reshape(sources, -1)
                )
            tokens = view.memo["together"]
        out = self._attend(query_RHTE, memory.key, memory.value, tokens, memory_tokens, view.memo)
        return out.reshape(rows, time, -1)

    def project(self, memory: Float[Tensor, "B S D"], tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Keys and values of a memory, split into heads."""
        key_BGSE = self._split(self.key, memory, self.groups, turned=tokens)
        return tap(key_BGSE, f"{self.name}.key"), tap(self._split(self.value, memory, self.groups), f"{self.name}.value")

    def _query(self, x: Tensor, tokens: Tokens) -> Tensor:
        return tap(self._split(self.query, x, self.heads, turned=tokens), f"{self.name}.query")

    def _split(self, layer: nn.Linear, x: Tensor, heads: int, *, turned: Tokens | None = None) -> Float[Tensor, "B H T E"]:
        """Through this map, into heads, and turned by the positions of these tokens, if it is asked for."""
        heads_BHTE = layer(x).unflatten(-1, (heads, -1)).transpose(1, 2)
        if turned is not None and isinstance(self.config.rotation, Rotary):
            heads_BHTE = rotate(heads_BHTE, turned.positions, self.config.rotation)
        return heads_BHTE

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, queries: Tokens | None, keys: Tokens | None, memo: dict) -> Tensor:
        return self._join(self.found(query, key, value, queries, keys, memo, pattern=self.pattern, name="weights"))

    def found(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        queries: Tokens | None,
        keys: Tokens | None,
        memo: dict,
        *,
        pattern: Predicate,
        name: str,
    ) -> Float[Tensor, "B H T E"]:
        """What each head finds; its weights pass the tap of this name, what comes before them those of names like it."""
        taps = f"{self.name}.{name.removesuffix('weights')}"
        return attend(
            query,
            key,
            value,
            queries=queries,
            keys=keys,
            pattern=pattern,
            score=self.score,
            bias=self.bias,
            normalise=self.config.normalise,
            kernel="auto" if Stages(taps).watched() else self.config.kernel,
            dropout=self.config.dropout if self.training else 0.0,
            memo=memo,
            taps=taps,
        )

    def _join(self, out_BHTE: Float[Tensor, "B H T E"]) -> Float[Tensor, "B T D"]:
        return self.output(tap(out_BHTE, f"{self.name}.heads").transpose(1, 2).flatten(2))
