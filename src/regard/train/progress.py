"""How far a run has come: all of its state that is not a tensor, plain enough to be stored as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from regard.data.batching import Cursor
from regard.errors import ModelError


@dataclass
class Progress:
    """Counts since the run began, over all ranks and all resumptions."""

    step: int = 0  # steps taken, those that were skipped included: batch and dropout are functions of it
    skipped: int = 0
    bad_in_a_row: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    pairs: int = 0
    elapsed: float = 0.0  # seconds in the loop
    cursor: Cursor = Cursor()  # the place in the data after this step
    scores: list[float] = field(default_factory=list)  # of the evaluations, the higher the better
    scored: list[int] = field(default_factory=list)  # the steps at which they were made
    done: dict[str, int] = field(default_factory=dict)  # the last step at which each event ran to its end
    window: list[float] = field(default_factory=lambda: [0.0, 0.0])  # loss and target tokens since the last line of the log

    @property
    def updates(self) -> int:
        """Steps that moved the parameters: what the schedule counts."""
        return self.step - self.skipped

    @property
    def best(self) -> int:
        """The step with the best score, -1 before the first."""
        return self.scored[self.scores.index(max(self.scores))] if self.scores else -1

    @property
    def since_best(self) -> int:
        """Evaluations since the best one."""
        return len(self.scores) - 1 - self.scores.index(max(self.scores)) if self.scores else 0

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(value: object) -> Progress:
        known = {f.name for f in dataclasses.fields(Progress)}
        if not isinstance(value, dict) or set(value) != known:
            raise ModelError("the stored progress has other fields than this version writes")
        try:
            return Progress(**{**value, "cursor": Cursor(**value["cursor"])})
        except TypeError as error:
            raise ModelError(f"the stored progress cannot be read: {error}") from error
