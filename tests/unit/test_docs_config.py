"""docs/config.md: its example is a run, every field has its meaning, every link its section, and no cell breaks its table."""

import dataclasses
import re
import tomllib

from regard.config.docs import TITLE, document, field_docs, headings, reachable
from regard.config.toml import hints, structure
from regard.nn.attention import ALiBi, Window
from regard.run import Run, laid_over

PAGE = document(Run)


def test_the_example_is_a_run():
    (example,) = re.findall(r"```toml\n(.*?)```", TITLE, re.DOTALL)
    tables = tomllib.loads(example)
    run = structure(Run, laid_over(tables, tables["preset"]))
    assert run.model.decoder.own.pattern == (Window(128),) and run.model.decoder.own.bias == ALiBi()
    assert run.model.decoder.layers == 4 and run.train.steps == 20_000


def test_every_field_says_what_it_means():
    silent = [f"{cls.__name__}.{name}" for cls in reachable(Run) for name in hints(cls) if not field_docs(cls).get(name)]
    assert not silent, silent
    mute = [cls.__name__ for cls in reachable(Run) if not (cls.__doc__ or "").strip() or cls.__doc__.startswith(f"{cls.__name__}(")]
    assert not mute, mute


def test_every_link_has_its_section():
    titles = re.findall(r"^## (.*)", PAGE, re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#(.*?)\)", PAGE)) <= set(anchors)


def test_classes_of_one_name_are_told_apart():
    one, other = (dataclasses.make_dataclass("Same", [], namespace={"__module__": f"house.{room}"}) for room in ("attic", "cellar"))
    alone = dataclasses.make_dataclass("Alone", [])
    assert list(headings([one, alone, other]).values()) == ["Same (attic)", "Alone", "Same (cellar)"]


def test_every_row_has_four_cells():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert rows and {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
