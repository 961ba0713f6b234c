"""The bill before it is paid: formulas against built models, and against every published total."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.toml import structure
from regard.data.layouts import Rows, padded
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel, Model, TextClassifier
from regard.models.presets import PRESETS
from regard.nn.attention.biases import ALiBi, NoBias, Relative, RelativeSinusoid, T5Buckets
from regard.nn.attention.multihead import Attention
from regard.nn.attention.patterns import Causal, Full, Prefix, Window
from regard.nn.attention.scores import Additive, Bilinear, Cosine, Dot, Gaussian, NegativeDistance, OffsetDot, ScaledDot
from regard.nn.copying import Copy, JointCopy, NoCopy, PointerGenerator
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.norms import BatchNorm, LayerNorm, NoNorm, RmsNorm
from regard.nn.positions import Learned, NoPositions, Sinusoid
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer
from regard.plan.attention import pairs
from regard.plan.budget import plan
from regard.plan.models import model_parts
from regard.plan.part import Load
from regard.plan.tables import TABLES, published
from small_run import regard

some = st.sampled_from
relative = [Relative(5), Relative(3, values=True, tables="per-head", sides="past"), RelativeSinusoid(width=3)]
biases = some([NoBias(), ALiBi(), T5Buckets(buckets=8, reach=17), *relative])
scores = some([Dot(), ScaledDot(), OffsetDot(), Bilinear(), Cosine(), Cosine(learned=True), Gaussian(), NegativeDistance()]) | st.builds(
    Additive, width=some([3, 7]), biased=st.booleans()
)
norms = some([LayerNorm(), RmsNorm(), NoNorm()])
slots = st.builds(Attention, score=scores, bias=biases, biases=st.booleans())
trunks = st.builds(
    Transformer,
    layers=some([0, 1, 3]),
    heads=some([2, 4]),
    key_value_heads=some([0, 1, 2]),
    d_head=some([0, 5]),
    own=slots,
    cross=slots,
    feed_forward=st.builds(FeedForward, d_ff=some([11, 13]), gated=st.booleans(), biases=st.booleans()),
    norm=norms,
    placement=some(["post", "pre"]),
    final_norm=st.booleans(),
)
readers = trunks.flatmap(lambda trunk: some([trunk, replace(trunk, norm=BatchNorm())]))  # which models that write refuse
translators = st.builds(
    EncoderDecoder,
    d_model=some([4, 12]),
    encoder=readers,
    decoder=trunks,
    embedding=st.builds(Embedding, positions=some([Sinusoid(), Learned(7), NoPositions()]), norm=norms),
    tie=some(["target", "none"]),
    output_bias=st.booleans(),
    source_vocabulary=some([17, 19]),
    target_vocabulary=some([17, 23]),
)
copies = st.builds(JointCopy, score=scores) | st.builds(PointerGenerator, width=some([3, 5]), coverage=st.booleans())


def real(config: Model) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(config).parameters())


@settings(max_examples=150, deadline=None)
@given(config=translators, copy=copies)
def test_formulas_count_what_the_model_has(config: EncoderDecoder, copy: Copy):
    assert model_parts(config, Load()).size == real(config)
    if config.source_vocabulary == config.target_vocabulary:
        config = replace(config, tie="all", copy=copy)
        assert model_parts(config, Load()).size == real(config)


recurrent_encoders = st.builds(
    Recurrent,
    cell=some(["rnn", "gru", "lstm"]),
    layers=some([1, 3]),
    width=some([0, 6]),
    bidirectional=st.booleans(),
    output=some([0, 10, 12]),
)
kinds_of_attention = st.builds(NoAttention, every_step=st.booleans()) | st.builds(
    lambda kind, score, keys: kind(score=score, keys=keys),
    some([Bahdanau, Luong]),
    some([Bilinear(), Additive(3), Additive(5, biased=True)]),
    some(["states", "split", "projected"]),
)
convolutions = st.builds(
    Convolutional,
    layers=some([0, 1, 3]),
    width=some([0, 6]),
    kernel=some([3, 5]),
    gated=st.booleans(),
    skip=st.booleans(),
    score=some([Dot(), Additive(3)]),
    shared_maps=st.booleans(),
)
plain_transformers = st.builds(Transformer, layers=some([0, 1]), heads=some([2, 4]))
mixed = st.builds(
    EncoderDecoder,
    d_model=some([12]),
    encoder=recurrent_encoders | convolutions | plain_transformers,
    more_encoders=st.lists(recurrent_encoders | convolutions | plain_transformers, max_size=2).map(tuple),
    decoder=st.builds(
        Recurrent,
        cell=some(["rnn", "gru", "lstm"]),
        layers=some([1, 2]),
        width=some([0, 6]),
        attention=kinds_of_attention,
        output=some([0, 10]),
    )
    | convolutions
    | plain_transformers,
    tie=some(["none"]),
    copy=some([NoCopy()]) | copies,
    source_vocabulary=some([17]),
    target_vocabulary=some([17]),
)


@settings(max_examples=150, deadline=None)
@given(config=mixed)
def test_formulas_count_trunks_of_any_kinds(config: EncoderDecoder):
    if not isinstance(config.decoder, Recurrent):  # these look at vectors of their own width
        fitted = lambda trunk: replace(trunk, output=12) if isinstance(trunk, Recurrent) else trunk
        config = replace(config, encoder=fitted(config.encoder), more_encoders=tuple(map(fitted, config.more_encoders)))
    try:
        found = real(config)
    except UsageError as refused:
        assert "compares" in refused.what  # what copies compares vectors too
        return
    assert model_parts(config, Load()).size == found


causal = st.builds(Recurrent, cell=some(["rnn", "gru", "lstm"]), layers=some([1, 3]), attention=kinds_of_attention, output=some([0, 12]))
language_models = st.builds(
    LanguageModel,
    d_model=some([4, 12]),
    trunk=trunks | convolutions | causal,
    embedding=st.builds(Embedding, positions=some([Sinusoid(), Learned(7)]), norm=norms),
    output_bias=st.booleans(),
    tie=some([False]),
    vocabulary=some([17, 19]),
)


@settings(max_examples=150, deadline=None)
@given(config=language_models)
def test_formulas_count_language_models(config: LanguageModel):
    assert model_parts(config, Load()).size == real(config)
    if not isinstance(config.trunk, Recurrent):
        assert model_parts(replace(config, tie=True), Load()).size == real(replace(config, tie=True))


text_classifiers = st.builds(
    TextClassifier,
    d_model=some([4, 12]),
    encoder=trunks | convolutions | recurrent_encoders,
    embedding=st.builds(Embedding, positions=some([Sinusoid(), Learned(7)]), norm=norms),
    hidden=some([0, 5]),
    labels=some([("a", "b"), ("a", "b", "c")]),
    vocabulary=some([17, 19]),
)


@settings(max_examples=100, deadline=None)
@given(config=text_classifiers)
def test_formulas_count_classifiers_of_texts(config: TextClassifier):
    assert model_parts(config, Load()).size == real(config)
    assert plan(config, Load(source=7, target=7)).forward > 0


GPT3 = {  # table D.1 of Brown et al. 2020, in millions: what it counts decides between the readings of table 2.1
    "gpt3-small": (125.23, 125),
    "gpt3-medium": (355.87, 356),
    "gpt3-large": (760.30, 760),
    "gpt3-xl": (1315.72, 1_320),
    "gpt3-2.7b": (2651.55, 2_650),
    "gpt3-6.7b": (6658.40, 6_660),
    "gpt3-13b": (12853.39, 12_850),
    "gpt3-175b": (174604.26, 174_600),
}


@pytest.mark.parametrize("name", GPT3)
def test_the_models_of_gpt3(name: str):
    """12 L D^2 + 13 L D + 2 D in the blocks, (V + T) D in the tables."""
    config = structure(Model, PRESETS[name])
    layers, width = config.trunk.layers, config.d_model
    counted = 12 * layers * width**2 + 13 * layers * width + 2 * width + (50_257 + 2_048) * width
    assert model_parts(config, Load()).size == real(config) == counted
    assert round(counted / 1e6, 2) == GPT3[name][0]
    assert abs(counted / 1e6 / GPT3[name][1] - 1) < 0.004


def test_the_table_of_gpt3_flags_what_does_not_fit():
    rows = {row["name"]: row for row in published("gpt3")["rows"]}
    assert len(rows) == 9 and round(rows["base (encoder-decoder)"]["parameters"] / 1e6, 2) == 63.05
    flags = {name: row["flag"] for name, row in rows.items() if row.get("flag")}
    assert flags == {"GPT-3 XL": "24 x 128 = 3,072 is not 2,048", "GPT-3 13B": "40 x 128 = 5,120 is not 5,140"}
    assert {name: round(rows[name]["as_printed"] / 1e6, 2) for name in flags} == {"GPT-3 XL": 1517.12, "GPT-3 13B": 12936.49}
    for row in list(rows.values())[1:]:
        assert abs(row["difference"]) < 0.004 and abs(row["flops"] / row["paper_flops"] - 1) < 0.006


LADDER = {  # bentrevett/pytorch-seq2seq, vocabularies of 7,853 and 5,893 words
    "lstm": 13_898_501,
    "gru": 14_219_781,
    "gru-attention": 20_518_405,
    "conv": 37_351_173,
}


def ladder(step: str) -> EncoderDecoder:
    from regard import recipes

    model = tomllib.loads(recipes.find(f"multi30k-ladder-{step}-de-en").read_text("utf-8"))["model"]
    return structure(Model, {"kind": "translator", **model})


@pytest.mark.parametrize("step", LADDER)
def test_the_models_of_the_ladder(step: str):
    config = replace(ladder(step), source_vocabulary=7853, target_vocabulary=5893)
    assert model_parts(config, Load()).size == real(config) == LADDER[step]


def test_a_recurrent_layer_by_the_formulas():
    """LSTM 16 n d^2, GRU 12, RNN 4, biases apart; a step costs the same wherever it is."""
    n, d = 13, 32
    for cell, factor, size in (("lstm", 16, 8), ("gru", 12, 6), ("rnn", 4, 2)):
        trunk = Recurrent(cell=cell, attention=NoAttention())
        config = EncoderDecoder(d_model=d, encoder=trunk, decoder=trunk, source_vocabulary=7, target_vocabulary=7)
        parts = {name.partition(".")[2]: part for name, _, part in model_parts(config, Load(source=n, target=n)).walk()}
        layer, biases = parts["blocks.decoder.layer0"], size * d
        assert layer.parameters == size * d * d + biases
        assert layer.forward - 2 * biases * n == factor * n * d * d
        assert layer.step == 2 * layer.parameters
        assert layer.cache == (2 if cell == "lstm" else 1) * d * 4
        assert not parts["blocks.encoder"].total("step")


def test_one_glance_by_the_formulas():
    """Additive: W_k once a source, W_q once a step; each pair costs a sum, a tanh, a product with v and one with the value."""
    n, m, d, a = 13, 7, 32, 5
    trunk = Recurrent(attention=Bahdanau(score=Additive(a)))
    config = EncoderDecoder(d_model=d, encoder=trunk, decoder=trunk, tie="none", source_vocabulary=7, target_vocabulary=7)
    cross = {name.partition(".")[2]: part for name, _, part in model_parts(config, Load(source=m, target=n)).walk()}["blocks.decoder.cross"]
    assert cross.parameters == 2 * d * a + a
    assert (cross.maps, cross.core) == (2 * d * a * (n + m), n * m * (4 * a + 2 * d))
    assert (cross.step, cross.once) == (2 * d * a + m * (4 * a + 2 * d), 2 * d * a * m)
    assert cross.cache == m * (a + d) * 4
    assert cross.kernel.startswith("reference")


def of_preset(name: str, load: Load | None = None, *, vocabulary: int = 0):
    config = structure(Model, PRESETS[name])
    if vocabulary:
        config = replace(config, source_vocabulary=vocabulary, target_vocabulary=vocabulary)
    return plan(config, load or Load(), name=name)


def test_the_base_model_part_by_part():
    sizes = {name: part.size for name, _, part in of_preset("base").parts.walk()}
    assert sizes["translator.tokenisation"] == 0
    assert sizes["translator.embedding"] == 37_000 * 512 == 18_944_000
    assert sizes["translator.blocks.encoder"] == 18_902_016
    assert sizes["translator.blocks.decoder"] == 25_199_616
    assert sizes["translator.output"] == 0
    assert sizes["translator"] == 63_045_632


def test_layers_equal_those_of_torch():
    """nn.TransformerEncoderLayer(512, 8, 2048), the decoder's layer, and nn.Transformer(), which ends each stack in a norm."""
    config = EncoderDecoder(
        encoder=Transformer(final_norm=True), decoder=Transformer(final_norm=True), source_vocabulary=3, target_vocabulary=3
    )
    sizes = {name: part.size for name, _, part in model_parts(config, Load()).walk()}
    assert sizes["translator.blocks.encoder.block"] == 6 * 3_152_384
    assert sizes["translator.blocks.decoder.block"] == 6 * 4_204_032
    assert sizes["translator.blocks"] == 44_140_544


