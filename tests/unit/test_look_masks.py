"""Masks as pictures: what is drawn is what the predicates say, and what the kernels do."""

from pathlib import Path

import pytest
import torch

from regard.errors import UsageError
from regard.look.drawing import Box
from regard.look.masks import HIDDEN, MOST, mask, picture, text
from regard.nn.attention import Causal, Full, Global, Window, attention_weights
from regard.nn.attention.patterns import BigBird, Dilated
from small_run import regard

DRAWN = {
    "full": "# # # # #\n" * 5,
    "causal": "# . . . .\n# # . . .\n# # # . .\n# # # # .\n# # # # #\n",
    '{ kind = "window", reach = 1 }': "# # . . .\n# # # . .\n. # # # .\n. . # # #\n. . . # #\n",
    '[{ kind = "window", reach = 1 }, "causal"]': "# . . . .\n# # . . .\n. # # . .\n. . # # .\n. . . # #\n",
    '{ kind = "dilated", reach = 1 }': "# . # . .\n. # . # .\n# . # . #\n. # . # .\n. . # . #\n",
    '{ kind = "or", parts = [{ kind = "window", reach = 1 }, { kind = "global", first = 1 }] }': (
        "# # # # #\n# # # . .\n# # # # .\n# . # # #\n# . . # #\n"
    ),
}


@pytest.mark.parametrize("pattern", DRAWN)
def test_drawn_by_the_command(pattern: str):
    """C-16, and the four pictures of B-22"""
    ended = regard("look", "--mask", pattern, "--length", 5)
    assert (ended.code, ended.out) == (0, f"{pattern}\n{DRAWN[pattern]}"), ended.error


@pytest.mark.parametrize(
    "pattern", [Full(), Causal() & Window(2), Dilated(2, (2, 3)), Window(1) | Global(2), BigBird(2, random=1)], ids=str
)
@pytest.mark.parametrize("head", [0, 1])
def test_what_is_drawn_is_what_has_weight(pattern, head: int):
    query, key = torch.randn(2, 1, 2, 16, 8).unbind()
    weights = attention_weights(query, key, pattern=pattern)[0, head]
    assert torch.equal(mask(pattern, 16, head=head), weights > 0)


def test_bigbird_is_the_union_of_its_parts():
    """B-23: window, ends and random blocks, each by itself and together"""
    whole = BigBird(2, random=1)
    window, ends, drawn = (mask(part, 20) for part in whole.parts)
    assert torch.equal(mask(whole, 20), window | ends | drawn)
    assert all(part.any() and not part.all() for part in (window, ends, drawn)) and (drawn & ~window & ~ends).any()


def test_a_square_for_each_pair():
    masks = {"a": mask(Causal(), 5), "b": mask(Full(), 3, keys=7)}
    boxes = [mark for mark in picture(masks).marks if isinstance(mark, Box)]
    assert len(boxes) == 25 + 21
    assert sum(box.fill != HIDDEN for box in boxes) == 15 + 21
    drawing = picture(masks)
    assert all(box.x + box.width <= drawing.width and box.y + box.height <= drawing.height for box in boxes)
    assert text(masks["b"]) == "# # # # # # #\n" * 3


def test_all_in_one_figure(tmp_path: Path):
    ended = regard("look", "--mask", "causal", "--mask", "full", "--figure", tmp_path / "masks.svg")
    assert ended.code == 0 and (tmp_path / "masks.svg").read_text("utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--mask", "windw"], '--mask: pattern[0] cannot be the string "windw"; did you mean window?'),
        (["--mask", '{ kind = "window"'], 'is not TOML: Unclosed inline table (at end of document); write causal, or { kind = "window"'),
        (["--mask", '{ kind = "window" }'], "--mask: pattern[0].reach is missing; Window needs it"),
        (["--mask", "causal", "--length", "0"], "a mask of 0 positions cannot be drawn; take 1 to 256"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(words: list[str], says: str):
    ended = regard("look", *words)
    assert ended.code == 2 and says in ended.error and ended.error.count("\n") == 1


def test_too_many_positions_are_refused():
    with pytest.raises(UsageError, match="cannot be drawn"):
        mask(Full(), MOST + 1)
