"""The letters by which papers call their models, as kinds in a configuration."""

from __future__ import annotations

import pytest

from regard.config.toml import dumps, structure
from regard.errors import UsageError
from regard.models.configs import EncoderDecoder, LanguageModel, Model
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.multihead import Attention
from regard.nn.experts import Experts
from regard.nn.trunk_transformer import Transformer


@pytest.mark.parametrize(
    ("table", "config"),
    [
        ({"kind": "ED"}, EncoderDecoder()),
        ({"kind": "D", "d_model": 8}, LanguageModel(d_model=8)),
        ({"kind": "D", "trunk": {"own": "DMCA"}}, LanguageModel(trunk=Transformer(own=Compressed()))),
        ({"kind": "D", "trunk": {"own": {"kind": "DMCA", "size": 2}}}, LanguageModel(trunk=Transformer(own=Compressed(2)))),
        ({"kind": "D", "trunk": {"feed_forward": {"kind": "MoE", "count": 4}}}, LanguageModel(trunk=Transformer(feed_forward=Experts(4)))),
        ({"kind": "D", "trunk": {"cycle": ["attention", "DMCA"]}}, LanguageModel(trunk=Transformer(cycle=(Attention(), Compressed())))),
    ],
    ids=str,
)
def test_a_kind_by_its_letters(table, config):
    found = structure(Model, table)
    assert found == config and structure(Model, table | {"kind": config.kind}) == config
    assert not {"ED", "D", "DMCA", "MoE"} & set(dumps(found).replace('"', " ").split())  # written down in full


def test_letters_stand_where_they_belong():
    with pytest.raises(UsageError, match="DMCA"):
        structure(Model, {"kind": "DMCA"})
    with pytest.raises(UsageError, match="no kind"):
        structure(Model, {"kind": "E"})