def test_the_papers_variations():
    found = {
        row["name"]: (round(row["parameters"] / 1e6, 2), round(100 * row["difference"], 1)) for row in published("transformer")["rows"]
    }
    assert found == {
        "base": (63.05, -3.0),
        "N 2": (33.64, -6.5),
        "N 4": (48.35, -3.3),
        "N 8": (77.75, -2.8),
        "D 256": (26.82, -4.2),
        "D 1024": (163.82, -2.5),
        "F 1024": (50.45, -4.8),
        "F 4096": (88.24, -2.0),
        "big": (214.17, 0.6),
    }


def test_the_two_costs_of_the_papers_table():
    rows = {row["name"]: row for row in published("wmt14")["rows"]}
    assert len(rows) == 10
    base, big = rows["Transformer base"], rows["Transformer big"]
    assert base["flops_by_hardware_time"] == pytest.approx(3.283e18, rel=1e-3)
    assert big["flops_by_hardware_time"] == pytest.approx(2.298e19, rel=1e-3)
    assert base["flops_of_the_model"] == pytest.approx(9.46e17, rel=1e-3)
    assert big["flops_of_the_model"] == pytest.approx(9.64e18, rel=1e-3)
    assert round(base["share"], 2) == 0.29 and round(big["share"], 2) == 0.42
    for row in (base, big):  # the cell that was printed, to its two digits
        assert float(f"{row['flops_by_hardware_time']:.1e}") == row["flops_en_de"] == row["flops_en_fr"]


