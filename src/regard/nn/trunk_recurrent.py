"""The recurrent trunks: an encoder that reads word by word, from one side or both, and a decoder that may look back at what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.glance import Glances, Keys, Looked, recalled
from regard.nn.attention.normalise import Normaliser, Softmax
from regard.nn.attention.scores import Additive, Bilinear, Score
from regard.nn.bridge import Bridge, ends, summary
from regard.nn.cache import State, Vectors, new_state
from regard.nn.cells import Cell, Cells, vectors_of
from regard.nn.layout import Rows, apart
from regard.nn.tap import tap
from regard.nn.trunk import Trunk
from regard.nn.view import Memory, Tokens, View


@dataclass(frozen=True)
class NoAttention:
    """The decoder begins from the encoder's last state (Sutskever 2014), and that is all it is told."""

    kind: ClassVar[Literal["none"]] = "none"
    every_step: bool = False
    "Show that state to every step and to the output too: in goes [y; z], out comes [s; z; y] (Cho 2014)."


@dataclass(frozen=True)
class Bahdanau:
    """The state before the step looks; what it gathers enters the step: in goes [y; c], out comes [s; c; y] (Bahdanau 2015)."""

    kind: ClassVar[Literal["bahdanau"]] = "bahdanau"
    score: Score = Additive(width=256)
    "How well a state of the decoder fits a vector of the encoder."
    normalise: Normaliser = Softmax()
    "How scores become weights."
    keys: Keys = "states"
    "What is scored and what is gathered: the states both times, their two halves (Daniluk 2017), or two maps of them."


@dataclass(frozen=True)
class Luong:
    """The state after the step looks; out comes tanh(W [c; s]) (Luong 2015)."""

    kind: ClassVar[Literal["luong"]] = "luong"
    score: Score = Bilinear()
    "How well a state of the decoder fits a vector of the encoder."
    normalise: Normaliser = Softmax()
    "How scores become weights."
    keys: Keys = "states"
    "What is scored and what is gathered: the states both times, their two halves (Daniluk 2017), or two maps of them."
    input_feeding: bool = True
    "Whether what came out enters the next step besides the word."


RecurrentAttention = NoAttention | Bahdanau | Luong


@dataclass(frozen=True)
class Recurrent:
    """Layers of recurrent cells."""

    kind: ClassVar[Literal["recurrent"]] = "recurrent"
    cell: Cell = "gru"
    "rnn, gru or lstm, as torch defines them."
    layers: int = 1
    "How many layers."
    width: int = 0
    "Width of a state; 0: d_model."
    bidirectional: bool = False
    "Read from both sides; encoders only."
    attention: RecurrentAttention = Bahdanau()
    "How the decoder looks at the encoder; read by decoders only."
    output: int = 0
    "Width to which what comes out is mapped; 0: it stays as it is."
    forcing: float = 1.0
    "How often, in training, a decoder is given the right last word and not its own most probable one; drawn anew for each step."
    dropout: float = 0.1
    "Dropout between layers, and on what comes out."

    def __post_init__(self):
        if not 0 <= self.forcing <= 1:
            raise UsageError(f"forcing is {self.forcing}", do="it is a share: choose 0 to 1")


class RecurrentEncoder(Trunk):
    """A vector for each word, of all that was read up to it; from both sides, of everything."""

    packs = False

    def __init__(self, config: Recurrent, d_model: int, *, name: str):
        super().__init__()
        width, ways = config.width or d_model, 2 if config.bidirectional else 1
        self.cells = Cells(
            config.cell, d_model, width=width, layers=config.layers, dropout=config.dropout, bidirectional=config.bidirectional
        )
        self.output = nn.Linear(ways * width, config.output) if config.output else nn.Identity()
        self.width, self.final = config.output or ways * width, (len(vectors_of(config.cell)), config.layers, ways * width)
        self.dropout, self.name = config.dropout, name

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, state: State | None = None) -> Float[Tensor, "B T D"]:
        return self.read(x_BTD, view.own).states

    def read(self, x_BSD: Float[Tensor, "B S D"], tokens: Tokens) -> Memory:
        rows = Rows.of(tokens)
        states_NLW, final = self.cells.read(rows.take(x_BSD), rows.real)
        states_BSD = self.output(F.dropout(rows.put(states_NLW), self.dropout, self.training))
        return Memory(tap(states_BSD, f"{self.name}.stream"), tokens, final=final)


