"""The convolutional trunks: gated convolutions with an attention in every layer of the decoder (ConvS2S, Gehring 2017), or plain ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.glance import Glances, Looked, recalled
from regard.nn.attention.normalise import Normaliser, Softmax
from regard.nn.attention.scores import Dot, Score
from regard.nn.cache import State, Tail, new_state
from regard.nn.layout import Rows, apart
from regard.nn.tap import tap
from regard.nn.trunk import Trunk
from regard.nn.view import Memory, Tokens, View

HALF = math.sqrt(0.5)  # keeps the variance of a sum of two


@dataclass(frozen=True)
class Convolutional:
    """Layers of convolutions over neighbouring words."""

    kind: ClassVar[Literal["convolutional"]] = "convolutional"
    layers: int = 4
    "How many layers."
    width: int = 0
    "Channels of every layer; 0: d_model. Others than d_model are reached and left by a map."
    kernel: int = 3
    "Words that a layer looks at: as many on both sides (so, odd) in an encoder, the last ones in a decoder."
    dilated: bool = False
    "Each layer looks twice as far apart as the one below."
    gated: bool = True
    "Gated linear units, half of the channels the gate of the other; false: ReLU."
    skip: bool = True
    "Add what entered a layer to what leaves it, times the root of 1/2; false: plain convolutions."
    score: Score = Dot()
    "How well a place of the decoder fits a vector of the encoder; read by decoders only."
    normalise: Normaliser = Softmax()
    "How scores become weights; read by decoders only."
    shared_maps: bool = False
    "One pair of maps into and out of the attention for all layers; read by decoders only."
    dropout: float = 0.1
    "Dropout before every convolution, and on what comes out."

    def reach(self, layer: int) -> int:
        """From the first to the last word that a layer looks at."""
        return (self.kernel - 1) * (2**layer if self.dilated else 1)


class Layer(nn.Module):
    """glu(conv(x)), or relu(conv(x)); the row comes with what the convolution reaches beyond its ends."""

    def __init__(self, config: Convolutional, width: int, *, layer: int):
        super().__init__()
        self.gated = config.gated
        self.convolution = nn.Conv1d(width, 2 * width if config.gated else width, config.kernel, dilation=2**layer if config.dilated else 1)
        # the variance stays what it is: a gate passes a quarter of it, ReLU half
        nn.init.normal_(self.convolution.weight, std=math.sqrt((4 if config.gated else 2) * (1 - config.dropout) / (config.kernel * width)))
        self.convolution.bias.data.zero_()  # type: ignore[union-attr]  # it has one

    def forward(self, x_NLD: Float[Tensor, "N reach+L D"]) -> Float[Tensor, "N L D"]:
        found = self.convolution(x_NLD.mT).mT
        return F.glu(found, -1) if self.gated else found.relu()


class Look(nn.Module):
    """c = attention of (W x + e) sqrt(1/2) to the memories; what joins the layer is a map of c."""

    def __init__(self, config: Convolutional, width: int, d_model: int, *, memories: Sequence[Trunk], name: str):
        super().__init__()
        self.query = linear(width, d_model)
        widths = [memory.width for memory in memories]
        self.glances = Glances(config.score, config.normalise, keys="states", d_query=d_model, d_memories=widths, name=f"model.{name}")
        self.output = linear(self.glances.width, width)

    def forward(self, x_NLD: Tensor, embedded_NLD: Tensor, looked: Sequence[Looked], memo: dict, *, name: str) -> Float[Tensor, "N L D"]:
        query_NLD = (self.query(x_NLD) + embedded_NLD) * HALF
        return self.output(self.glances(query_NLD, looked, memo, name=name))


class ConvolutionalTrunk(Trunk):
    """Layers in a row, between a map to their width and a map back."""

    packs = False
    layers: Sequence[Layer]  # in an nn.ModuleList
    looks: Sequence[Look]  # of a decoder with memories: one for each layer, or one for all

    def __init__(self, config: Convolutional, d_model: int, *, causal: bool, memories: Sequence[Trunk] = (), name: str):
        super().__init__()
        if not causal and config.kernel % 2 == 0:
            raise UsageError(f"a kernel of {config.kernel} words has no middle", where=name, do="choose an odd kernel")
        width = config.width or d_model
        self.inward = linear(d_model, width) if width != d_model else nn.Identity()
        self.outward = linear(width, d_model) if width != d_model else nn.Identity()
        self.layers = nn.ModuleList(Layer(config, width, layer=layer) for layer in range(config.layers))  # type: ignore[assignment]
        count = min(config.layers, 1 if config.shared_maps else config.layers) if memories else 0
        self.looks = nn.ModuleList(  # type: ignore[assignment]
            Look(config, width, d_model, memories=memories, name=name) for _ in range(count)
        )
        self.config, self.causal, self.name, self.memories, self.width = config, causal, name, len(memories), d_model
        if self.looks:
            self.heads, self.cross_maps = 1, tuple(range(config.layers))

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, state: State | None = None) -> Float[Tensor, "B T D"]:
        rows = Rows.of(view.own)
        embedded_NLD = rows.take(x_BTD)
        if state is None:
            memories = tuple(apart(memory) for memory in view.memories)
            looked = [look.glances.project(memories) for look in self.looks]
        else:
            facts = state.memory_tokens
            looked = [recalled(kept, facts) for kept in state.cross]
        x_NLD = self.inward(embedded_NLD)
        for number, layer in enumerate(self.layers):
            joined = self._joined(self._dropped(x_NLD), rows.real, number, state)
            found_NLD = layer(joined)
            if self.looks:
                place = number % len(self.looks)
                told = self.looks[place](found_NLD, embedded_NLD, looked[place], view.memo, name=f"{self.name}.{number}")
                found_NLD = (found_NLD + told) * HALF
            x_NLD = tap((x_NLD + found_NLD) * HALF if self.config.skip else found_NLD, f"{self.name}.{number}.stream")
        return rows.put(self._dropped(self.outward(x_NLD)))

    def read(self, x_BSD: Float[Tensor, "B S D"], tokens: Tokens) -> Memory:
        """As ConvS2S has it, what is gathered is a place's vector together with its word's."""
        states_BSD = self(x_BSD, View(tokens))
        return Memory(states_BSD, tokens, values=(states_BSD + x_BSD) * HALF if self.config.skip else None)

    def new_state(self, rows: int, capacity: int, *, beam: int = 1, device: torch.device | str = "cpu") -> State:
        tails = [Tail(rows, self.config.reach(layer)) for layer in range(self.config.layers)]
        return new_state(rows, capacity, layers=tails, fixed=len(self.looks), memories=self.memories, beam=beam, device=device)

    def remember(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None = None) -> None:
        super().remember(state, tuple(apart(memory) for memory in memories), slots)

    def project(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None) -> None:
        for look, kept in zip(self.looks, state.cross, strict=True):
            look.glances.remember(kept, memories, slots)

    def _joined(self, x_NLD: Tensor, real_NL: Bool[Tensor, "N L"], layer: int, state: State | None) -> Float[Tensor, "N reach+L D"]:
        """The row with what lies around it: zeros, where padding is and beyond the ends; or what a state has kept of the past."""
        x_NLD, reach = x_NLD.masked_fill(~real_NL[..., None], 0.0), self.config.reach(layer)
        if state is not None:
            tail = state.layers[layer]
            assert isinstance(tail, Tail)
            return tail.extend(x_NLD, real_NL)
        before = reach if self.causal else reach // 2
        return F.pad(x_NLD, (0, 0, before, reach - before))

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)


def linear(d_in: int, d_out: int) -> nn.Linear:
    """A map that keeps the variance."""
    made = nn.Linear(d_in, d_out)
    nn.init.normal_(made.weight, std=d_in**-0.5)
    nn.init.zeros_(made.bias)
    return made