def test_perplexities_of_wikisum():
    rows = published("wikisum")["rows"]
    assert [round(row["perplexity"], 2) for row in rows] == [155.95, 11.78, 9.23, 7.78, 6.88, 6.71]
    assert [row["rouge_l"] for row in rows] == [12.7, 34.2, 33.6, 36.2, 37.9, 38.8]


def test_the_cost_of_a_layer_by_the_formulas():
    """8 n d^2 for the projections and 4 n^2 d between positions, 4 n d F for the feed-forward layer, 2 n d V for the output."""
    n, m, d, F, V = 13, 7, 512, 2048, 37_000
    parts = {name.partition(".")[2]: part for name, _, part in of_preset("base", Load(source=m, target=n)).parts.walk()}
    own, cross = parts["blocks.decoder.block.own"], parts["blocks.decoder.block.cross"]
    assert (own.maps, own.core) == (8 * n * d * d, 4 * n * n * d)
    assert (cross.maps, cross.core) == (4 * n * d * d + 4 * m * d * d, 4 * n * m * d)
    assert parts["blocks.decoder.block.feed_forward"].maps == 4 * n * d * F + 2 * n * (F + d)
    assert parts["output"].maps == 2 * n * d * V
    assert own.step == 8 * d * d + 4 * n * d
    assert (cross.step, cross.once) == (4 * d * d + 4 * m * d, 4 * m * d * d)
    assert (own.cache, cross.cache) == (2 * n * d * 4, 2 * m * d * 4)


