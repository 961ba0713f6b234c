"""`regard laws` finds what is broken: the package's own mechanisms keep every law, and each fault breaks the laws it should."""

from pathlib import Path

import pytest

from regard.config.extend import extended
from regard.errors import UsageError
from regard.laws.book import findings
from regard.laws.law import LAWS, judge
from regard.laws.subject import Subject
from regard.nn.attention import ALiBi, Bilinear, OffsetDot, Relative, RelativeSinusoid, Sigmoid, Window
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.segments import TransformerXL
from regard.nn.norms import RmsNorm
from regard.nn.positions import Learned
from regard.nn.trunk_recurrent import NoAttention, Recurrent

HEAD = """
from dataclasses import dataclass
from typing import ClassVar
import torch
from regard.nn.attention import Pairwise, Product, Predicate, ByDistance, Softmax
from regard.nn.positions import Sinusoid

@dataclass(frozen=True)
"""
FAULTS = {  # what is wrong, and the laws that it breaks, by words of theirs
    "scaled by all keys": (
        """
class Scaled(Product):
    kind: ClassVar[str] = "scaled"
    def basis(self, query, key):
        return query, key / key.abs().mean(2, keepdim=True)
""",
        {"documents packed", "texts packed"},
    ),
    "two kernels": (
        """
class Two(Product):
    kind: ClassVar[str] = "two"
    def pairwise(self, query, key):
        return 2 * query @ key.mT
""",
        {"every kernel"},
    ),
    "nan": (
        """
class Nan:
    kind: ClassVar[str] = "nan"
    extends: ClassVar[type] = Softmax
    def weights(self, scores, allowed):
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1)
""",
        {"a row that may see nothing"},
    ),
    "leaks": (
        """
class Leaks:
    kind: ClassVar[str] = "leaks"
    extends: ClassVar[type] = Softmax
    def weights(self, scores, allowed):
        return scores.exp() / scores.exp().sum(-1, keepdim=True) * allowed
""",
        {"with a causal pattern", "documents packed", "nothing comes from the future in a decoder", "one token after the other"},
    ),
    "dice": (
        """
class Dice:
    kind: ClassVar[str] = "dice"
    extends: ClassVar[type] = Sinusoid
    def build(self, d_model):
        import random
        class Drawn(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Parameter(torch.full((20, d_model), random.random()))
            def reach(self, length): ...
            def forward(self, positions):
                return self.table[positions]
        return Drawn()
""",
        {"the same seed"},
    ),
    "idle": (
        """
class Idle(Product):
    kind: ClassVar[str] = "idle"
    def build(self, heads, d_query, d_key):
        class Score(torch.nn.Module, Product):
            def __init__(self):
                super().__init__()
                self.unused = torch.nn.Parameter(torch.zeros(3))
        return Score()
""",
        {"gradients are numbers, and reach every parameter"},
    ),
}


def broken_in(path: Path) -> list[str]:
    with extended([path]) as (extension,):
        return [f"{one.law}: {one.why}" for one in findings(extension) if one.result == "broken"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_breaks_the_laws_that_it_should(name: str, tmp_path: Path):
    source, laws = FAULTS[name]
    (tmp_path / "mine.py").write_text(HEAD + source.lstrip())
    broken = broken_in(tmp_path / "mine.py")
    for words in laws:
        assert any(one.startswith(words) for one in broken), (words, broken)


def test_what_is_exactly_as_one_of_ours_keeps_them_all(tmp_path: Path):
    source = 'class Same(Product):\n    kind: ClassVar[str] = "same"\n    def scale(self, width):\n        return width**-0.5\n'
    (tmp_path / "mine.py").write_text(HEAD + source)
    assert not broken_in(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("config", "role"),
    [
        (Bilinear(), "score"),
        (OffsetDot(), "score"),
        (Window(2), "pattern"),
        (ALiBi(), "bias"),
        (Relative(2, sides="past"), "bias"),
        (RelativeSinusoid(), "bias"),
        (Sigmoid(), "normaliser"),
        (Longformer(reach=2), "attention"),
        (Compressed(size=2), "attention"),
        (TransformerXL(memory=9), "attention"),
        (TransformerXL(memory=3, same_length=True), "attention"),
        (Learned(20), "positions"),
        (RmsNorm(), "norm"),
        (Recurrent(width=12, output=24, attention=NoAttention(), dropout=0.0), "trunk"),
    ],
    ids=lambda one: getattr(one, "kind", one),
)
def test_the_packages_own_mechanisms_keep_them(config, role):
    subject = Subject(config, role)
    found = [judge(law, subject) for law in LAWS if law.scope != "axis" or role in ("score", "pattern", "bias", "normaliser")]
    assert not [one for one in found if one.result == "broken"]
    encoders_only = isinstance(config, Longformer)  # no row that is being written has global positions
    assert sum(one.result == "holds" for one in found) >= (3 if encoders_only else 9)
    assert (role == "normaliser") == any(one.result == "does not hold" for one in found)  # a sigmoid's rows do not sum to 1


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 1\n", "it defines no kind"),
        ("x = \n", "cannot be imported: SyntaxError"),
        ("import absent_module\n", "ModuleNotFoundError"),
        (f'{HEAD}class A(Predicate):\n    kind: ClassVar[str] = "a"\n    step: int\n', "write examples"),
        (f'{HEAD}class A:\n    kind: ClassVar[str] = "a"\n', "belongs to none of"),
    ],
)
def test_files_that_are_none(source: str, says: str, tmp_path: Path):
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(UsageError) as wrong:
        broken_in(tmp_path / "mine.py")
    assert says in str(wrong.value) and "mine.py" in str(wrong.value)
