"""Longformer's attention against Hugging Face's, with the same tiny random weights: padding, one and several global positions."""

import pytest
import torch

from regard.nn.attention.longformer import Longformer, LongformerAttention
from regard.nn.view import Tokens, View

D, HEADS, REACH, T = 12, 3, 2, 16  # theirs wants lengths that are multiples of the whole window, 2 * REACH


def pair(**axes):
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    torch.manual_seed(0)
    config = LongformerConfig(
        hidden_size=D, num_attention_heads=HEADS, attention_window=[2 * REACH], attention_probs_dropout_prob=0.0, num_hidden_layers=1
    )
    theirs = LongformerSelfAttention(config, 0).eval()
    ours = LongformerAttention(Longformer(reach=REACH, **axes), D, heads=HEADS, groups=HEADS, d_head=D // HEADS, causal=False, name="own")
    for name in ("query", "key", "value"):
        getattr(ours, name).load_state_dict(getattr(theirs, name).state_dict())
        getattr(ours, f"global_{name}").load_state_dict(getattr(theirs, f"{name}_global").state_dict())
    torch.nn.init.eye_(ours.output.weight)  # theirs has its output map elsewhere
    torch.nn.init.zeros_(ours.output.bias)
    return theirs, ours.eval()


@pytest.mark.parametrize(("first", "at"), [(1, ()), (2, (9,)), (0, (5, 6)), (0, ())])
def test_the_numbers_are_theirs(first, at):
    theirs, ours = pair(first=first, at=at)
    x = torch.randn(2, T, D, requires_grad=True)
    real = torch.arange(T)[None] < torch.tensor([[T], [11]])
    marked = torch.zeros(2, T, dtype=torch.bool)
    marked[:, [*range(first), *at]] = True
    mask = torch.where(real, torch.where(marked, 10_000.0, 0.0), -10_000.0)
    expected = theirs(x, mask, is_index_masked=~real, is_index_global_attn=marked, is_global_attn=bool(marked.any()))[0]
    out = ours(x, View(Tokens.padded(real)))
    torch.testing.assert_close(out[real], expected[real], atol=2e-6, rtol=0)
    gradients = [torch.autograd.grad(values[real].square().sum(), x)[0] for values in (out, expected)]
    torch.testing.assert_close(*gradients, atol=2e-5, rtol=0)