def test_costs_grow_with_the_batch_and_layers():
    one, three = of_preset("base", Load(batch=1)), of_preset("base", Load(batch=3))
    assert three.parts.forward == pytest.approx(3 * one.parts.forward)
    assert three.forward == pytest.approx(one.forward) and three.training == pytest.approx(one.training)
    assert three.memory()["kv_cache"] == 3 * one.memory()["kv_cache"]
    assert three.memory()["optimiser"] == one.memory()["optimiser"] == 8 * one.parameters
    block = {name: part for name, _, part in one.parts.walk()}["translator.blocks.encoder.block"]
    assert block.forward == pytest.approx(6 * sum(part.forward for part in block.parts))


def test_sixteen_bytes_a_parameter():
    found = of_preset("base").memory()
    assert sum(found[name] for name in ("weights", "gradients", "optimiser")) == 16 * 63_045_632
    assert round(16 * 63_045_632 / 1e9, 2) == 1.01


@pytest.mark.parametrize("preset", ["tiny", "small"])
@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_activations_are_about_what_torch_keeps(preset: str, kernel: str):
    """Bytes that autograd saves, parameters apart; reference keeps scores, weights and masks besides what the formula has."""
    table = PRESETS[preset]
    table = table | {part: table[part] | {"own": {"kernel": kernel}, "cross": {"kernel": kernel}} for part in ("encoder", "decoder")}
    formula, found = activations(replace(structure(Model, table), source_vocabulary=53, target_vocabulary=53), length=47)
    assert 0.8 < formula / found < 1.2


