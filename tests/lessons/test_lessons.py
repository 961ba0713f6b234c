"""Every lesson is run anew, and its pages say what it says: numbers to their last printed place, all else to the letter."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.request import urlopen

import pytest

import small_run
from regard.config.toml import nearest
from regard.errors import UsageError
from regard.lessons import FOLDER, find, markdown, names, web
from regard.lessons.blanks import ANSWER, VERDICT, class_version
from regard.lessons.notebook import notebook
from regard.lessons.running import Ran, run
from regard.lessons.source import Cell, Claim, Prose, Solution, blanked, parse, solved
from regard.lessons.written import contents, rendered

DOCS = Path(__file__).parents[2] / "docs" / "lessons"
NUMBER = re.compile(r"-?\d+\.\d+")


@cache
def ran(name: str) -> Ran:
    return run(find(name))


def skeleton(text: str) -> str:
    return NUMBER.sub("0.0", text)


def far(found: str, committed: str) -> list[tuple[str, str]]:
    """The numbers that differ by more than one in the last place: processors round differently."""
    pairs = itertools.zip_longest(NUMBER.findall(found), NUMBER.findall(committed), fillvalue="")
    return [(one, other) for one, other in pairs if one != other and not close(one, other)]


def close(one: str, other: str) -> bool:
    places = len(other.partition(".")[2])
    return len(one.partition(".")[2]) == places and abs(float(one) - float(other)) < 1.01 * 10**-places


def test_how_numbers_are_compared():
    assert not far("a 0.120 b -0.01", "a 0.121 b 0.00")
    assert far("0.120", "0.122") and far("0.12", "0.120") and far("0.1 0.2", "0.1")
    assert skeleton("12 of 0.50") == "12 of 0.0" != skeleton("13 of 0.50")


@pytest.mark.parametrize("name", names())
def test_the_committed_page_is_what_the_cells_say(name: str):
    texts = rendered(ran(name), "markdown")
    for file, text in texts.items():
        committed = (DOCS / file).read_text("utf-8")
        assert skeleton(text) == skeleton(committed), f"{file}: run `make docs`"
        assert not far(text, committed), file


def test_nothing_lies_beside_the_pages():
    wanted = {file for name in names() for file in rendered(ran(name), "markdown")} | set(contents("markdown"))
    assert {path.name for path in DOCS.iterdir()} == wanted
    assert (DOCS / "README.md").read_text("utf-8") == contents("markdown")["README.md"]


@pytest.mark.parametrize("name", names())
def test_a_notebook_is_valid(name: str):
    whole = json.loads(notebook(ran(name)))
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5) and set(whole) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    identities = [cell["id"] for cell in whole["cells"]]
    assert len(set(identities)) == len(identities) and all(re.fullmatch(r"[\w-]{1,64}", one) for one in identities)
    for cell in whole["cells"]:
        assert isinstance(cell["metadata"], dict) and all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "markdown":
            assert set(cell) == {"cell_type", "metadata", "source", "id"}
            continue
        assert cell["cell_type"] == "code" and set(cell) == {"cell_type", "metadata", "source", "id", "outputs", "execution_count"}
        ast.parse("".join(cell["source"]))
        for output in cell["outputs"]:
            match output["output_type"]:
                case "stream":
                    assert output["name"] == "stdout" and output["text"]
                case "display_data":
                    assert output["metadata"] == {} and "text/plain" in output["data"]
                case other:
                    pytest.fail(other)
    code = [cell for cell in whole["cells"] if cell["cell_type"] == "code"]
    ours = [solved(part.code).rstrip("\n") for part in find(name).parts if isinstance(part, Cell)]
    assert ["".join(cell["source"]) for cell in code] == ours, "what is run anew here is what the notebook runs"
    assert len(code) == len(ran(name).outputs) and any(cell["outputs"] for cell in code)


@pytest.mark.parametrize("name", names())
def test_the_class_version_gives_nothing_away(name: str):
    lesson, blank = find(name), class_version(find(name))
    text = "".join("".join(cell["source"]) for cell in json.loads(notebook(blank))["cells"])
    page = rendered(blank, "html")[f"{name}.html"] + "".join(rendered(blank, "markdown").values())
    asked = 0
    for part in lesson.parts:
        secrets = []
        match part:
            case Solution(answer):
                secrets = [line for line in answer.splitlines() if len(line) > 30]
            case Claim():
                secrets = [part.verdict]
            case Cell(code):
                hidden = [line for line in code.split("\n") if "#?" in line]
                secrets = [solved(line).strip() for line in hidden]
                ast.parse(blanked(code))
                assert blanked(code).count("...") >= len(hidden)
        asked += len(secrets)
        assert not [secret for secret in secrets if secret in text or secret in page]
    assert asked >= 3, "a class wants something to do"
    assert not any(output.text or output.figure for output in blank.outputs)
    assert (ANSWER.strip() in text) == any(isinstance(part, Solution) for part in lesson.parts)
    assert (VERDICT in text) == any(isinstance(part, Claim) for part in lesson.parts)


class Seen(HTMLParser):
    """Tags that are open, and what attributes point to."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.problems = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "input", "br", "!doctype"):
            self.open.append(tag)
        self.links += [value for key, value in attrs if key in ("href", "src", "srcset", "action", "data", "poster")]
        self.problems += [key for key, _ in attrs if key.startswith("on")]

    def handle_startendtag(self, tag, attrs):
        self.links += [value for key, value in attrs if key in ("href", "src", "xlink:href")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")


@pytest.mark.parametrize("name", [*names(), "index"])
def test_a_page_is_whole_and_asks_no_network(name: str):
    page = contents("html")["index.html"] if name == "index" else rendered(ran(name), "html", course=True)[f"{name}.html"]
    seen = Seen()
    seen.feed(page)
    assert not seen.open and not seen.problems
    assert set(seen.links) <= {f"{other}.html" for other in ("index", *names())} and len(seen.links) >= 2 - (name == "index")
    rest = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//\w+\.\w+/|url\(|@import|fetch\(|XMLHttp|WebSocket|import\(", rest)
    assert "default-src &#x27;none&#x27;" in page and "script-src &#x27;sha256-" in page


def test_a_page_alone_leads_nowhere():
    seen = Seen()
    seen.feed(rendered(ran(names()[0]), "html")[f"{names()[0]}.html"])
    assert not seen.links


@pytest.mark.parametrize("name", names())
def test_figures_have_colours_that_the_night_knows(name: str):
    figures = "".join(text for file, text in rendered(ran(name), "markdown").items() if file.endswith(".svg"))
    assert set(re.findall(r'(?:fill|stroke)="(#\w+)"', figures)) <= set(web.NIGHT)


@pytest.mark.parametrize("name", names())
def test_the_prose_is_of_what_the_renderer_knows(name: str):
    for part in find(name).parts:
        if isinstance(part, Prose | Solution):
            plain = re.sub(r"`[^`]*`|^```.*?^```", "", part.text, flags=re.MULTILINE | re.DOTALL)
            assert not re.search(r"<\w|!\[|\$|__|https?:", plain), name
            shown = re.sub(r"<code>.*?</code>", "", web.markup(part.text), flags=re.DOTALL)
            assert not re.search(r"\*\*|`|\]\(|^    ", shown, flags=re.MULTILINE), name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("## A `x < y`\n\nB\n", "<h2>A <code>x &lt; y</code></h2>\n<p>B</p>"),
        ("One *two*,\n**three** [four](four.md).", '<p>One <em>two</em>,\n<strong>three</strong> <a href="four.html">four</a>.</p>'),
        ("- a\n  b\n- c\n", "<ul><li>a\n  b</li><li>c</li></ul>"),
        ("| h | i |\n|---|---|\n| `1` | 2 |\n", "<tr><th>h</th><th>i</th></tr><tr><td><code>1</code></td><td>2</td></tr>"),
        ("```sh\na\n\nb < c\n```\nD\n", "<pre><code>a\n\nb &lt; c</code></pre>\n<p>D</p>"),
        ("> **a** b\n>\n> c\n", "<blockquote><p><strong>a</strong> b</p>\n<p>c</p></blockquote>"),
    ],
)
def test_each_block_of_the_markdown_is_one_of_the_page(text: str, shown: str):
    found = web.markup(text)
    assert found == shown or (text.startswith("|") and shown in found)


