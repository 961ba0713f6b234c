"""Experts against Hugging Face's, with the same random weights: Mixtral's two of four, Switch's one with a capacity."""

import pytest
import torch

from regard.nn.experts import Experts, NoisyTopK, Routed, Switch
from regard.nn.feedforward import FeedForward
from regard.nn.view import Tokens

D, F, E, ROWS, T = 12, 20, 4, 3, 10


def outputs_and_gradients(ours, theirs, x):
    """Of both, and the gradient of what went in."""
    tokens = Tokens.padded(torch.ones(ROWS, T, dtype=torch.bool))
    found = [ours(x, tokens), theirs(x)]
    return found, [torch.autograd.grad(out.square().sum(), x)[0] for out in found]


def test_mixtral():
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    torch.manual_seed(0)
    theirs = MixtralSparseMoeBlock(MixtralConfig(hidden_size=D, intermediate_size=F, num_local_experts=E, num_experts_per_tok=2)).train()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    expert = FeedForward(d_ff=F, activation="silu", gated=True, biases=False)
    ours = Routed(Experts(E, NoisyTopK(chosen=2, noise=False), expert), D, name="block").train()
    with torch.no_grad():
        ours.router.weight.copy_(theirs.gate.weight)
        for number, one in enumerate(ours.experts):
            activated, plain = theirs.experts.gate_up_proj[number].chunk(2)
            one.inner.weight.copy_(activated)
            one.gate.weight.copy_(plain)
            one.outer.weight.copy_(theirs.experts.down_proj[number])
    outputs, gradients = outputs_and_gradients(ours, theirs, torch.randn(ROWS, T, D, requires_grad=True))
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("room", [1, 2, 4, 10])
def test_switch_with_a_capacity_for_each_row(room):
    from transformers import SwitchTransformersConfig
    from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersSparseMLP

    torch.manual_seed(0)
    theirs = SwitchTransformersSparseMLP(
        SwitchTransformersConfig(d_model=D, d_ff=F, num_experts=E, expert_capacity=room, dropout_rate=0.0, router_jitter_noise=0.0)
    ).train()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    factor = room * E / T - 1e-9
    ours = Routed(Experts(E, Switch(capacity=factor, per="row"), FeedForward(d_ff=F, biases=False)), D, name="block").train()
    with torch.no_grad():
        ours.router.weight.copy_(theirs.router.classifier.weight)
        for number, one in enumerate(ours.experts):
            one.inner.weight.copy_(theirs.experts[f"expert_{number}"].wi.weight)
            one.outer.weight.copy_(theirs.experts[f"expert_{number}"].wo.weight)
    outputs, gradients = outputs_and_gradients(ours, theirs, torch.randn(ROWS, T, D, requires_grad=True))
    assert (outputs[0] == 0).all(-1).any() or room > 2  # who found no room
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-5)
