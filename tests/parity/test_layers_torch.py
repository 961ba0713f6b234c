"""Our blocks hold the same numbers as torch's own layers, and count the same parameters."""

import pytest
import torch
from torch import nn

from regard.models.build import build
from regard.models.configs import EncoderDecoder
from regard.models.presets import PRESETS
from regard.nn.attention.multihead import MultiHead
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View

D, HEADS, FF = 20, 5, 23


def copy_attention(ours: MultiHead, theirs: nn.MultiheadAttention) -> None:
    for mine, weight, bias in zip(
        (ours.query, ours.key, ours.value), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        mine.weight.data, mine.bias.data = weight.data.clone(), bias.data.clone()
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(ours, theirs) -> None:
    copy_attention(ours.own, theirs.self_attn)
    norms = [ours.own_residual]
    if hasattr(theirs, "multihead_attn"):
        copy_attention(ours.cross[0], theirs.multihead_attn)
        norms.append(ours.cross_residual[0])
    norms.append(ours.feed_forward_residual)
    for i, residual in enumerate(norms, 1):
        residual.norm.load_state_dict(getattr(theirs, f"norm{i}").state_dict())
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())


@pytest.fixture(params=["post", "pre"])
def placement(request):
    return request.param


def test_whole_transformer_equals_torch(placement):
    torch.manual_seed(5)
    theirs = nn.Transformer(D, HEADS, 2, 3, FF, dropout=0.0, batch_first=True, norm_first=placement == "pre", dtype=torch.double)
    for parameter in theirs.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    config = Transformer(heads=HEADS, feed_forward=FeedForward(d_ff=FF), dropout=0.0, placement=placement, final_norm=True)
    trunks = []
    for stack, causal, memories in ((theirs.encoder, False, 0), (theirs.decoder, True, 1)):
        layers = Transformer(**{**vars(config), "layers": len(stack.layers)})
        trunk = TransformerTrunk(layers, D, causal=causal, memories=memories, name="trunk").double()
        for block, layer in zip(trunk.blocks, stack.layers, strict=True):
            copy_layer(block, layer)
        trunk.norm.load_state_dict(stack.norm.state_dict())
        trunks.append(trunk)
    encoder, decoder = trunks
    source, target = torch.randn(3, 7, D, dtype=torch.double), torch.randn(3, 4, D, dtype=torch.double)
    real = torch.arange(7) < torch.tensor([7, 2, 5])[:, None]
    their_out = theirs(
        source,
        target,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.double),
        src_key_padding_mask=~real,
        memory_key_padding_mask=~real,
    )
    tokens = Tokens.padded(real)
    our_out = decoder(target, View(Tokens.plain(3, 4), (encoder.read(source, tokens),)))
    torch.testing.assert_close(our_out, their_out, atol=1e-10, rtol=0)


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_parameter_counts():
    own = TransformerTrunk(Transformer(layers=1), 512, causal=False, name="encoder")
    assert count(own) == count(nn.TransformerEncoderLayer(512, 8, 2048)) == 3_152_384
    decoder = TransformerTrunk(Transformer(layers=1), 512, causal=True, memories=1, name="decoder")
    assert count(decoder) == 4_204_032
    both = [
        TransformerTrunk(Transformer(final_norm=True), 512, causal=causal, memories=memories, name="t")
        for causal, memories in ((False, 0), (True, 1))
    ]
    assert sum(map(count, both)) == 44_140_544


def test_presets_have_the_papers_sizes():
    from regard.config.toml import structure

    with torch.device("meta"):
        sizes = {name: count(build(structure(EncoderDecoder, PRESETS[name]))) for name in ("base", "big")}
    # Vaswani et al. with V = 37,000 shared and no attention biases: 63.05M and 214.17M (its table prints 65 and 213)
    assert round(sizes["base"] / 1e6, 2) == 63.05
    assert round(sizes["big"] / 1e6, 2) == 214.17


def test_embedding_dropout_and_tying():
    config = EncoderDecoder(d_model=8, embedding=Embedding(dropout=0.0), source_vocabulary=11, target_vocabulary=11)
    model = build(config)
    assert model.source.table is model.target.table is model.output.table
    untied = build(EncoderDecoder(d_model=8, tie="none", source_vocabulary=11, target_vocabulary=7))
    assert count(untied) - count(untied.encoder) - count(untied.decoder) == 8 * (11 + 7 + 7)