def test_running_twice_gives_the_same_and_leaves_nothing_behind():
    import torch

    before = torch.random.get_rng_state()
    first, again = ("".join(markdown.files(run(find("convexity"))).values()) for _ in range(2))
    assert first == again
    assert torch.equal(torch.random.get_rng_state(), before)


def test_parts_of_a_lesson():
    text = "# Title\n\n*What it shows.*\n\nProse.\n\n```python\nx = 1 + 1  #? a sum\nprint(x)  #?\nx\n```\n\n```answer\nTwo.\n```\n\n"
    text += "```claim\ndeck: B\nclaim: one\n  line more\nverdict: no\n```\n```sh\nregard demo\n```\n"
    lesson = parse("one", text)
    prose, cell, solution, claim, shell = lesson.parts
    assert (lesson.title, lesson.summary) == ("Title", "What it shows.")
    assert (prose, solution, shell) == (Prose("Prose.\n"), Solution("Two.\n"), Prose("```sh\nregard demo\n```\n"))
    assert claim == Claim("B", "one line more", "no", "the next cell.")
    assert isinstance(cell, Cell) and solved(cell.code) == "x = 1 + 1\nprint(x)\nx\n"
    assert blanked(cell.code) == "x = ...  # a sum\nprint(...)  # yours\nx\n"
    assert [output.text for output in run(lesson).outputs] == ["2\n2\n"]


