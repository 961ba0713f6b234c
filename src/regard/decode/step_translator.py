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
from regard.decode.stepper import ModelStepper
from regard.errors import UsageError
from regard.models.translator import Translator
from regard.nn.tap import record
from regard.nn.view import Tokens


class TranslatorStepper(ModelStepper[Translator]):
    """The caches of one search over `slots` sources. `heads` names the (layer, head) pairs whose mean is the attention that is reported."""

    def __init__(self, model: Translator, *, slots: int, beam: int, capacity: int, heads: Sequence[tuple[int, int]] = ()):
        super().__init__(model, slots=slots, beam=beam, capacity=capacity)
        self.heads = tuple(heads)

    @torch.inference_mode()
    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        width = max(len(source) for source in sources)
        ids = torch.zeros(len(sources), width, dtype=torch.long)
        for row, source in enumerate(sources):
            ids[row, : len(source)] = torch.tensor(source)
        real = torch.arange(width) < torch.tensor([len(source) for source in sources])[:, None]
        source = Side(ids, Tokens.padded(real)).to(self.device)
        self.model.admit(self.state, source, self.clock.chosen(slots))
        self.restart(slots)

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        facts, longest = self.clock.tick()
        with ExitStack() as stack:
            names = sorted({self._tap(layer) for layer, _ in self.heads})
            seen = stack.enter_context(record(self.model, *names)) if names else {}
            scores_R1V = self.model.step_scores(tokens[:, None], facts, self.state, longest=longest)
        log_probs = F.log_softmax(scores_R1V[:, 0].float(), dim=-1)
        return Step(log_probs, self._attention(seen) if self.heads else None)

    def _tap(self, layer: int) -> str:
        """Where the weights over the (first) source pass."""
        return f"decoder.{layer}.{'cross0' if self.model.more_encoders else 'cross'}.weights"

    def _attention(self, seen: dict[str, list[Tensor]]) -> Tensor:
        """Mean of the chosen heads; the rows of a source asked together, so they come apart again."""
        chosen = [seen[self._tap(layer)][0][:, head] for layer, head in self.heads]
        return torch.stack(chosen).mean(0).flatten(0, 1)


def opener(model: Translator, *, heads: Sequence[tuple[int, int]] = ()) -> OpenStepper:
    """What search opens: steppers of this model. `heads` report the attention; by default all of the last layer but one."""
    there = model.decoder.cross_maps
    for one, head in heads:
        if one not in there or not 0 <= head < model.decoder.heads:
            known = f"layers {', '.join(map(str, there)) or 'none'} with heads 0 to {model.decoder.heads - 1} do"
            raise UsageError(f"no head {one}:{head} looks at the source", do=f"choose another: {known}")
    chosen = tuple(heads) or tuple((layer, head) for layer in there[-2:][:1] for head in range(model.decoder.heads))

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> TranslatorStepper:
        if attention and not chosen:
            raise UsageError("the decoder has no attention to the source", do="ask without alignment, and without a penalty for coverage")
        return TranslatorStepper(model, slots=slots, beam=beam, capacity=capacity, heads=chosen if attention else ())

    return open_stepper
