"""The rules of the house, read off the tree itself: one-way imports, names, forbidden calls, sizes, and documents that are true."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "regard"
FILES = sorted(SOURCE.rglob("*.py"))

FLOORS = [  # a room may import from its own floor and from those below; `errors` is open to all
    {"config", "nn", "version"},
    {"data"},
    {"models"},
    {"exchange"},
    {"decode"},
    {"evaluate"},
    {"train", "look", "plan"},
    {"loaded", "__init__"},  # `import regard` gives what `loaded` has
    {"serve"},
    {"run", "tasks", "assemble", "own_files", "bench", "recipes", "compare", "laws", "lessons"},
    {"cli", "commands", "completion"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ALONE = {"config", "nn"}  # these import nothing but themselves and `errors`

LONG_FILES: dict[str, str] = {}  # path -> the reason why it is longer than 400 lines
ALLOWED_CALLS: dict[tuple[str, str], str] = {  # (path, call) -> the reason why it is safe there
    ("src/regard/lessons/running.py", "exec"): "it runs the lessons that are part of the package, and takes no path of anybody's",
}

# Spelled in pieces, so that this file may be searched too.
FOREIGN_WORDS = ["/" + "work/", "py" + "pi.org", "python" + "hosted", "download.py" + "torch.org", "npm" + "js.org", "conda" + ".anaconda"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in FILES:
        yield name_of(path), ast.parse(path.read_text(encoding="utf-8"))


def room_of(dotted: str) -> str:
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def rooms_imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and room of every import from the package, those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, room_of(alias.name)) for alias in node.names if alias.name.split(".")[0] == "regard")
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are written whole, from `regard`"
            if node.module == "regard":
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif (node.module or "").startswith("regard."):
                yield node.lineno, room_of(node.module or "")


def test_imports_point_one_way():
    wrong, sideways = [], {}
    for path, tree in trees():
        room = Path(path).relative_to("src/regard").parts[0].removesuffix(".py")
        if room in ("__init__", "__main__", "errors"):  # the face of the package may show any room
            continue
        assert room in FLOOR, f"{path}: the room {room} has no floor; give it one in FLOORS"
        for line, other in rooms_imported(tree):
            if other in (room, "errors"):
                continue
            if other not in FLOOR or FLOOR[other] > FLOOR[room] or room in ALONE:
                wrong.append(f"{path}:{line}: {room} imports {other}")
            elif FLOOR[other] == FLOOR[room]:
                sideways[room, other] = f"{path}:{line}"
    wrong += [f"{place}: {room} and {other} import each other" for (room, other), place in sideways.items() if (other, room) in sideways]
    assert not wrong, "\n".join(wrong)


def test_no_rooms_for_odds_and_ends():
    wrong = []
    for path, tree in trees():
        if re.search(r"(^|[/_])(utils?|helpers?|common|misc)([/_.]|$)", path):
            wrong.append(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and re.search(r"^_?Base[A-Z]|^_?Base$|Manager$|Wrapper$|Helper$|Utils?$", node.name):
                wrong.append(f"{path}:{node.lineno}: {node.name}")
    assert not wrong, "\n".join(wrong)


def forbidden(node: ast.AST) -> Iterator[str]:
    """What could run what a file says: builtin eval and exec, pickles, shells, archives that write where they like."""
    match node:
        case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="load")):
            yield "torch.load"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"), attr="load")):
            yield "yaml.load"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen" as name)):
            yield f"os.{name}"
        case ast.Call(func=ast.Attribute(attr="extractall")):
            yield "extractall"
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name in ("pickle", "marshal", "shelve", "dill", "cloudpickle"))
        case ast.ImportFrom(module="pickle" | "marshal" | "shelve" | "dill" | "cloudpickle" as name):
            yield str(name)
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg == "trust_remote_code" or (keyword.arg in ("shell", "allow_pickle") and true):
                yield keyword.arg


def test_nothing_runs_what_a_file_says():
    wrong = [
        f"{path}:{getattr(node, 'lineno', 0)}: {call}"
        for path, tree in trees()
        for node in ast.walk(tree)
        for call in forbidden(node)
        if (path, call) not in ALLOWED_CALLS
    ]
    assert not wrong, "\n".join(wrong)


def test_the_search_for_forbidden_calls_finds_them():
    source = """
