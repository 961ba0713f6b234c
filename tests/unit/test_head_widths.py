"""Heads of any width: keys and values apart, neither bound to the model's width, in every kind of slot."""

from __future__ import annotations

import math
import tomllib

import pytest
import torch

from regard.config.toml import structure
from regard.data.text_batch import TextBatch
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel
from regard.nn.attention import Relative
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.lowrank import Linformer
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.segments import TransformerXL
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_transformer import Transformer
from regard.nn.view import Tokens, View
from regard.plan.models import model_parts
from regard.plan.part import Load
from toy_layouts import packed, padded

WIDE = Attention(d_value=7)
READERS = {
    "attention": WIDE,
    "longformer": Longformer(reach=2, attention=WIDE),
    "linformer": Linformer(rank=3, length=20, attention=WIDE),
    "compressed": Compressed(size=2, null=True, attention=WIDE),
}
WRITERS = {"attention": WIDE, "compressed": READERS["compressed"], "transformer-xl": TransformerXL(memory=9, attention=WIDE)}
TEXTS = [[1, 12, 7, 5], [1, 6, 8, 9, 10, 11, 3], [1, 4]]


def trunk(own, *, groups=0):
    return Transformer(
        layers=2, heads=4, key_value_heads=groups, d_head=3, own=own, cross=WIDE, dropout=0.0, feed_forward=FeedForward(d_ff=11)
    )


def test_by_the_formula():
    """Two heads of 3 with values of 5 out of and into vectors of 4: softmax(q.k / sqrt(3)) v."""
    torch.manual_seed(0)
    made = MultiHead(Attention(d_value=5), 4, heads=2, groups=2, d_head=3, pattern=(), name="own").double()
    assert made.value.weight.shape == (10, 4) and made.output.weight.shape == (4, 10) and made.key.weight.shape == (6, 4)
    x = torch.randn(1, 6, 4, dtype=torch.double)
    query, key, value = (layer(x)[0].unflatten(-1, (2, -1)) for layer in (made.query, made.key, made.value))
    heads = [(query[:, h] @ key[:, h].T / math.sqrt(3)).softmax(-1) @ value[:, h] for h in range(2)]
    torch.testing.assert_close(made(x, View(Tokens.plain(1, 6)))[0], made.output(torch.cat(heads, -1)))


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("kind", READERS)
def test_counted_by_plan(kind, groups):
    own = READERS[kind]
    config = EncoderDecoder(d_model=10, encoder=trunk(own, groups=groups), decoder=trunk(WIDE), source_vocabulary=17, target_vocabulary=17)
    with torch.device("meta"):
        real = sum(parameter.numel() for parameter in build(config).parameters())
    assert model_parts(config, Load()).size == real
    narrow = EncoderDecoder(d_model=10, encoder=trunk(Attention()), decoder=trunk(Attention()), source_vocabulary=17, target_vocabulary=17)
    assert model_parts(narrow, Load()).total("cache") < model_parts(config, Load()).total("cache")


@pytest.mark.parametrize("kind", WRITERS)
def test_written_as_it_is_read(kind):
    """From a cache as from the whole row, and packed as padded."""
    torch.manual_seed(1)
    config = LanguageModel(d_model=10, trunk=trunk(WRITERS[kind]), embedding=Embedding(dropout=0.0), tie=False, vocabulary=13)
    model = build(config).double().eval()
    with torch.device("meta"):
        assert model_parts(config, Load()).size == sum(parameter.numel() for parameter in build(config).parameters())
    side = padded(TEXTS)
    whole = model.output(model(TextBatch(side, side.ids, (0, 1, 2), 13)))
    row = packed(TEXTS)
    end_to_end = model.output(model(TextBatch(row, row.ids, (0, 1, 2), 13)))[0]
    torch.testing.assert_close(end_to_end, whole[side.tokens.real], atol=1e-9, rtol=0)
    state = model.new_state(3, 9)
    for start, end in ((0, 3), (3, 4), (4, 7)):
        facts = side.tokens.each(lambda fact, start=start, end=end: fact[:, start:end])
        found = model.output(model.step(side.ids[:, start:end], facts, state, longest=end))
        torch.testing.assert_close(found[facts.real], whole[:, start:end][facts.real], atol=1e-9, rtol=0)


def test_from_a_table_and_what_cannot_be():
    table = tomllib.loads(
        "d_model = 10\nencoder = { heads = 4, d_head = 3, own = { d_value = 7 } }\nsource_vocabulary = 9\ntarget_vocabulary = 9"
    )
    table["decoder"] = table["encoder"]
    config = structure(EncoderDecoder, table)
    assert config.encoder.own.d_value == 7 and build(config).encoder.blocks[0].own.output.weight.shape == (10, 28)
    for wrong, says in ((Attention(d_value=-1), "d_value is -1"), (Attention(d_value=7, bias=Relative(3, values=True)), "as wide as keys")):
        with pytest.raises(UsageError, match=says):
            MultiHead(wrong, 10, heads=2, groups=2, d_head=3, pattern=(), name="own")
