"""How translations are written as lines: plain, Moses' and Marian's n-best form, JSON. One line stays one line, whatever a text holds."""

from __future__ import annotations

import json
from collections.abc import Iterator

from regard.decode.pharaoh import write
from regard.decode.translate import Candidate, Translation


def plain(translation: Translation, *, alignment: bool = False) -> str:
    """The best text; with its alignment behind ` ||| `, as Marian writes it."""
    best = translation.best
    return f"{one_line(best.text)} ||| {write(best.alignment)}" if alignment else one_line(best.text)


def n_best(number: int, translation: Translation, *, alignment: bool = False) -> Iterator[str]:
    """`number ||| text [||| alignment] ||| F0= log-probability ||| score`, a line for each candidate."""
    for one in translation.candidates:
        aligned = f" ||| {write(one.alignment)}" if alignment else ""
        yield f"{number} ||| {one_line(one.text)}{aligned} ||| F0= {one.log_prob:.6f} ||| {one.score:.6f}"


def as_json(translation: Translation, *, n_best: bool = False, alignment: bool = False) -> str:
    """One object: the best candidate's fields and, when asked for, all candidates under `n_best`."""
    fields = {"source": translation.source, **_fields(translation.best, alignment=alignment), "dropped": translation.dropped}
    if n_best:
        fields["n_best"] = [_fields(one, alignment=alignment) for one in translation.candidates]
    return json.dumps(fields, ensure_ascii=False)


def one_line(text: str) -> str:
    """Only the newline ends a line of ours, so only it must go; U+2028 and its like stay as they are."""
    return text.replace("\n", " ")


def _fields(one: Candidate, *, alignment: bool) -> dict:
    fields: dict = {"text": one.text, "score": one.score, "log_prob": one.log_prob, "full": one.full}
    if one.tokenised != one.text:
        fields["tokenised"] = one.tokenised
    fields |= {"pieces": one.pieces, "log_probs": one.log_probs}
    return fields | {"alignment": one.alignment} if alignment else fields