@pytest.mark.parametrize("text", ["No title\n", "# Title\nno summary\n", "# T\n\n*s*\n\n```claim\ndeck: B\nclaim: x\n```\n"])
def test_what_is_no_lesson_is_refused(text: str):
    with pytest.raises(UsageError):
        parse("one", text)


def test_the_command_lists_them_and_writes_them(tmp_path: Path):
    listed = small_run.regard("lessons")
    assert [line.split()[1] for line in listed.out.splitlines()] == names()
    name = names()[0]
    for flags, ending in ([], "html"), (["--notebook", "--blanks"], "ipynb"), (["--markdown"], "md"):
        done = small_run.regard("lessons", name, "--to", tmp_path, *flags)
        assert done.code == 0 and (tmp_path / f"{name}.{ending}").is_file(), done.error
    assert (tmp_path / f"{name}.html").read_text("utf-8") == rendered(ran(name), "html")[f"{name}.html"]
    done = small_run.regard("lessons", "--blanks", "--to", tmp_path / "all")
    assert {path.name for path in (tmp_path / "all").iterdir()} == {f"{each}.html" for each in ("index", *names())}


def test_the_command_serves_a_lesson_to_this_machine():
    command = [sys.executable, "-m", "regard.cli", "lessons", "convexity", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(DOCS.parents[1] / "src")}
    ) as served:
        try:
            assert served.stdout
            home = served.stdout.readline().strip()
            assert home.startswith("http://127.0.0.1:")
            for page, title in ("", "Inside the hull"), ("index.html", "A course that runs"), ("masks.html", "Masks, and the wrong mask"):
                with urlopen(home + page, timeout=60) as answer:
                    assert f"<h1>{title}" in answer.read().decode("utf-8")
                    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        finally:
            served.send_signal(signal.SIGINT)
    assert served.returncode == 0


def test_a_lesson_that_is_not_there_is_named_with_the_nearest():
    done = small_run.regard("lessons", "soft-lookup")
    assert done.code == 2 and nearest("soft-lookup", names()) in done.error and "soft-look-up" in done.error
    assert "--to FOLDER" in small_run.regard("lessons", names()[0], "--notebook").error


def test_every_claim_of_the_decks_that_needs_a_word_has_it():
    claims = [part for name in names() for part in find(name).parts if isinstance(part, Claim)]
    assert Counter(claim.deck for claim in claims) == {"A": 3, "B": 10, "C": 3, "D": 9, "E": 4}
    for name in names():
        parts = find(name).parts
        for part, after in itertools.zip_longest(parts, parts[1:]):
            if isinstance(part, Claim) and part.check == "the next cell.":
                assert isinstance(after, Cell), part.claim


def test_the_files_are_numbered_in_one_order():
    numbers = [path.stem.partition("-")[0] for path in sorted(FOLDER.glob("*.md"))]
    assert numbers == [f"{place:02}" for place in range(1, len(numbers) + 1)]
