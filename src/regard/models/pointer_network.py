"""The pointer network (Vinyals 2015): an encoder reads points, a decoder answers with some of them, each one the input of the next step."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import IGNORED
from regard.data.point_batch import PointBatch
from regard.errors import UsageError
from regard.models.configs import PointerNetwork
from regard.nn.cache import State
from regard.nn.pointer import PlaceOutput, PointedAt, PointerOutput
from regard.nn.tap import tap
from regard.nn.trunk import Trunk
from regard.nn.view import Memory, Tokens, View

COORDINATES = 2


class Pointer(nn.Module):
    """forward: all steps at once, the right points before them. new_state, admit and step: one after the other, the same numbers.

    An id is 0 for what stands before the first point, and after the last one; else one more than the place of a point.
    """

    packs = False  # sets are rows

    def __init__(self, config: PointerNetwork, *, encoder: Trunk, decoder: Trunk):
        super().__init__()
        if not config.problem:
            raise UsageError("the model does not know what it answers", where="model", do="give problem")
        if decoder.forcing < 1:
            raise UsageError("the next point follows the right one", where="model.decoder", do="set forcing = 1")
        self.config = config
        self.embedding = nn.Linear(COORDINATES, config.d_model)
        self.start = nn.Parameter(torch.randn(config.d_model) * config.d_model**-0.5)
        self.encoder, self.decoder = encoder, decoder
        self.output: PointerOutput | PlaceOutput
        if config.places:
            self.output = PlaceOutput(config.places, d_hidden=decoder.width)
        else:
            self.output = PointerOutput(config.score, d_hidden=decoder.width, d_memory=encoder.width)

    def forward(self, batch: PointBatch) -> Float[Tensor, "B T S+1"]:
        """Scores of what comes next at every step, minus infinity for padding."""
        inputs_BSD, memory = self.encode(batch.points, batch.real)
        told_BT = torch.cat([torch.zeros_like(batch.labels[:, :1]), batch.labels[:, :-1].clamp_min(0)], 1)
        view = View(Tokens.padded(batch.labels != IGNORED), (memory,))
        hidden_BTD = self.decoder(_taken(inputs_BSD, told_BT), view)
        return self.output(hidden_BTD, self.output.keys(memory.states), batch.real)

    def encode(self, points_BSC: Float[Tensor, "B S C"], real_BS: Bool[Tensor, "B S"]) -> tuple[Float[Tensor, "B S+1 D"], Memory]:
        """What the decoder is told of the start and of each point, and what it points at."""
        x_BSD = self.embedding(points_BSC)
        memory = self.encoder.read(x_BSD, Tokens.padded(real_BS))
        memory = replace(memory, states=tap(memory.states, "encoder.memory"))
        start_B1D = self.start.to(x_BSD.dtype).expand(len(x_BSD), 1, -1)
        return torch.cat([start_B1D, x_BSD], 1), memory

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State:
        state = self.decoder.new_state(rows, capacity, beam=beam, device=self.device)
        state.also = (PointedAt(rows // beam),)
        return state

    def admit(self, state: State, points_BSC: Tensor, real_BS: Tensor, slots: Tensor | None = None) -> None:
        """Read these sets, which are all of them or come into these slots."""
        inputs_BSD, memory = self.encode(points_BSC, real_BS)
        self.decoder.remember(state, (memory,), slots)
        _pointed_at(state).write(inputs_BSD, self.output.keys(memory.states), real_BS, slots)

    def step(self, ids: Int[Tensor, "R T"], tokens: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T S+1"]:
        """Take these ids in and score what comes next; `longest` bounds the positions after them."""
        state.write(tokens, longest=longest)
        there = _pointed_at(state)
        x_RTD = _taken(there.inputs, ids.reshape(len(there.inputs), -1)).reshape(*ids.shape, -1)
        return self.output(self.decoder(x_RTD, View(tokens), state), there.keys, there.real)

    @property
    def device(self) -> torch.device:
        return self.start.device


def _taken(inputs_BSD: Tensor, ids_BT: Tensor) -> Float[Tensor, "B T D"]:
    return inputs_BSD.gather(1, ids_BT[..., None].expand(-1, -1, inputs_BSD.shape[2]))


def _pointed_at(state: State) -> PointedAt:
    (there,) = state.also
    assert isinstance(there, PointedAt)
    return there
