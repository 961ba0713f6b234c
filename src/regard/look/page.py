"""One self-contained page from traces: style, data and script in a single file that asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from regard.look.opening import clearest
from regard.look.palette import stylesheet
from regard.look.trace import Trace, as_json
from regard.models.folder import replace_text

SCRIPTS = (
    "data.js",
    "state.js",
    "tokens.js",
    "controls.js",
    "picture.js",
    "matrix.js",
    "replay.js",
    "live.js",
    "keys.js",
)  # laid end to end

# ASCII-only JSON leaves three characters that mean something to an HTML parser; in JSON they may all be written as escapes.
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Page(NamedTuple):
    """A page and what the browser may do for it; the policy stands in the text, and a server sends it as a header besides."""

    text: str
    policy: str


def write_page(path: str | Path, traces: Sequence[Trace]) -> None:
    """Write the page; with several traces it has a selector of sentences."""
    replace_text(Path(path), page(traces).text)


def page(traces: Sequence[Trace], *, live: Sequence[str] = ()) -> Page:
    """The page over these traces; `live` names what it may ask the server that it comes from."""
    assets = files("regard.look") / "page"
    script = "\n".join((assets / name).read_text(encoding="utf-8") for name in SCRIPTS)
    openings = [clearest(trace)._asdict() for trace in traces]
    parts = {
        "policy": policy(script, connects=bool(live)),
        "style": stylesheet() + (assets / "look.css").read_text(encoding="utf-8"),
        "data": embed({"traces": [as_json(trace) for trace in traces], "openings": openings, "live": list(live)}),
        "script": script,
    }
    # in one pass, so that a placeholder's name inside the data stays what it is
    text = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], (assets / "page.html").read_text(encoding="utf-8"))
    return Page(text, parts["policy"])


def embed(value: object) -> str:
    """JSON that may stand inside a script element: no string in it can end the element or open another one."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda found: ESCAPES[found[0]], text)


def policy(script: str, *, connects: bool = False) -> str:
    """What the browser may do for this page: run this one script, talk to its own server if it has one, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = ["default-src 'none'", f"script-src 'sha256-{digest}'", "style-src 'unsafe-inline'", "img-src data: blob:"]
    rules += ["connect-src 'self'"] if connects else []
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def frame(trace: Trace) -> str:
    """The page in a notebook's cell: a frame that can run its script and touch nothing around it."""
    return f'<iframe sandbox="allow-scripts" style="width:100%;height:46rem;border:0" srcdoc="{html.escape(page([trace]).text)}"></iframe>'
