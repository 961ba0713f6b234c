"""All laws, and what they say of every kind in a file of the user's."""

from __future__ import annotations

from collections.abc import Iterator

from regard.config.extend import Extension
from regard.laws import attention, models  # noqa: F401  (they write their laws into the book)
from regard.laws.law import LAWS, Finding, Law, judge
from regard.laws.subject import AXES, Subject, subjects


def applies(law: Law, subject: Subject) -> bool:
    return law.scope != "axis" or subject.role in AXES


def findings(extension: Extension) -> Iterator[Finding]:
    """Subject by subject, law by law."""
    for subject in subjects(extension):
        for law in LAWS:
            if applies(law, subject):
                yield judge(law, subject)


def page(found: list[Finding]) -> str:
    """For people: a paragraph for each subject."""
    lines = []
    for number, one in enumerate(found):
        if not number or found[number - 1].subject != one.subject:
            lines += [*([""] if number else []), one.subject]
        lines.append(f"  {one.result:<15} {one.law}" + (f": {one.why}" if one.why else ""))
    broken = sum(one.result == "broken" for one in found)
    counted = f"{broken} broken" if broken else "none is broken"
    return "\n".join([*lines, "", f"{len(found)} laws, {counted}"])
