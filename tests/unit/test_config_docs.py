"""The page about the configuration says what the code says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config.docs import document, field_docs, reachable, type_text


@dataclass(frozen=True)
class Inner:
    """One of two."""

    kind: ClassVar[Literal["inner"]] = "inner"
    reach: int = 3
    """How far it sees,
    in tokens."""


@dataclass(frozen=True)
class Other:
    kind: ClassVar[Literal["other"]] = "other"


@dataclass(frozen=True)
class Root:
    """The whole. Second sentence.

    A second paragraph, left out.
    """

    name: str
    choice: Inner | tuple[Inner | Other, ...] = Inner(5)
    """What is chosen."""
    share: float | Literal["all"] = 0.5
    flags: tuple[bool, ...] = (True,)


@dataclass(frozen=True)
class Heir(Root):
    more: int = 1
    """Of its own."""


def test_field_docstrings_are_found_by_their_place():
    assert field_docs(Inner) == {"reach": "How far it sees, in tokens."}
    assert field_docs(Heir) == {"choice": "What is chosen.", "more": "Of its own."}


def test_the_page():
    assert reachable(Root) == [Root, Inner, Other]
    page = document(Root)
    assert page[page.index("\n## Root") :] == (
        "\n## Root\n\nThe whole. Second sentence.\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
        "| `name` | string | required |  |\n"
        '| `choice` | [inner](#inner), list of [inner](#inner), [other](#other) | `{ kind = "inner", reach = 5 }` | What is chosen. |\n'
        '| `share` | number, `"all"` | `0.5` |  |\n'
        "| `flags` | list of true or false | `[true]` |  |\n"
        '\n## Inner\n\n`kind = "inner"`. One of two.\n\n| key | type | default | meaning |\n|---|---|---|---|\n'
        "| `reach` | integer | `3` | How far it sees, in tokens. |\n"
        '\n## Other\n\n`kind = "other"`.\n'
    )


def test_words_for_types():
    assert type_text(dict[str, int]) == "table of integer"
    assert type_text(tuple[int, str]) == "list: integer, string"
