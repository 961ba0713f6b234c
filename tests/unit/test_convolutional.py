"""ConvS2S against a loop over places that is written out, plain convolutions against torch's, and how far a stack sees."""

import math

import pytest
import torch
from torch import nn

from regard.data.batch import PairBatch, Side
from regard.errors import UsageError
from regard.models.build import translator
from regard.models.configs import EncoderDecoder
from regard.nn.embed import Embedding
from regard.nn.tap import record
from regard.nn.trunk_convolutional import Convolutional, ConvolutionalTrunk
from regard.nn.view import Tokens, View

HALF = math.sqrt(0.5)


def trunk_of(config: Convolutional, *, causal: bool = False, memories=(), d_model: int = 4) -> ConvolutionalTrunk:
    torch.manual_seed(7)
    trunk = ConvolutionalTrunk(config, d_model, causal=causal, memories=memories, name="decoder" if causal else "encoder").double().eval()
    for parameter in trunk.parameters():
        nn.init.normal_(parameter, std=0.5)  # so that biases count
    return trunk


def gated(layer: nn.Conv1d, window_KD: list[torch.Tensor]) -> torch.Tensor:
    """One place of a layer: half of the sums, times the sigmoid of the other half."""
    sums = layer.bias + sum(layer.weight[:, :, k] @ x for k, x in enumerate(window_KD))
    return sums[: len(sums) // 2] * sums[len(sums) // 2 :].sigmoid()


def by_places(trunk: ConvolutionalTrunk, e_TD: torch.Tensor, keys=None, values=None) -> torch.Tensor:
    """ConvS2S, place by place."""
    causal, zero = keys is not None, torch.zeros(trunk.config.width, dtype=torch.double)
    x = [trunk.inward(e) for e in e_TD]
    for number, layer in enumerate(trunk.layers):
        shift = trunk.config.kernel - 1 if causal else (trunk.config.kernel - 1) // 2
        around = lambda place, x=x, shift=shift: [x[p] if 0 <= p < len(x) else zero for p in range(place - shift, place - shift + 3)]
        found = [gated(layer.convolution, around(place)) for place in range(len(x))]
        if causal:
            look = trunk.looks[number]
            for place, one in enumerate(found):
                d = (look.query(one) + e_TD[place]) * HALF
                weights = torch.tensor([float(d @ key) for key in keys]).softmax(0)
                found[place] = (one + look.output(sum(w * v for w, v in zip(weights, values)))) * HALF
        x = [(before + after) * HALF for before, after in zip(x, found)]
    return torch.stack([trunk.outward(one) for one in x])


def test_convs2s_place_by_place():
    config = Convolutional(layers=2, width=6, dropout=0.0)
    encoder = trunk_of(config)
    decoder = trunk_of(config, causal=True, memories=[encoder])
    source, target = torch.randn(5, 4, dtype=torch.double), torch.randn(3, 4, dtype=torch.double)
    memory = encoder.read(source[None], Tokens.plain(1, 5))
    torch.testing.assert_close(memory.states[0], by_places(encoder, source))
    torch.testing.assert_close(memory.values[0], (memory.states[0] + source) * HALF)  # a place together with its word
    with record(decoder, "decoder.*") as seen:
        out = decoder(target[None], View(Tokens.plain(1, 3), (memory,)))[0]
    torch.testing.assert_close(out, by_places(decoder, target, memory.states[0], memory.values[0]), atol=1e-6, rtol=0)
    assert sorted(name for name in seen if name.endswith("weights")) == ["decoder.0.cross.weights", "decoder.1.cross.weights"]


def test_plain_convolutions_are_torchs():
    trunk = trunk_of(Convolutional(layers=2, kernel=5, gated=False, skip=False, dropout=0.0))
    x = torch.randn(2, 7, 4, dtype=torch.double)
    expected = x.mT
    for layer in trunk.layers:
        expected = nn.functional.conv1d(expected, layer.convolution.weight, layer.convolution.bias, padding=2).relu()
    memory = trunk.read(x, Tokens.plain(2, 7))
    torch.testing.assert_close(memory.states, expected.mT)
    assert memory.values is None and memory.gathered is memory.states


@pytest.mark.parametrize(
    ("causal", "dilated", "layers"),
    [(False, False, 9), (True, False, 5), (True, True, 3)],  # centred, ceil(2m / (k-1)) for both ends; causal; causal and dilated
)
def test_layers_that_link_the_first_of_ten_words_to_the_last(causal, dilated, layers):
    """m = 9, k = 3: any layer less and nothing arrives."""
    for count, arrives in ((layers, True), (layers - 1, False)):
        trunk = trunk_of(Convolutional(layers=count, gated=False, skip=True, dilated=dilated, dropout=0.0), causal=causal)
        for layer in trunk.layers:
            layer.convolution.weight.data.abs_()
        x = torch.rand(1, 10, 4, dtype=torch.double, requires_grad=True)
        (gradient,) = torch.autograd.grad(trunk(x, View(Tokens.plain(1, 10)))[0, 9].sum(), x)
        assert bool(gradient[0, 0].any()) is arrives, count


def test_the_scale_of_vectors_stays_through_many_layers():
    torch.manual_seed(1)
    x = torch.randn(3, 40, 64)
    for gated_ in (True, False):
        trunk = ConvolutionalTrunk(Convolutional(layers=12, gated=gated_, dropout=0.0), 64, causal=False, name="encoder")
        assert 0.3 < float(trunk(x, View(Tokens.plain(3, 40))).std()) < 6  # a gate passes a little more than a quarter


def test_one_pair_of_maps_serves_all_layers():
    encoder = trunk_of(Convolutional())
    shared, own = (trunk_of(Convolutional(shared_maps=one), causal=True, memories=[encoder]) for one in (True, False))
    sizes = [sum(parameter.numel() for parameter in trunk.looks.parameters()) for trunk in (shared, own)]
    assert sizes == [2 * (4 * 4 + 4), 4 * 2 * (4 * 4 + 4)]
    assert shared.cross_maps == own.cross_maps == (0, 1, 2, 3)


def test_sixteen_bits_train():
    torch.manual_seed(1)
    trunk = Convolutional(layers=2, width=6)
    options = {"embedding": Embedding(dropout=0.0), "source_vocabulary": 11, "target_vocabulary": 11}
    model = translator(EncoderDecoder(d_model=8, encoder=trunk, decoder=trunk, **options)).train()
    side = Side(torch.tensor([[5, 6, 2]]), Tokens.plain(1, 3))
    with torch.autocast("cpu", torch.bfloat16):
        model.output(model(PairBatch(side, side, side.ids, (), 0, 0))).float().square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_an_encoder_needs_a_middle():
    with pytest.raises(UsageError, match="no middle"):
        trunk_of(Convolutional(kernel=4))
    trunk_of(Convolutional(kernel=4), causal=True)