@pytest.mark.parametrize("step", LADDER)
def test_activations_of_other_trunks_are_about_what_torch_keeps(step: str):
    config = replace(ladder(step), source_vocabulary=53, target_vocabulary=53)
    if isinstance(config.decoder, Recurrent):
        config = replace(config, decoder=replace(config.decoder, forcing=1.0))
    formula, found = activations(config, length=17)
    assert 0.7 < formula / found < 1.3


def activations(config: EncoderDecoder, *, length: int, rows: int = 5) -> tuple[float, float]:
    """Bytes kept for the backward pass: as they are planned, and as autograd saves them."""
    ids = np.arange(rows * (length - 1), dtype=np.uint16) % 40 + 4
    side = Rows(ids, np.full(rows, length - 1))
    batch = padded(side, side, np.arange(rows))
    model = build(config).train()
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # so that no address is used twice
        return tensor

    alive: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(batch).sum()
    planned = plan(config, Load(batch=rows, source=length, target=length, packed=False)).memory()["activations"]
    return planned, sum(kept.values())


def test_pairs_that_a_pattern_leaves():
    n = 23
    assert pairs(Full(), n, n) == pairs(Causal(), n, n) == n * n
    brute = lambda allows: sum(allows(i, j) for i in range(n) for j in range(n))
    assert pairs(Window(3), n, n) == brute(lambda i, j: abs(i - j) <= 3)
    assert pairs(Causal() & Window(3), n, n) == brute(lambda i, j: 0 <= i - j <= 3)
    assert pairs(Causal() | Prefix(5), n, n) == brute(lambda i, j: j <= i or j < 5)
    many = 20_000
    assert pairs((Causal() & Window(63)) | (Causal() & Prefix(0)), many, many) == pytest.approx(64 * many, rel=0.01)


