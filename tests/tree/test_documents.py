"""What the pages say of the tree is true of it: every test, file, name and command in backquotes is there."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE, TESTS, DOCS = ROOT / "src" / "regard", ROOT / "tests", ROOT / "docs"
TEST = re.compile(r"(test_\w+\.py)::(test_\w+)")


def quoted(page: Path) -> list[str]:
    """What stands in backquotes, outside code blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


def missing_tests(spans: list[str]) -> Iterator[str]:
    """The tests that are named and not there."""
    for span in spans:
        if not (named := TEST.fullmatch(span)):
            if span.startswith("test_"):
                yield f"{span} is no file.py::test"
            continue
        files = list(TESTS.rglob(named[1]))
        if len(files) != 1 or named[2] not in functions(files[0]):
            yield span


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path):
    assert not list(missing_tests(quoted(page)))


def test_a_test_that_is_not_there_is_missed():
    spans = ["test_documents.py::test_a_test_that_is_not_there_is_missed", "test_documents.py::test_none", "test_no.py::test_x", "test_x"]
    assert list(missing_tests(spans)) == ["test_documents.py::test_none", "test_no.py::test_x", "test_x is no file.py::test"]


def test_each_row_of_the_table_of_faults_has_its_test():
    rows = [line for line in (DOCS / "faults.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| fault")]
    assert len(rows) > 40
    for row in rows:
        fault, promise, tests, often = row.strip("| ").split(" | ")
        assert fault and promise and TEST.search(tests) and often, row


def test_the_long_form_is_longer():
    """What docs/faults.md says of `make torture` is not only said: the tests that it gives two numbers look at the switch."""
    for row in (DOCS / "faults.md").read_text("utf-8").splitlines():
        cells = row.strip("| ").split(" | ")
        if len(cells) == 4 and re.search(r"\d / [\d,]+", cells[3]):
            (path,) = TESTS.rglob(TEST.findall(cells[2])[0][0])
            assert "REGARD_TORTURE" in path.read_text("utf-8"), row
    assert "REGARD_TORTURE=1" in (ROOT / "Makefile").read_text("utf-8")


def unparsed(spans: list[str]) -> Iterator[str]:
    """The commands in the text that the real command line would not understand."""
    from regard.cli import VERBS, apart, parser

    for span in spans:
        words = shlex.split(span)
        if words[:1] != ["regard"] or words[1:2] in (["VERB"], []):
            continue
        try:
            assert words[1] in VERBS or words[1].startswith("--")
            parser(words[1]).parse_args(apart(words[1:])[0])
        except (SystemExit, AssertionError) as stop:
            if getattr(stop, "code", 2):
                yield span


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_command_in_the_text_of_a_page_is_understood(page: Path):
    assert not list(unparsed([span for span in quoted(page) if span.startswith("regard ")]))


def test_a_command_that_is_none_is_missed():
    assert list(unparsed(["regard nosuch", "regard translate m f", "regard look --nosuch", "regard"])) == [
        "regard nosuch",
        "regard look --nosuch",
    ]


def defined() -> tuple[set[str], dict[str, set[str]]]:
    """Every name that the package defines or spells as a literal, and the methods and fields of each class."""
    names, classes = {path.stem for path in SOURCE.rglob("*.py")}, {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.ClassDef(name=name, body=body):
                    own = {one.name for one in body if isinstance(one, ast.FunctionDef)}
                    own |= {one.target.id for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
                    classes.setdefault(name, set()).update(own)
                    names |= own | {name}
                case ast.FunctionDef(name=name):
                    names.add(name)
                case ast.arg(arg=name) | ast.Name(id=name):
                    names.add(name)
                case ast.Constant(value=str() as word):
                    names.add(word)
    return names, classes


def untrue(spans: list[str]) -> Iterator[str]:
    """Paths that are not there, names that nothing has, methods that a class does not have."""
    names, classes = defined()
    for span in spans:
        if re.fullmatch(r"[\w/]+\.py", span):
            if not (SOURCE / span).is_file():
                yield span
        elif re.fullmatch(r"[A-Z_]\w+\.\w+", span):
            owner, name = span.split(".")
            if name not in classes.get(owner, ()):
                yield span
        elif re.fullmatch(r"[A-Za-z_]\w+", span) and span not in names:
            yield span


@pytest.mark.parametrize("name", ["tour.md", "background.md"])
def test_every_path_and_name_of_a_page_is_there(name: str):
    spans = quoted(DOCS / name)
    assert len([span for span in spans if span.endswith(".py")]) > 20
    assert not list(untrue(spans))


def test_a_name_that_is_not_there_is_missed():
    spans = ["cli.py", "nn/nothing.py", "Growing.extend", "Growing.nothing", "Nothing.extend", "choose", "chosen_by_nobody", "regard look"]
    assert list(untrue(spans)) == ["nn/nothing.py", "Growing.nothing", "Nothing.extend", "chosen_by_nobody"]


def test_the_facts_agree_with_each_other():
    """169,248 citations at 64 a day are the days that the page says, and lead back to the conference of December 2017."""
    text = (DOCS / "background.md").read_text("utf-8")
    cited, daily, days = (int(found.replace(",", "")) for found in re.search(r"([\d,]+) / (\d+) = ([\d,]+) days", text).groups())
    assert cited // daily == days == 2644 and "1706.03762" in text and "233,829" in text
    begun = date(2017, 12, 4)
    assert begun + timedelta(days) > date(2025, 1, 1) and "December 2017" in text and "12 June 2017" in text


def test_every_source_of_the_last_deck_is_named():
    rows = [line for line in (DOCS / "background.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    for author in ("Ruder", "Weng", "Rush", "Alammar"):
        assert any(author in row and len(row.split(" | ")) == 3 for row in rows), author


def test_the_checklist_has_every_row_and_says_of_each_whether_it_holds():
    rows = {}
    for line in (DOCS / "checklist.md").read_text("utf-8").splitlines():
        if re.match(r"\| [A-E]-\d", line):
            row, asks, how, test = (cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))
            rows[row] = (asks, how, test)
    parts = [f"A-14{letter}" for letter in "abcdefg"]
    whole = [f"{deck}-{n}" for deck, most in {"A": 16, "B": 27, "C": 20, "D": 11, "E": 15}.items() for n in range(1, most + 1)]
    assert sorted(rows) == sorted(whole + parts)
    for row, (asks, how, test) in rows.items():
        assert asks and how, row
        assert bool(test) != how.startswith("not yet"), f"{row} either works and has a test, or is not yet there"
