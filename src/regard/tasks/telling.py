"""What is said beside the work: a line to the terminal, and the page that goes with a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from regard.config.toml import unstructure


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def readme(what: str, *, learned: str, corpora: Iterable[object], use: str) -> str:
    """The README of a model folder."""
    named = "\n".join(f"- {json.dumps(unstructure(corpus), ensure_ascii=False)}" for corpus in corpora)
    return f"""# {what} made with regard

Trained on {learned}:

{named}

Use it with `{use}`. The licence of the data decides what may be done with the model.
"""
