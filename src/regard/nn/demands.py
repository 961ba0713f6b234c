"""Five demands on an encoding of positions, worked out from its numbers: what each kind keeps and what it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError
from regard.nn.positions import Binary, Fraction, Integer, Learned, Positions, Sinusoid, build_positions, code, sinusoid

NEAR = 1e-4  # below this two vectors are one, as far as 32 bits tell at a few hundred positions


@dataclass(frozen=True)
class Demands:
    """What holds of an encoding."""

    unique: bool
    """No two positions of a text have one vector."""
    consistent: bool
    """The difference of two positions is the same in texts of other lengths."""
    longer: bool
    """A text longer than those of training has positions that are told apart, by numbers in the range that was seen."""
    bounded: bool
    """However long the text, the numbers stay below a bound."""
    deterministic: bool
    """The same position has the same vector each time."""
    invariant: bool
    """Beyond the five: how alike two positions are depends on their distance alone."""


def codes(config: Positions, length: int, width: int) -> Float[Tensor, "T D"]:
    """The vectors of a text of this length; an error where the encoding has none."""
    places = torch.arange(length)
    match config:
        case Sinusoid():
            return sinusoid(places, width, config).double()
        case Integer() | Fraction() | Binary():
            return code(config, places, width, length=length).double()
        case Learned():
            torch.manual_seed(0)
            table = build_positions(config, width)
            assert table is not None
            table.reach(length)
            return table(places).detach().double()
        case _:
            raise UsageError(f"{config.kind} encodes no positions")


def demands(config: Positions, *, width: int = 64, short: int = 7, trained: int = 64, longer: int = 200) -> Demands:
    """Worked out on texts of `short` and one more words, of the length of training, and of a longer one."""
    one, other = codes(config, short, width), codes(config, short + 1, width)[:short]
    seen = codes(config, trained, width)
    gram = seen @ seen.T
    along = [gram.diagonal(offset) for offset in range(trained)]
    return Demands(
        unique=_apart(seen),
        consistent=bool(((one[1:] - one[:-1]) - (other[1:] - other[:-1])).abs().max() < NEAR),
        longer=_reaches(config, width, seen, longer),
        bounded=_bounded(config, width),
        deterministic=torch.equal(seen, codes(config, trained, width)),
        invariant=max(float(one.max() - one.min()) for one in along) < NEAR,
    )


def _apart(vectors: Float[Tensor, "T D"]) -> bool:
    gaps = torch.cdist(vectors, vectors) + torch.eye(len(vectors)) * 9
    return bool(gaps.min() > NEAR)


def _reaches(config: Positions, width: int, seen: Float[Tensor, "T D"], length: int) -> bool:
    try:
        vectors = codes(config, length, width)
    except UsageError:
        return False
    return _apart(vectors) and bool(vectors.abs().max() <= seen.abs().max() + NEAR)


def _bounded(config: Positions, width: int) -> bool:
    """A learned table is what training makes of it, so nothing is promised."""
    match config:
        case Learned():
            return False
        case Sinusoid():
            far = sinusoid(torch.tensor([10**3, 10**6]), width, config)
        case Integer() | Fraction() | Binary():
            far = code(config, torch.tensor([10**3, 10**6]), width, length=10**6 + 1)
        case _:
            assert_never(config)  # type: ignore[arg-type]
    return bool(far.abs().max() <= 1 + NEAR)


def table(kinds: dict[str, Positions], *, width: int = 64) -> str:
    """The demands of several encodings as rows of a page."""
    names = list(Demands.__dataclass_fields__)
    rows = [f"| encoding | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for name, config in kinds.items():
        found = demands(config, width=width)
        rows.append(f"| {name} | " + " | ".join("yes" if getattr(found, field) else "**no**" for field in names) + " |")
    return "\n".join(rows) + "\n"
