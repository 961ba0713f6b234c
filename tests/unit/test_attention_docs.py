"""The examples of docs/attention.md run as they stand, and its table of members is complete."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import get_args

from regard.config.toml import structure
from regard.models.build import translator
from regard.models.configs import EncoderDecoder
from regard.nn.attention import Bias, Kernel, Normaliser, Pattern, Score

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
        translator(replace(structure(EncoderDecoder, tomllib.loads(block)["model"]), source_vocabulary=7, target_vocabulary=7))


def test_every_member_is_named():
    kinds = {member.kind for union in (Score, Pattern, Bias, Normaliser) for member in get_args(union)} | set(get_args(Kernel))
    assert kinds <= set(re.findall(r"`([a-z0-9-]+)`", TEXT))
