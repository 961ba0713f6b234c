"""A translator as search sees it: slots of sources, `beam` rows each, one token a step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from regard.data.batch import Side
from regard.decode.state import OpenStepper, Step
from regard.models.translator import Translator
from regard.nn.tap import record
from regard.nn.view import Tokens


class TranslatorStepper:
    """The caches of one search over `slots` sources. `heads` names the (layer, head) pairs whose mean is the attention that is reported."""

    def __init__(self, model: Translator, *, slots: int, beam: int, capacity: int, heads: Sequence[tuple[int, int]] = ()):
        self.model, self.beam, self.heads, self.capacity = model, beam, tuple(heads), capacity
        self.state = model.new_state(slots * beam, capacity, beam=beam)
        self.source = Tokens.plain(slots, 1, device=model.device)
        self.lengths = [0] * slots  # tokens written by the rows of each slot
        self.positions = torch.zeros(slots * beam, dtype=torch.long, device=model.device)

    @property
    def continuous(self) -> bool:
        return True

    @property
    def device(self) -> torch.device:
        return self.model.device

    @torch.inference_mode()
    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        whole = list(slots) == list(range(len(self.lengths)))
        width = max(0 if whole else self.source.real.shape[1], *(len(source) for source in sources))
        ids = torch.zeros(len(sources), width, dtype=torch.long)
        for row, source in enumerate(sources):
            ids[row, : len(source)] = torch.tensor(source)
        real = torch.arange(width) < torch.tensor([len(source) for source in sources])[:, None]
        tokens = Tokens.padded(real).to(self.model.device)
        memory = self.model.encode(Side(ids.to(self.model.device), tokens))
        if whole:
            self.source = tokens
            self.model.decoder.remember(self.state, (memory,), (tokens,))
        else:
            self._widen(width)
            where = torch.tensor(list(slots), device=self.model.device)
            for kept, new in zip(_facts(self.source), _facts(tokens), strict=True):
                kept[where] = new
            self.model.decoder.remember(self.state, (memory,), (tokens,), where)
        rows = [slot * self.beam + k for slot in slots for k in range(self.beam)]
        self.state.clear(rows)
        self.positions[rows] = 0
        for slot in slots:
            self.lengths[slot] = 0

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        self.lengths = [min(length + 1, self.capacity) for length in self.lengths]
        positions = self.positions[:, None]
        facts = Tokens(
            positions.clamp_max(self.capacity - 1), torch.zeros_like(positions), positions < self.capacity
        )  # what has ended may step on, unheard
        with ExitStack() as stack:
            names = sorted({f"decoder.{layer}.cross.weights" for layer, _ in self.heads})
            seen = stack.enter_context(record(self.model, *names)) if names else {}
            hidden = self.model.step(tokens[:, None], facts, self.source, self.state, longest=max(self.lengths))
        self.positions = (self.positions + 1).clamp_max(self.capacity)
        log_probs = F.log_softmax(self.model.output(hidden)[:, 0].float(), dim=-1)
        return Step(log_probs, self._attention(seen) if self.heads else None)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        self.state.reorder(rows)

    def _attention(self, seen: dict[str, list[Tensor]]) -> Tensor:
        """Mean of the chosen heads; the rows of a source asked together, so they come apart again."""
        chosen = [seen[f"decoder.{layer}.cross.weights"][0][:, head] for layer, head in self.heads]
        return torch.stack(chosen).mean(0).flatten(0, 1)

    def _widen(self, width: int) -> None:
        """Make room for longer sources beside the ones that are there."""
        more = width - self.source.real.shape[1]
        if self.state.cross[0][0].key is None:  # the very first sources: nothing is there yet
            slots, device = len(self.lengths), self.model.device
            self.source = Tokens.padded(torch.zeros(slots, width, dtype=torch.bool, device=device))
            empty = torch.zeros(slots, width, self.model.config.d_model, device=device, dtype=self.model.output.table.dtype)
            self.model.decoder.remember(self.state, (empty,), (self.source,))
        elif more:
            positions, documents, real = (F.pad(fact, (0, more)) for fact in _facts(self.source))
            self.source = Tokens(positions, documents, real)
            for fixed in self.state.cross:
                for memory in fixed:
                    assert memory.key is not None and memory.value is not None
                    memory.key, memory.value = F.pad(memory.key, (0, 0, 0, more)), F.pad(memory.value, (0, 0, 0, more))


def opener(model: Translator, *, heads: Sequence[tuple[int, int]] = ()) -> OpenStepper:
    """What search opens: steppers of this model. `heads` report the attention; by default all of the last layer but one."""
    layer = max(0, model.config.decoder.layers - 2)
    chosen = tuple(heads) or tuple((layer, head) for head in range(model.config.decoder.heads))

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> TranslatorStepper:
        return TranslatorStepper(model, slots=slots, beam=beam, capacity=capacity, heads=chosen if attention else ())

    return open_stepper


def _facts(tokens: Tokens) -> tuple[Tensor, Tensor, Tensor]:
    return tokens.positions, tokens.documents, tokens.real