class RecurrentDecoder(Trunk):
    """A step takes a word and the state, looks at the memories, and hands on what may follow."""

    packs = False

    def __init__(self, config: Recurrent, d_model: int, *, memories: Sequence[Trunk] = (), name: str):
        super().__init__()
        if config.bidirectional:
            raise UsageError("it cannot read from the end what it has yet to write", where=name, do="set bidirectional = false")
        width, attention = config.width or d_model, config.attention
        self.glances = None
        if memories and not isinstance(attention, NoAttention):
            widths = [memory.width for memory in memories]
            self.glances = Glances(
                attention.score, attention.normalise, keys=attention.keys, d_query=width, d_memories=widths, name=f"model.{name}"
            )
        gathered = self.glances.width if self.glances is not None else 0
        self.join = None
        match attention:
            case NoAttention():
                told = sum(ends(memory)[2] for memory in memories) if attention.every_step else 0
                d_in, d_out = d_model + told, width + (told + d_model if told else 0)
            case Bahdanau():
                d_in, d_out = d_model + gathered, width + gathered + d_model
            case Luong():
                d_in, d_out = d_model + (width if attention.input_feeding else 0), width
                self.join = nn.Linear(gathered + width, width, bias=False)
        self.cells = Cells(config.cell, d_in, width=width, layers=config.layers, dropout=config.dropout)
        self.bridge = Bridge(memories, vectors=self.cells.vectors, layers=config.layers, width=width)
        self.output = nn.Linear(d_out, config.output) if config.output else nn.Identity()
        self.config, self.name, self.memories = config, name, len(memories)
        self.width, self.forcing = config.output or d_out, config.forcing
        if self.glances is not None:
            self.heads, self.cross_maps = 1, (0,)

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, state: State | None = None) -> Float[Tensor, "B T D"]:
        if state is None:
            rows, memories = Rows.of(view.own), tuple(apart(memory) for memory in view.memories)
            x_NLD = rows.take(x_BTD)
            looked = self.glances.project(memories) if self.glances is not None else []
            out_NLD, _ = self._through(x_NLD, self._first(memories, x_NLD), looked, view.memo, stops=None)
            return self._out(rows.put(out_NLD))
        (now,) = state.layers
        assert isinstance(now, Vectors)
        looked = recalled(state.cross[0], state.memory_tokens) if self.glances is not None else []
        if not now.now:  # there is no source
            now.begin(self._first((), x_BTD[:: now.beam]))
        out_RTD, now.now = self._through(x_BTD, now.now, looked, view.memo, stops=view.own.real)
        return self._out(out_RTD)

    def new_state(self, rows: int, capacity: int, *, beam: int = 1, device: torch.device | str = "cpu") -> State:
        looks = 0 if self.glances is None else 1
        return new_state(rows, capacity, layers=[Vectors(beam)], fixed=looks, memories=self.memories, beam=beam, device=device)

    def remember(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None = None) -> None:
        super().remember(state, tuple(apart(memory) for memory in memories), slots)

    def project(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None) -> None:
        (vectors,) = state.layers
        assert isinstance(vectors, Vectors)
        vectors.begin(self._first(memories, memories[0].states), slots)
        if self.glances is not None:
            self.glances.remember(state.cross[0], memories, slots)

    def draw(self, length: int) -> list[bool]:
        return (torch.rand(length) < self.forcing).tolist()

    def _first(self, memories: tuple[Memory, ...], like: Float[Tensor, "N T D"]) -> dict[str, Tensor]:
        """What the first step goes on from."""
        first = self.bridge(memories, like)
        match self.config.attention:
            case NoAttention(every_step=True) if memories:
                first["told"] = summary(memories)
            case Luong(input_feeding=True):
                first["fed"] = torch.zeros_like(first["h"][:, 0])
        return first

    def _through(
        self, x_RTD: Tensor, vectors: dict[str, Tensor], looked: Sequence[Looked], memo: dict, *, stops: Bool[Tensor, "R T"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Step by step where a step needs what the one before it made of the memory, or where rows may stop; else all at once."""
        alone = isinstance(self.config.attention, NoAttention) or ("fed" not in vectors and isinstance(self.config.attention, Luong))
        if alone and stops is None:
            return self._step(x_RTD, vectors, looked, memo)
        pieces = []
        for step in range(x_RTD.shape[1]):
            out_R1D, after = self._step(x_RTD[:, step : step + 1], vectors, looked, memo)
            if stops is not None:  # padding leaves a row as it was
                after = {name: torch.where(_like(stops[:, step], new), new, vectors[name]) for name, new in after.items()}
            pieces.append(out_R1D)
            vectors = after
        return torch.cat(pieces, 1), vectors

    def _step(self, x_RTD: Tensor, vectors: dict[str, Tensor], looked: Sequence[Looked], memo: dict) -> tuple[Tensor, dict[str, Tensor]]:
        match self.config.attention:
            case NoAttention():
                told = [vectors["told"][:, None].expand(-1, x_RTD.shape[1], -1).to(x_RTD.dtype)] if "told" in vectors else []
                s_RTD, after = self.cells(torch.cat([x_RTD, *told], -1), vectors)
                return (torch.cat([s_RTD, *told, x_RTD], -1) if told else s_RTD), vectors | after
            case Bahdanau():
                found = self._look(vectors["h"][:, -1:].to(x_RTD.dtype), looked, memo)
                s_RTD, after = self.cells(torch.cat([x_RTD, found], -1), vectors)
                return torch.cat([s_RTD, found, x_RTD], -1), after
            case Luong():
                fed = [vectors["fed"][:, None].to(x_RTD.dtype)] if "fed" in vectors else []
                s_RTD, after = self.cells(torch.cat([x_RTD, *fed], -1), vectors)
                assert self.join is not None
                out_RTD = self.join(torch.cat([self._look(s_RTD, looked, memo), s_RTD], -1)).tanh()
                return out_RTD, after | ({"fed": out_RTD[:, -1].to(vectors["fed"].dtype)} if fed else {})

    def _look(self, query_RTD: Float[Tensor, "R T D"], looked: Sequence[Looked], memo: dict) -> Float[Tensor, "R T E"]:
        """What is gathered from the memories."""
        if self.glances is None:
            return query_RTD[..., :0]
        return self.glances(query_RTD, looked, memo, name=f"{self.name}.0")

    def _out(self, out_BTD: Tensor) -> Tensor:
        return tap(self.output(F.dropout(out_BTD, self.config.dropout, self.training)), f"{self.name}.stream")


def _like(real_R: Bool[Tensor, "R"], vector: Tensor) -> Tensor:
    return real_R.reshape(-1, *[1] * (vector.dim() - 1))
