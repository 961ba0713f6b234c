"""The strict reader of TOML: what it accepts, and the words with which it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from regard.config.toml import dumps, load, structure, unstructure
from regard.errors import UsageError


@dataclass(frozen=True)
class Full:
    kind: ClassVar[Literal["full"]] = "full"


@dataclass(frozen=True)
class Window:
    kind: ClassVar[Literal["window"]] = "window"
    reach: int


@dataclass(frozen=True)
class Dilated:
    kind: ClassVar[Literal["dilated"]] = "dilated"
    reach: int = 7
    gap: int = 3


Pattern = Full | Window | Dilated


@dataclass(frozen=True)
class Train:
    """How to train."""

    steps: int = 100
    rate: float = 1e-3
    compile: bool = False
    tokens: int | Literal["auto"] = "auto"
    precision: Literal["fp32", "bf16"] = "fp32"

    def __post_init__(self):
        if self.steps < 0:
            raise ValueError("steps cannot be negative")


@dataclass(frozen=True)
class Corpus:
    paths: tuple[Path, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Run:
    data: tuple[Corpus, ...] = ()
    train: Train = Train()
    pattern: Pattern | tuple[Pattern, ...] = Full()
    fixed: tuple[int, str] = (2, "two")
    words: dict[str, int] | None = None  # never read in these tests: None has no form in TOML


@dataclass(frozen=True)
class Small:
    train: Train = Train()
    pattern: Pattern | tuple[Pattern, ...] = Full()
    data: tuple[Corpus, ...] = ()
    fixed: tuple[int, str] = (2, "two")


def refusal(value: dict, cls: type = Small) -> str:
    with pytest.raises(UsageError) as caught:
        structure(cls, value, where="recipe.toml")
    return str(caught.value)


def test_an_unknown_key_is_named_with_its_path_and_its_neighbour():
    said = refusal({"train": {"stepz": 5}})
    assert said == ("recipe.toml: train.stepz is not a key of Train; did you mean steps? (known: steps, rate, compile, tokens, precision)")


def test_types_are_strict():
    assert refusal({"train": {"steps": "100"}}) == 'recipe.toml: train.steps must be an integer, not the string "100"'
    assert refusal({"train": {"compile": "false"}}) == 'recipe.toml: train.compile must be true or false, not the string "false"'
    assert refusal({"train": {"compile": 1}}) == "recipe.toml: train.compile must be true or false, not 1"
    assert refusal({"train": {"steps": True}}) == "recipe.toml: train.steps must be an integer, not true"
    assert refusal({"train": {"steps": 1.0}}) == "recipe.toml: train.steps must be an integer, not 1.0"
    assert refusal({"train": {"rate": True}}) == "recipe.toml: train.rate must be a number, not true"
    assert refusal({"train": {"rate": float("nan")}}) == "recipe.toml: train.rate must be a number, not nan"
    assert refusal({"train": 3}) == "recipe.toml: train must be a table (steps, rate, compile, tokens, precision), not 3"
    rate = structure(Small, {"train": {"rate": 1}}).train.rate
    assert rate == 1.0 and type(rate) is float


def test_literals_and_scalar_unions():
    assert structure(Small, {"train": {"tokens": 4096}}).train.tokens == 4096
    assert structure(Small, {"train": {"tokens": "auto"}}).train.tokens == "auto"
    assert 'train.tokens cannot be the string "autp"; did you mean auto? (known: auto)' in refusal({"train": {"tokens": "autp"}})
    assert 'train.tokens must be an integer or "auto", not 2.5' in refusal({"train": {"tokens": 2.5}})
    assert 'train.precision cannot be the string "fp16"; did you mean' in refusal({"train": {"precision": "fp16"}})


def test_kinds_choose_the_member_of_a_union():
    assert structure(Small, {"pattern": {"kind": "window", "reach": 5}}).pattern == Window(5)
    assert structure(Small, {"pattern": "dilated"}).pattern == Dilated()
    both = structure(Small, {"pattern": ["full", {"kind": "window", "reach": 5}]}).pattern
    assert both == (Full(), Window(5))
    assert structure(Window, {"kind": "window", "reach": 5}) == Window(5) == structure(Pattern, {"kind": "window", "reach": 5})


def test_kinds_refuse_by_name():
    listed = "(known: full, window, dilated)"
    assert refusal({"pattern": {"kind": "windw", "reach": 1}}).endswith(
        f'pattern has no kind the string "windw"; did you mean window? {listed}'
    )
    assert refusal({"pattern": "ful"}).endswith(f'pattern cannot be the string "ful"; did you mean full? {listed}')
    assert refusal({"pattern": {"reach": 1}}).endswith(f"pattern needs a kind; choose one {listed}")
    assert "pattern.reach is missing; Window needs it" in refusal({"pattern": "window"})
    assert "pattern[1].gap is not a key of Window" in refusal({"pattern": ["full", {"kind": "window", "reach": 1, "gap": 2}]})
    assert "is of kind window" in refusal({"kind": "full", "reach": 1}, Window)


def test_the_kind_of_the_default_may_be_left_out():
    @dataclass(frozen=True)
    class Layer:
        pattern: Pattern = Dilated()

    assert structure(Layer, {"pattern": {"gap": 5}}).pattern == Dilated(gap=5)
    assert structure(Layer, {"pattern": {}}).pattern == Dilated()
    with pytest.raises(UsageError, match=r"pattern.raech is not a key of Dilated; did you mean reach"):
        structure(Layer, {"pattern": {"raech": 1, "gap": 5}})
    with pytest.raises(UsageError, match="pattern needs a kind"):  # nothing in it speaks for the default
        structure(Layer, {"pattern": {"raech": 1}})


def test_a_tuple_of_one_may_stand_without_brackets():
    one = structure(Small, {"data": {"paths": "a.de"}})
    assert one.data == (Corpus((Path("a.de"),)),)
    assert one == structure(Small, {"data": [{"paths": ["a.de"]}]})
    assert structure(Small, {"fixed": [3, "three"]}).fixed == (3, "three")
    assert "fixed must have 2 items, not 3" in refusal({"fixed": [3, "three", 4]})
    assert "data[0].share must be a number" in refusal({"data": [{"paths": "a", "share": "all"}]})


def test_what_a_config_refuses_itself_is_told_with_its_place():
    assert refusal({"train": {"steps": -1}}) == "recipe.toml: train: steps cannot be negative"


def test_a_class_of_the_users_joins_a_union_for_one_call():
    @dataclass(frozen=True)
    class Mine:
        kind: ClassVar[str] = "mine"
        extends: ClassVar[type] = Full
        reach: int = 11

    extra = {"mine": Mine}
    assert structure(Small, {"pattern": {"kind": "mine", "reach": 13}}, extra=extra).pattern == Mine(13)
    assert structure(Small, {"pattern": ["mine", "full"]}, extra=extra).pattern == (Mine(), Full())
    with pytest.raises(UsageError, match="no kind"):
        structure(Small, {"pattern": {"kind": "mine"}})

    @dataclass(frozen=True)
    class Elsewhere:
        kind: ClassVar[str] = "elsewhere"
        extends: ClassVar[type] = Train

    with pytest.raises(UsageError, match="no kind"):
        structure(Small, {"pattern": {"kind": "elsewhere"}}, extra={"elsewhere": Elsewhere})


def test_dumps_reads_well_and_comes_back(tmp_path: Path):
    run = Small(train=Train(rate=0.5), pattern=(Full(), Window(5)), data=(Corpus((Path("a.de"), Path("a.en"))),))
    text = dumps(run)
    assert "[train]\nsteps = 100\nrate = 0.5\ncompile = false\n" in text
    assert '"full"' in text
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    assert load(Small, tmp_path / "run.toml") == run
    assert unstructure(Window(5)) == {"kind": "window", "reach": 5}
    with pytest.raises(TypeError, match="no word"):
        unstructure(Run())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"train = [", "recipe.toml: is not TOML: Invalid value (at end of document)"),
        (b"a = 1\nb = = 2\n", "recipe.toml:2: is not TOML"),
        (b"[train]\nsteps = 1\n[train]\n", "recipe.toml:3: is not TOML"),
        (b"a = '\xff'", "cannot be read"),
    ],
)
def test_broken_files(tmp_path: Path, content: bytes, said: str):
    (tmp_path / "recipe.toml").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(Small, tmp_path / "recipe.toml")
    assert said in str(caught.value)


def test_files_that_are_not_there_and_files_of_other_editors(tmp_path: Path):
    with pytest.raises(UsageError, match="no such file"):
        load(Small, tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load(Small, tmp_path)
    (tmp_path / "windows.toml").write_bytes(b"\xef\xbb\xbf[train]\r\nsteps = 3\r\n")
    assert load(Small, tmp_path / "windows.toml").train.steps == 3


@dataclass(frozen=True)
class Sizes:
    layers: int = 1
    width: int = 0
    dropout: float = 0.0
    rate: float = 0.0
    skip: bool = False


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"layers": 0}, "recipe.toml: layers = 0 makes no sense; take 1 or more"),
        ({"layers": -1}, "recipe.toml: layers = -1 makes no sense; take 1 or more"),
        ({"width": -4}, "recipe.toml: width = -4 makes no sense; take 0 or more"),
        ({"dropout": 1.0}, "recipe.toml: dropout = 1.0 makes no sense; it is a share: take 0 or more, and less than 1"),
        ({"dropout": -0.1}, "recipe.toml: dropout = -0.1 makes no sense; it is a share: take 0 or more, and less than 1"),
    ],
)
def test_numbers_that_nothing_can_have(wrong: dict, says: str):
    assert refusal(wrong, Sizes) == says


def test_numbers_that_something_can_have():
    given = {"layers": 1, "width": 0, "dropout": 0.5, "rate": -1.0, "skip": False}
    assert structure(Sizes, given) == Sizes(1, 0, 0.5, -1.0, False)
