"""Batch norm beside layer norm: over which axis each takes its means, what padding does to them, and where it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.data.text_batch import TextBatch
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel, Tagger
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.norms import BatchNorm, LayerNorm, TokenBatchNorm, build_norm
from regard.nn.trunk_transformer import Transformer
from toy_layouts import packed, padded

TEXTS = [[4, 5, 6, 7, 8], [5, 4], [8, 8, 6]]
ENCODER = Transformer(layers=2, heads=2, dropout=0.0, norm=BatchNorm(), feed_forward=FeedForward(d_ff=14))


def test_it_is_torchs_where_all_is_real():
    torch.manual_seed(1)
    ours, theirs, x = build_norm(BatchNorm(), 3), nn.BatchNorm1d(3), 2 + torch.randn(4, 5, 3)
    for _ in range(3):
        expected = theirs(x.flatten(0, 1)).view_as(x)
        torch.testing.assert_close(ours(x, torch.ones(4, 5, dtype=torch.bool)), expected)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x.flatten(0, 1)).view_as(x))


def test_over_which_axis_each_takes_its_means():
    x = torch.randn(6, 7, 5) * torch.arange(1, 6) + 3
    batch, layer = build_norm(BatchNorm(), 5)(x), build_norm(LayerNorm(), 5)(x)
    assert torch.allclose(batch.mean((0, 1)), torch.zeros(5), atol=1e-5) and not torch.allclose(batch.mean(2), torch.zeros(6, 7), atol=0.1)
    assert torch.allclose(layer.mean(2), torch.zeros(6, 7), atol=1e-5) and not torch.allclose(layer.mean((0, 1)), torch.zeros(5), atol=0.1)


def test_a_layer_norm_knows_nothing_of_the_batch_and_a_batch_norm_does():
    x, other = torch.randn(2, 4, 5), torch.randn(1, 4, 5)
    for config, changes in ((LayerNorm(), False), (BatchNorm(), True)):
        norm = build_norm(config, 5)
        assert torch.allclose(norm(x)[0], norm(torch.cat([x[:1], other]))[0]) != changes


def losses(layout) -> tuple[torch.Tensor, dict]:
    torch.manual_seed(3)
    model = build(Tagger(d_model=8, encoder=ENCODER, embedding=Embedding(dropout=0.0), vocabulary=9, labels=("a", "b"))).double().train()
    side = layout(TEXTS)
    hidden = model(TextBatch(side, side.ids, (0, 1, 2), 10))[side.tokens.real]
    return hidden, {name: part.running_var for name, part in model.named_modules() if isinstance(part, TokenBatchNorm)}


def test_padding_and_packing_change_nothing_in_training():
    hidden, running = losses(padded)
    for layout in (packed, lambda rows: padded(rows, right=3), lambda rows: padded(rows, left=2)):
        other, others = losses(layout)
        torch.testing.assert_close(other, hidden, atol=1e-6, rtol=1e-6)
        for name in running:
            torch.testing.assert_close(others[name], running[name], atol=1e-6, rtol=1e-6)


def test_one_token_alone_is_no_error():
    norm = build_norm(BatchNorm(), 3)
    x = torch.randn(1, 1, 3, requires_grad=True)
    norm(x, torch.ones(1, 1, dtype=torch.bool)).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all() and norm.running_var.isfinite().all()


@pytest.mark.parametrize("where", ["trunk", "embedding"])
def test_a_model_that_writes_refuses_it(where: str):
    plain, embedding = replace(ENCODER, norm=LayerNorm()), Embedding(norm=BatchNorm())
    model = LanguageModel(d_model=8, trunk=ENCODER, vocabulary=9)
    translator = EncoderDecoder(d_model=8, decoder=ENCODER, source_vocabulary=9, target_vocabulary=9)
    if where == "embedding":
        model, translator = replace(model, trunk=plain, embedding=embedding), replace(translator, decoder=plain, embedding=embedding)
    for config in (model, translator):
        with pytest.raises(UsageError, match="those to come among them"):
            build(config)
    build(replace(translator, encoder=ENCODER, decoder=plain, embedding=Embedding()))
