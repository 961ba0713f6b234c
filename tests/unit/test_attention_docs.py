"""The examples of docs/attention.md run as they stand, and its table of members is complete."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import get_args

import torch

from regard.config.toml import structure
from regard.models.build import build
from regard.models.configs import LanguageModel, Model
from regard.nn import attention
from regard.nn.attention import Bias, Kernel, Normaliser, Pattern, Score
from regard.nn.attention.sight import Sight
from regard.nn.attention.slots import Own

TEXT = (Path(__file__).parents[2] / "docs" / "attention.md").read_text(encoding="utf-8")


def test_the_examples_run(capsys):
    names: dict = {"__name__": "examples"}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "docs/attention.md", "exec"), names)
    assert capsys.readouterr().out.strip() in TEXT


def test_the_tables_are_models():
    blocks = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert blocks
    for block in blocks:
        model = structure(Model, {"kind": "translator"} | tomllib.loads(block)["model"])
        sizes = {"vocabulary": 7} if isinstance(model, LanguageModel) else {"source_vocabulary": 7, "target_vocabulary": 7}
        build(replace(model, **sizes))


def test_the_pictures_are_those_of_the_predicates():
    blocks = re.findall(r"```mask\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        expressions, *rows = block.rstrip().split("\n")
        for expression, shown in zip(re.split(" {2,}", expressions), zip(*map(str.split, rows), strict=True), strict=True):
            pattern = eval(expression, vars(attention))
            sight = Sight(None, None, pattern, lengths=(12, 12), heads=1, device=torch.device("cpu"))
            assert ["".join("x" if seen else "." for seen in row) for row in sight.allowed()[0, 0].tolist()] == list(shown), expression


def test_every_member_is_named():
    kinds = {member.kind for union in (Score, Pattern, Bias, Normaliser, Own) for member in get_args(union)} | set(get_args(Kernel))
    assert kinds <= set(re.findall(r"`([a-z0-9-]+)`", TEXT))
