"""load(dump(config)) == config, for configs of every form that a field may have."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import recipes
from regard.config.toml import dumps, load, structure, unstructure
from regard.errors import UsageError
from regard.models.presets import PRESETS
from regard.run import Run, read_run


@dataclass(frozen=True)
class Leaf:
    kind: ClassVar[Literal["leaf"]] = "leaf"


@dataclass(frozen=True)
class Branch:
    kind: ClassVar[Literal["branch"]] = "branch"
    reach: int
    of: Tree | tuple[Tree, ...] = Leaf()


@dataclass(frozen=True)
class Named:
    kind: ClassVar[Literal["named"]] = "named"
    name: str = "n"
    inner: Branch = field(default_factory=lambda: Branch(2))


Tree = Leaf | Branch | Named


@dataclass(frozen=True)
class Everything:
    number: int = 1
    rate: float = 1.0
    on: bool = True
    word: str = ""
    path: Path = Path("a")
    size: int | Literal["auto", "all"] = "auto"
    level: Literal[1, 2, "three"] = 1
    tree: Tree = Leaf()
    trees: tuple[Tree, ...] = ()
    table: dict[str, float] = field(default_factory=dict)
    tables: dict[str, Named] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "one")
    rows: tuple[tuple[int, ...], ...] = ()


integers = st.integers(-(2**63), 2**63 - 1)
words = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
paths = st.text("abc/._ ü\\'\"", min_size=1, max_size=8).map(Path)
trees = st.recursive(
    st.just(Leaf()),
    lambda inner: (
        st.builds(Branch, integers, inner | st.lists(inner, max_size=3).map(tuple))
        | st.builds(Named, words, st.builds(Branch, integers, inner))
    ),
    max_leaves=5,
)
everything = st.builds(
    Everything,
    number=integers,
    rate=st.floats(allow_nan=False),
    on=st.booleans(),
    word=words,
    path=paths,
    size=integers | st.sampled_from(["auto", "all"]),
    level=st.sampled_from([1, 2, "three"]),
    tree=trees,
    trees=st.lists(trees, max_size=3).map(tuple),
    table=st.dictionaries(words, st.floats(allow_nan=False), max_size=3),
    tables=st.dictionaries(words, st.builds(Named, words), max_size=2),
    pair=st.tuples(integers, words),
    rows=st.lists(st.lists(integers, max_size=3).map(tuple), max_size=3).map(tuple),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("law") / "config.toml"


@settings(max_examples=300, deadline=None)
@given(config=everything)
def test_load_of_dump_is_the_same(file: Path, config: Everything):
    file.write_bytes(dumps(config).encode("utf-8"))
    back = load(Everything, file)
    assert back == config
    assert dumps(back) == dumps(config)  # and types too: 1 and 1.0 and true are equal to Python, not in TOML


@pytest.mark.parametrize("name", [name for name, _ in recipes.listed()])
@pytest.mark.parametrize("preset", ["", *PRESETS])
def test_runs_too(file: Path, name: str, preset: str):
    try:
        run = read_run(recipes.find(name), flags={"preset": preset} if preset else {})
    except UsageError as error:  # keys of a Transformer cannot be laid over trunks of another kind
        assert preset == "seq2seq-attention" and "is not a key of Recurrent" in str(error)
        return
    file.write_bytes(dumps(run).encode("utf-8"))
    assert load(Run, file) == run


@settings(max_examples=100, deadline=None)
@given(tree=trees)
def test_structure_of_unstructure_is_the_same(tree: Tree):
    assert structure(Tree, unstructure(tree)) == tree
