"""Transformer-XL's layers against Hugging Face's XLNet with causal masks: the same relative attention and memory, random tiny weights."""

import torch
from transformers import XLNetConfig, XLNetModel

from regard.nn.attention.segments import TransformerXL
from regard.nn.feedforward import FeedForward
from regard.nn.norms import LayerNorm
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View

D, HEADS, LAYERS, MEMORY = 12, 3, 2, 4


def pair():
    torch.manual_seed(0)
    config = XLNetConfig(
        vocab_size=7, d_model=D, n_layer=LAYERS, n_head=HEADS, d_inner=17, attn_type="uni", mem_len=MEMORY, dropout=0.0, use_mems_eval=True
    )
    theirs = XLNetModel(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    own = Transformer(
        layers=LAYERS,
        heads=HEADS,
        own=TransformerXL(memory=MEMORY),
        feed_forward=FeedForward(d_ff=17, activation="gelu"),
        norm=LayerNorm(config.layer_norm_eps),
        dropout=0.0,
    )
    ours = TransformerTrunk(own, D, causal=True, name="trunk").eval()
    ours.load_state_dict({name: value for number, layer in enumerate(theirs.layer) for name, value in renamed(layer, f"blocks.{number}.")})
    return theirs, ours


def renamed(layer, before):
    """A layer's tensors under our names; what is for two streams and two texts is left out."""
    own = f"{before}own."
    for name, map_ in (("query", layer.rel_attn.q), ("key", layer.rel_attn.k), ("value", layer.rel_attn.v), ("bias.map", layer.rel_attn.r)):
        yield f"{own}{name}.weight", map_.detach().flatten(1).T
    yield f"{own}output.weight", layer.rel_attn.o.detach().flatten(1)
    yield f"{own}score.offset_HE", layer.rel_attn.r_w_bias.detach()
    yield f"{own}bias.offset_HE", layer.rel_attn.r_r_bias.detach()
    parts = {"own_residual.norm": layer.rel_attn.layer_norm, "feed_forward.inner": layer.ff.layer_1, "feed_forward.outer": layer.ff.layer_2}
    for name, part in (parts | {"feed_forward_residual.norm": layer.ff.layer_norm}).items():
        yield from ((f"{before}{name}.{kind}", value) for kind, value in part.state_dict().items())


def test_segments_of_several_lengths_with_memory():
    theirs, ours = pair()
    x = torch.randn(2, 14, D, requires_grad=True)
    state, memory, start = ours.new_state(2, 1), None, 0
    for length in (3, 5, 1, 5):
        positions = torch.arange(start, start + length).expand(2, -1)
        view = View(Tokens(positions, torch.zeros_like(positions), positions >= 0))
        part = x[:, start : start + length]
        expected = theirs(inputs_embeds=part, mems=memory)
        out = ours(part, view, state)
        torch.testing.assert_close(out, expected.last_hidden_state, atol=2e-5, rtol=0)
        gradients = [torch.autograd.grad(found.square().sum(), x, retain_graph=True)[0] for found in (out, expected.last_hidden_state)]
        torch.testing.assert_close(*gradients, atol=2e-4, rtol=0)
        memory, start = expected.mems, start + length
