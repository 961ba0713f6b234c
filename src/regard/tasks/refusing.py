"""What a task refuses before it reads anything: corpora of another kind, scores of another job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.errors import UsageError
from regard.run import Run


def only(corpora: Sequence[object], kinds: tuple[type, ...], *, part: str, reader: str) -> list[Any]:
    """These corpora, if the model can read them all."""
    names = ", ".join(str(getattr(kind, "kind", kind.__name__)) for kind in kinds)
    for corpus in corpora:
        if not isinstance(corpus, kinds):
            kind = getattr(corpus, "kind", type(corpus).__name__)
            raise UsageError(f"{reader} cannot read a corpus of kind {kind}", where=f"data.{part}", do=f"give {names}")
    return list(corpora)


def no_metrics(run: Run) -> None:
    """Other jobs have their own scores, not those of translations."""
    if run.metrics:
        raise UsageError(f"{run.metrics[0]} is a score of translations", where="metrics", do="leave metrics out")
