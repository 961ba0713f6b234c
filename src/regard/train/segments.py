"""The loss of a model that remembers: each stream of text goes on from what its last segment left in the layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.segment_batches import SegmentBatch
from regard.errors import ModelError, UsageError
from regard.models.language_model import Writer
from regard.nn.attention.segments import Recent
from regard.nn.cache import State
from regard.nn.view import Tokens
from regard.train.loss import Besides, CrossEntropy, real_rows, summed

F = TypeVar("F", bound=Callable)


@dataclass(frozen=True, eq=False)
class Left:
    """What the last segment of each stream left. Never changed: a step that has to be taken again begins with the one it had."""

    ends: tuple[int, ...]  # where in the text each stream has come to; -1: nowhere
    layers: tuple[Float[Tensor, "R M D"], ...]
    facts: Tokens

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        named = {f"layer.{number}": states for number, states in enumerate(self.layers)}
        facts = self.facts
        named |= {"positions": facts.positions, "documents": facts.documents, "real": facts.real}
        return named | {"ends": torch.tensor(self.ends)}

    @staticmethod
    def of(tensors: Mapping[str, Tensor], *, device: torch.device) -> Left:
        try:
            layers = tuple(tensors[f"layer.{number}"].to(device) for number in range(len(tensors) - 4))
            facts = Tokens(tensors["positions"], tensors["documents"], tensors["real"]).to(device)
            return Left(tuple(tensors["ends"].tolist()), layers, facts)
        except KeyError as error:
            raise ModelError(f"of what the segments left {error} is missing") from None


def _uncompiled(bookkeeping: F) -> F:
    """Where in the text each stream has come to is the host's to know, and another number in each step."""
    return torch.compiler.disable(bookkeeping)  # type: ignore[return-value]


class SegmentObjective(nn.Module):
    """Model and loss as one module. Batches come in the order of the text; one that does not go on where its streams were begins anew."""

    def __init__(self, model: Writer, loss: CrossEntropy):
        super().__init__()
        if loss.r_drop:
            raise UsageError("r_drop is for sentence pairs", where="train.loss", do="set r_drop = 0")
        self.model, self.loss = model, loss
        self.besides = Besides(model, loss)
        self.left: Left | None = None

    def forward(self, batch: SegmentBatch) -> Float[Tensor, ""]:
        state, rows = self._recall(batch)
        hidden_BTD = self.model.go_on(batch.text, state, longest=batch.longest)
        self._leave(batch, state, rows)
        labels_N, hidden_ND = real_rows(batch.labels, batch), real_rows(hidden_BTD, batch)
        return summed(self.model.output, [hidden_ND], labels_N, loss=self.loss, besides=self.besides())  # pyright: ignore[reportCallIssue]  # torch types disable loosely

    @_uncompiled
    def _recall(self, batch: SegmentBatch) -> tuple[State, Int[Tensor, "R"] | None]:
        """The state in which these rows go on, and their places among the streams unless they are all of them."""
        count, device = len(batch.pairs), batch.labels.device
        state = self.model.new_state(count, 0)
        rows = None if batch.streams == tuple(range(batch.of)) else torch.tensor(batch.streams, device=device)
        left = self.left
        if left is None or len(left.ends) != batch.of:
            return state, rows
        goes_on = torch.tensor([left.ends[stream] == start for stream, start in zip(batch.streams, batch.pairs, strict=True)])
        facts = left.facts if rows is None else left.facts.each(lambda fact: fact[rows])
        if not goes_on.all():
            facts = replace(facts, real=facts.real & goes_on.to(device, non_blocking=True)[:, None])
        for past, states in zip(_recent(state), left.layers, strict=True):
            past.states, past.tokens = states if rows is None else states[rows], facts
        return state, rows

    @_uncompiled
    def _leave(self, batch: SegmentBatch, state: State, rows: Tensor | None) -> None:
        """What is not finite, of a step that will be skipped, would never leave again."""
        layers = tuple(past.states.detach().nan_to_num(0.0, 0.0, 0.0) for past in _recent(state) if past.states is not None)
        facts = _recent(state)[0].tokens
        assert facts is not None
        if rows is None:
            self.left = Left(batch.ends, layers, facts)
            return
        left = self.left
        if left is None or len(left.ends) != batch.of:
            empty = facts.each(lambda fact: fact.new_zeros(batch.of, fact.shape[1]))
            left = Left((-1,) * batch.of, tuple(states.new_zeros(batch.of, *states.shape[1:]) for states in layers), empty)
        ends = dict(enumerate(left.ends)) | dict(zip(batch.streams, batch.ends, strict=True))
        put = lambda before, after: before.index_copy(0, rows, after.to(before.dtype))
        was = left.facts
        mixed = Tokens(put(was.positions, facts.positions), put(was.documents, facts.documents), put(was.real, facts.real))
        self.left = Left(tuple(ends.values()), tuple(map(put, left.layers, layers)), mixed)


def _recent(state: State) -> list[Recent]:
    return [past for past in state.layers if isinstance(past, Recent)]