def test_a_window_bounds_the_cache_and_the_step():
    slot = Attention(pattern=(Window(15),))
    config = EncoderDecoder(decoder=Transformer(own=slot), source_vocabulary=31, target_vocabulary=31)
    own = {name: part for name, _, part in model_parts(config, Load(target=1000)).walk()}["translator.blocks.decoder.block.own"]
    assert own.cache == 2 * 16 * 512 * 4
    assert own.step == 2 * own.parameters + 4 * 16 * 512


def test_the_command_prints_the_four_parts():
    ended = regard("plan", "base")
    assert ended.code == 0, ended.error
    heads = [line.split()[:2] for line in ended.out.splitlines() if line[:2] in ("1 ", "2 ", "3 ", "4 ")]
    assert heads == [["1", "tokenisation"], ["2", "embedding"], ["3", "blocks"], ["4", "output"]]
    assert "63,045,632 parameters" in ended.out and "gathered: packed rows" in ended.out


def test_the_json_of_a_plan():
    ended = regard("plan", "base", "--json", "--tokens", "1e9", "--length", "100", "--batch", "7", "--rate", "1e14", "--precision", "bf16")
    found = json.loads(ended.out)
    assert found["parameters"] == 63_045_632 == sum(found["parts"].values())
    assert found["load"] == {"batch": 7, "source": 100, "target": 100, "bytes": 2, "device": found["load"]["device"]}
    per_token = found["training_flops"] / 1e9
    assert found["training_flops_of_parameters"] / 1e9 == pytest.approx(6 * 63_045_632)
    assert per_token == pytest.approx(6 * 63_045_632 + 12 * 6 * 512 * 100 * 3)  # three attentions for each pair of layers
    assert found["seconds"]["at_rate"] == pytest.approx(found["training_flops"] / 1e14)
    assert {"weights", "gradients", "optimiser", "activations", "logits", "kv_cache"} < set(found["memory"])
    assert set(found["kernels"]) == {
        "translator.blocks.encoder.block.own",
        "translator.blocks.decoder.block.own",
        "translator.blocks.decoder.block.cross",
    }


def test_recipes_are_planned_by_their_own_steps():
    from regard import recipes

    facts = ["--vocabulary", "8000", "--labels", "10", "--picture", "1x28x28", "--features", "1433"]
    for name, _ in recipes.listed():
        ended = regard("plan", name, "--json", *facts)
        assert ended.code == 0, ended.error
        assert json.loads(ended.out)["training_flops"] > 0 and json.loads(ended.out)["parameters"] > 0
    found = json.loads(regard("plan", "multi30k-de-en", "--json").out)
    assert found["tokens"] == 8000 * 8192 and found["tokens_from"] == "8,000 steps of the recipe"


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_printed(table: str):
    ended = regard("plan", "--table", table)
    assert ended.code == 0 and all(row["name"] in ended.out for row in published(table)["rows"])
    assert json.loads(regard("plan", "--table", table, "--json").out)["rows"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "nothing to plan"),
        (("bas",), "did you mean base?"),
        (("tiny", "--tokenizer.kind", "word"), "is not a setting"),
        (("base", "--length", "-3"), "--length: -3 is below 0"),
        (("--table", "wmt15"), "did you mean wmt14?"),
        (("missing.toml",), "missing.toml: there is no such file"),
    ],
)
def test_what_cannot_be_planned_is_told_in_a_line(words: tuple[str, ...], says: str):
    ended = regard("plan", *words)
    assert ended.code == 2 and says in ended.error and ended.error.count("\n") == 1