import pickle, os
from shelve import open
eval("1"); exec("1"); model.eval(); pattern.exec()
torch.load("x"); yaml.load("x"); yaml.safe_load("x"); os.system("x"); tar.extractall("x")
run("x", shell=True); run("x", shell=False); load(trust_remote_code=False); np.load("x", allow_pickle=True)
"""
    found = [call for node in ast.walk(ast.parse(source)) for call in forbidden(node)]
    assert sorted(found) == sorted(
        [
            "pickle",
            "shelve",
            "eval",
            "exec",
            "torch.load",
            "yaml.load",
            "os.system",
            "extractall",
            "shell",
            "trust_remote_code",
            "allow_pickle",
        ]
    )


def test_arguments_are_named():
    wrong = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.args.kwarg:
                    wrong.append(f"{path}:{node.lineno}: {node.name} takes **{node.args.kwarg.arg}")
                flags = [
                    argument.arg
                    for argument in node.args.args
                    if isinstance(argument.annotation, ast.Name) and argument.annotation.id == "bool"
                ]
                wrong += [f"{path}:{node.lineno}: {node.name} takes {flag} as a boolean positional" for flag in flags]
    assert not wrong, "\n".join(wrong)


def test_files_are_short():
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    long = {path: length for path, length in lengths.items() if length > 400 and path not in LONG_FILES}
    assert not long, f"split these, or list them with a reason: {long}"
    assert not [path for path in LONG_FILES if lengths.get(path, 0) <= 400], "listed as long, but short by now"


def test_every_file_says_its_idea():
    silent = [path for path, tree in trees() if not ast.get_docstring(tree) and any(not isinstance(node, ast.Expr) for node in tree.body)]
    assert not silent, f"without a module docstring: {silent}"


def tracked() -> list[Path]:
    """The files of the project as git lists them; all but hidden folders where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]
    inside = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in inside if not any(part.startswith(".") or part == "runs" for part in path.relative_to(ROOT).parts)]


def test_nothing_speaks_of_the_place_where_it_was_made():
    wrong = []
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content[:1024]:
            wrong += [f"{name_of(path)}: {word}" for word in FOREIGN_WORDS if word.encode() in content]
    assert not wrong, "\n".join(wrong)


def commands(text: str) -> list[list[str]]:
    """The `regard` commands of a page: lines of its code blocks, cut at comments, pipes and redirections."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").split("\n")
    found = []
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True) if re.match(r"(\$ )?([^|]+ \| )?regard ", line) else []
        if "regard" in words:
            words = words[words.index("regard") + 1 :]
            ends = [place for place, word in enumerate(words) if word in ("|", ">", ">>", "<", "&&", ";", "&")]
            found.append(words[: ends[0]] if ends else words)
    return found


def test_commands_are_found_in_a_page():
    block = "$ regard demo   # a comment\nmake demo\nregard translate runs/demo \\\n  in.txt > out.txt\ncat x | regard look m -\n"
    page = f"Say `regard no`.\n```sh\n{block}```\n"
    assert commands(page) == [["demo"], ["translate", "runs/demo", "in.txt"], ["look", "m", "-"]]


def pages() -> list[Path]:
    return [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.is_file()]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_the_real_command_line_parses_every_command_of_a_page(page: Path):
    if not importlib.util.find_spec("regard.cli"):
        pytest.skip("there is no command line yet")
    from regard.cli import apart, parser

    for words in commands(page.read_text(encoding="utf-8")):
        try:
            parser(words[0]).parse_args(apart(words)[0])
        except SystemExit as stop:
            assert stop.code == 0, f"{name_of(page)}: regard {shlex.join(words)}"


def test_the_generated_page_on_configuration_is_fresh():
    if not importlib.util.find_spec("regard.run"):
        pytest.skip("there is no root of the configuration yet")
    from regard.config.docs import document
    from regard.run import Run

    assert (ROOT / "docs" / "config.md").read_text(encoding="utf-8") == document(Run), "run `make docs`"


@pytest.mark.parametrize(
    "module", ["regard.cli", "regard.data.holdout", "regard.data.defects", "regard.data.clean", "regard.config.toml", "regard.lessons"]
)
def test_torch_is_not_imported_for_what_does_not_need_it(module: str):
    if not importlib.util.find_spec(module):
        pytest.skip(f"there is no {module} yet")
    code = f"""
import sys
sys.argv = ["regard", "--help"]
import {module} as module
try:
    getattr(module, "main", lambda: None)() if module.__name__ == "regard.cli" else None
except SystemExit as stop:
    assert not stop.code, stop.code
assert "torch" not in sys.modules, "torch was imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT / "src")
    assert done.returncode == 0, done.stderr
