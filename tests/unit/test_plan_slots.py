"""The bill of sparse, low-rank and compressed attention: parameters against built models, FLOPs against the papers' arithmetic."""

import pytest
import torch

from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel
from regard.nn.attention import BigBird, BlockLocal, Causal, Dilated, Global, Strided, Window
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.lowrank import Linformer
from regard.nn.attention.multihead import Attention
from regard.nn.attention.segments import TransformerXL
from regard.nn.trunk_transformer import Transformer
from regard.plan.attention import Heads, pairs
from regard.plan.models import model_parts
from regard.plan.part import Load
from regard.plan.slots import slot

BASE = Heads(12, 12, 64)
OWN = [
    (Longformer(),),
    (Longformer(attention=Attention(biases=False)),),
    *((Linformer(rank=7, length=19, sharing=sharing),) for sharing in ("none", "headwise", "key-value", "layerwise")),
    (Compressed(),),
    (Attention(pattern=(BlockLocal(4),)), Compressed(size=2, null=True)),
    (Linformer(rank=7, length=19, sharing="layerwise"), Linformer(rank=5, length=19, sharing="layerwise"), Attention(biases=False)),
]


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("cycle", OWN, ids=lambda cycle: ", ".join(one.kind for one in cycle))
def test_formulas_count_what_the_model_has(cycle, layers):
    writes = all(isinstance(one, Attention | Compressed) for one in cycle)
    for decoder in (
        Transformer(layers=layers, heads=4, cross=Linformer(rank=3, length=11, sharing="layerwise")),
        Transformer(layers=layers, heads=4, cross=Linformer(rank=3, length=11, sharing="none"), cycle=cycle if writes else ()),
    ):
        encoder = Transformer(layers=layers, heads=4, key_value_heads=2, cycle=cycle)
        config = EncoderDecoder(d_model=12, encoder=encoder, decoder=decoder, source_vocabulary=17, target_vocabulary=17)
        with torch.device("meta"):
            real = sum(parameter.numel() for parameter in build(config).parameters())
        assert model_parts(config, Load()).size == real


def core(pattern, n, *, causal=False):
    config = Attention(pattern=(pattern,))
    load = Load(source=n, target=n)
    return slot(config, 768, BASE, load, name="own", causal=causal, memory=False, decodes=False).core


def test_sparse_patterns_cost_what_they_see():
    n, d = 4096, 768
    assert core(BigBird(64, random=3), n) == 4 * d * 2_547_712 == pytest.approx(7.83e9, rel=1e-3)
    assert core(Window(256), n) == 4 * d * 2_035_456
    assert core(Window(256), n, causal=True) == 4 * d * 1_019_776
    assert core(Dilated(100, (3,)), n) == 4 * d * (n * 201 - 3 * 100 * 101)
    assert core(BlockLocal(256), n) == 4 * 256 * n * d


def test_pairs_of_two_lengths_and_of_heads_that_differ():
    assert pairs(Window(1) | Global(1), 3, 7) == 7 + 3 + 4
    assert pairs(Dilated(1, (1, 2)), 10, 10, heads=2) == ((10 + 18) + (10 + 16)) / 2
    assert pairs(Causal() & Strided(2), 4, 4) == 1 + 1 + 2 + 2


def test_linformer_by_the_formula():
    n, k, d = 4096, 256, 768
    load = Load(source=n, target=n)
    axes = {"name": "own", "memory": False, "decodes": False, "causal": False}
    part = slot(Linformer(rank=k, length=n), d, BASE, load, **axes)
    plain = slot(Attention(), d, BASE, load, **axes)
    assert part.core == 4 * n * k * d
    assert part.maps == plain.maps + 4 * n * k * d
    assert part.core + part.maps - plain.maps == pytest.approx(6.44e9, rel=1e-3)
    assert part.kept < plain.kept * 1.5 and part.cache == 0


def test_linformer_over_a_source():
    load = Load(source=100, target=7)
    axes = {"name": "cross", "memory": True, "decodes": True, "causal": False}
    part, plain = (slot(config, 768, BASE, load, **axes) for config in (Linformer(rank=5, length=200), Attention()))
    assert part.core == 4 * 7 * 5 * 768
    assert plain.step - part.step == 4 * 95 * 768
    assert part.once - plain.once == 4 * 5 * 100 * 768
    assert part.cache == 2 * 768 * 5 * 4


def test_compressed_by_the_formula():
    n, d = 3000, 768
    load = Load(source=n, target=n)
    axes = {"name": "own", "memory": False, "decodes": True, "causal": True}
    part, plain = (slot(config, d, BASE, load, **axes) for config in (Compressed(), Attention()))
    assert part.parameters - plain.parameters == 2 * (3 * d * d + d)
    assert part.core == 4 * n * (n // 3) * d
    assert part.maps - plain.maps == 12 * d * d * (n // 3) + 4 * d * (n // 3)
    assert part.cache == 2 * d * (n // 3 + 2) * 4
    assert plain.step - part.step == pytest.approx(4 * (n - n // 3) * d - 4 * (3 * d * d + d) / 3)


def test_longformer_by_the_formula():
    n, d, r, g = 1024, 768, 16, 2
    axes = {"name": "own", "memory": False, "decodes": False, "causal": False}
    load = Load(source=n, target=n)
    part, plain = (slot(config, d, BASE, load, **axes) for config in (Longformer(reach=r, first=g), Attention()))
    assert part.parameters - plain.parameters == 3 * (d * d + d)
    assert part.maps - plain.maps == 6 * n * (d * d + d)
    assert part.core == 4 * d * pairs(Window(r) | Global(g), n, n)


def test_transformer_xl_by_the_formula():
    n, m, d = 100, 40, 768
    load = Load(source=n, target=n, batch=3)
    axes = {"name": "own", "memory": False, "decodes": True, "causal": True}
    part, plain = (slot(config, d, BASE, load, **axes) for config in (TransformerXL(memory=m), Attention(biases=False)))
    assert part.parameters - plain.parameters == d * d + 2 * d
    assert part.core == 3 * 4 * n * (n + m) * d
    assert part.maps - plain.maps == 3 * (2 * n * (n + m) * d + 4 * m * d * d) + 2 * (n + m) * d * d
    assert part.cache == m * d * 4
    config = LanguageModel(d_model=12, trunk=Transformer(layers=2, heads=4, d_head=5, own=TransformerXL()), vocabulary=17)
    with torch.device("meta"):
        real = sum(parameter.numel() for parameter in build(config).parameters())
    assert model_parts(config, Load()).size == real
