"""How many layers a path between two words needs: one where all see all, more where windows end."""

import pytest
import torch

from regard.models.build import trunk as build_trunk
from regard.nn.attention import Window
from regard.nn.attention.multihead import Attention
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Recurrent
from regard.nn.trunk_transformer import Transformer
from regard.nn.view import Tokens

LENGTH = 9


def links(config):
    """Which output depends on which input."""
    torch.manual_seed(1)
    trunk = build_trunk(config, 8, causal=False, name="encoder").double().eval()
    tokens = Tokens.plain(1, LENGTH)
    x = torch.randn(1, LENGTH, 8, dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian(lambda x: trunk.read(x, tokens).states, x)
    return jacobian.abs().sum((0, 2, 3, 5)) > 1e-12


def transformer(layers, own):
    return Transformer(layers=layers, heads=2, own=own, placement="pre", dropout=0.0, feed_forward=FeedForward(d_ff=16))


def distance():
    place = torch.arange(LENGTH)
    return (place[:, None] - place[None, :]).abs()


def test_one_layer_links_every_pair():
    assert links(transformer(1, Attention())).all()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_windows_need_as_many_layers_as_they_are_apart(layers):
    assert torch.equal(links(transformer(layers, Attention(pattern=(Window(2),)))), distance() <= 2 * layers)


@pytest.mark.parametrize("layers", [1, 2])
def test_so_do_convolutions(layers):
    assert torch.equal(links(Convolutional(layers=layers, width=8, kernel=3, dropout=0.0)), distance() <= layers)


def test_a_recurrent_layer_hands_it_on_step_by_step():
    seen = links(Recurrent(cell="rnn", layers=1, width=8, bidirectional=False, dropout=0.0))
    assert torch.equal(seen, torch.ones(LENGTH, LENGTH).tril().bool())
