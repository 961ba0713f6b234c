"""The page's text: its data cannot become markup, its policy fits its script; and figures, whose words are words."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hostile import HOSTILE
from made_traces import SOURCE, WRITTEN, made
from regard.errors import UsageError
from regard.look.drawing import Curve, Words
from regard.look.figure import LEAST, figure
from regard.look.opening import clearest
from regard.look.page import embed, page
from regard.look.printing import svg, write_figure

SVG = "{http://www.w3.org/2000/svg}"


class Scripts(HTMLParser):
    """What a parser of HTML takes for scripts, and every address of the page."""

    def __init__(self, text: str):
        super().__init__()
        self.scripts: list[tuple[str, str]] = []
        self.addresses: list[str] = []
        self.inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.addresses += [given[name] for name in ("src", "href", "action", "srcset") if name in given]
        assert not [name for name in given if name.startswith("on")]
        if tag == "script":
            self.inside = given.get("type", "")
            self.scripts.append((self.inside, ""))

    def handle_endtag(self, tag):
        self.inside = None if tag == "script" else self.inside

    def handle_data(self, data):
        if self.inside is not None:
            kind, before = self.scripts.pop()
            self.scripts.append((kind, before + data))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_json_in_a_script_ends_nothing(text: str):
    embedded = embed({text: [text]})
    assert not set(embedded) & set("<>&\u2028\u2029") and embedded.isascii()
    assert json.loads(embedded) == {text: [text]}


def test_the_policy_lets_run_exactly_the_script():
    parsed = Scripts(page([made(list(HOSTILE), layers=1)]).text)
    (kind, data), (module, script) = parsed.scripts
    assert (kind, module) == ("application/json", "module")
    assert [token["text"] for token in json.loads(data)["traces"][0]["source"]] == list(HOSTILE)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text, policy = page([made()])
    assert f"script-src 'sha256-{digest}'" in policy and f'content="{policy}"' in text
    assert "default-src 'none'" in policy and "base-uri 'none'" in policy and "connect-src" not in policy
    assert "connect-src 'self'" in page([made()], live=["trace"]).policy
    assert parsed.addresses == ["data:,"]


def test_the_script_builds_no_markup_from_text():
    script = Scripts(page([made()]).text).scripts[1][1]
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|setHTML", script
    )
    assert len(script) < 150_000


def test_a_figure_shows_the_weights():
    trace = made()
    drawing = figure(trace, "cross", 1, [0, 3])
    weights = trace.weights("cross", 1)[[0, 3]]
    curves = [mark for mark in drawing.marks if isinstance(mark, Curve)]
    assert len(curves) == (weights >= LEAST).sum()
    assert sorted(curve.width for curve in curves) == pytest.approx(sorted(1 + 3 * weights[weights >= LEAST]))
    words = [mark.text for mark in drawing.marks if isinstance(mark, Words)]
    assert words[0] == "Layer 1, input – output, heads 0, 3"
    assert words[-len(SOURCE) - len(WRITTEN) :] == [*SOURCE, *WRITTEN]


def test_any_words_make_a_well_formed_figure():
    drawn = ElementTree.fromstring(svg(figure(made(list(HOSTILE), layers=1), "cross", 0, [1])).encode())
    assert {element.tag for element in drawn.iter()} == {f"{SVG}{tag}" for tag in ("svg", "rect", "text", "path")}
    assert len(drawn.findall(f"{SVG}text")) >= len(HOSTILE)


@pytest.mark.parametrize(("ending", "begins"), [(".svg", b"<svg"), (".pdf", b"%PDF"), (".png", b"\x89PNG")])
def test_a_figure_is_written_as_its_name_says(tmp_path: Path, ending: str, begins: bytes):
    if ending != ".svg":
        pytest.importorskip("matplotlib", reason="matplotlib is in the extra figures")
    write_figure(tmp_path / f"a{ending}", figure(made(["$x^2$", "é", "Haus"], layers=1), "enc-self", 0, [0]))
    assert (tmp_path / f"a{ending}").read_bytes().startswith(begins)


def test_a_figure_says_what_it_cannot_do(tmp_path: Path):
    with pytest.raises(UsageError, match=r"head 9 was not recorded; choose of: 0, 1, 2, 3, 4"):
        figure(made(), "cross", 0, [9])
    with pytest.raises(UsageError, match=r"written as \.svg, \.pdf, \.png, not \.jpg"):
        write_figure(tmp_path / "a.jpg", figure(made(), "cross", 0, [0]))


def test_a_page_opens_where_a_head_walks_through_the_sentence():
    opening = clearest(made())
    assert opening.kind == "cross" and 0 <= opening.layer < 3 and 0 <= opening.head < 5
    assert clearest(made(), "enc-self", layer=1)[:2] == ("enc-self", 1)
