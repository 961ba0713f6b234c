"""The explorer as a live page: what it shows at first, and what the browser may ask of the model afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.errors import UsageError
from regard.look.opening import clearest
from regard.look.page import page
from regard.look.trace import Trace, as_json
from regard.serve.app import Answer, Request, Routes, json_answer, page_answer

LONGEST_TEXT = 20_000  # characters of a sentence typed into the page


def explorer(traces: Sequence[Trace], *, look: Callable[[str], Trace] | None = None) -> Routes:
    """The routes of a page over these traces; with `look` it can be asked for further sentences."""
    shown = page(traces, live=["trace"] if look else [])

    def whole(request: Request) -> Answer:
        return page_answer(shown.text, f"{shown.policy}; frame-ancestors 'none'")

    def trace(request: Request) -> Answer:
        assert look is not None
        seen = look(_text(request))
        return json_answer({"trace": as_json(seen), "opening": clearest(seen)._asdict()})

    return {("GET", ""): whole, **({("POST", "trace"): trace} if look else {})}


def _text(request: Request) -> str:
    text = request.body.get("text") if isinstance(request.body, dict) else None
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise UsageError(f"a text of at most {LONGEST_TEXT} characters is wanted")
    return text
