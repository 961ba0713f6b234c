"""The course as live pages: each lesson is run when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from regard.serve.app import Answer, Request, Routes, page_answer


def course(first: str, names: list[str], shown: Callable[[str], tuple[str, str]]) -> Routes:
    """The routes of all lessons, and of `first` as the page itself; `shown` gives the text and the policy of a lesson or of the index."""
    kept = cache(shown)

    def whole(name: str, request: Request) -> Answer:
        text, policy = kept(name)
        return page_answer(text, f"{policy}; frame-ancestors 'none'")

    return {("GET", ""): partial(whole, first), **{("GET", f"{name}.html"): partial(whole, name) for name in ["index", *names]}}
