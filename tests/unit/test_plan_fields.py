"""Plans of pictures, recordings, graphs and points: counts equal the models' own, and FLOPs those that torch counts."""

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import ImageCaptioner, PointerNetwork
from regard.models.graph_classifier import GraphClassifier
from regard.models.image_classifier import ImageClassifier, VisionTransformer
from regard.models.speech import Speech, SpeechTransformer
from regard.nn.attention.multihead import Attention
from regard.nn.attention.scores import Additive, Bilinear, Cosine
from regard.nn.embed_frames import FrameEmbedding
from regard.nn.embed_patches import PatchEmbedding
from regard.nn.positions import Learned
from regard.nn.stages_image import ImageStages
from regard.nn.stages_speech import FrameStages
from regard.nn.trunk_graph import GraphAttention, GraphConvolution
from regard.nn.trunk_recurrent import NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer
from regard.plan.budget import plan
from regard.plan.models import model_parts
from regard.plan.part import Load
from small_run import regard

TEN = tuple("0123456789")
PICTURES = ImageClassifier(channels=1, size=(28, 28), labels=TEN)
SOUND = Speech(labels=TEN)
NODES = GraphClassifier(features=1433, labels=tuple("abcdefg"))
POINTS = PointerNetwork(d_model=24, problem="hull")
SMALL = Transformer(layers=2, heads=4)
CONFIGS = {
    "patches": PICTURES,
    "hidden": replace(PICTURES, hidden=64),
    "mean": replace(PICTURES, body=VisionTransformer(pool="mean", embedding=PatchEmbedding(patch=7, uneven="pad")), size=(30, 29)),
    "colours": replace(PICTURES, channels=3, size=(20, 12)),
    "stages": replace(PICTURES, body=ImageStages(stages=4), channels=3, size=(17, 11)),
    "one stage": replace(PICTURES, body=ImageStages(stages=1)),
    "frames": SOUND,
    "letters": replace(SOUND, output="ctc"),
    "learned": replace(SOUND, body=SpeechTransformer(embedding=FrameEmbedding(3, 3, 2, width=34, positions=Learned(50)), encoder=SMALL)),
    "frame stages": replace(SOUND, body=FrameStages(stages=2, kernel=3)),
    "neighbours": NODES,
    "several last heads": replace(NODES, trunk=GraphAttention(layers=3, heads=3, d_head=5, last_heads=2)),
    "one hop": replace(NODES, trunk=GraphAttention(layers=1, last_heads=4)),
    "means": replace(NODES, trunk=GraphConvolution(layers=3)),
    "one mean": replace(NODES, trunk=GraphConvolution(layers=1)),
    "captions": ImageCaptioner(channels=1, size=(16, 24), vocabulary=29),
    "captions by a wide gru": ImageCaptioner(channels=3, size=(8, 8), vocabulary=29, decoder=Recurrent(width=31, attention=NoAttention())),
    "pointer": POINTS,
    "bilinear": replace(POINTS, score=Bilinear(), encoder=Recurrent(cell="gru", width=30, bidirectional=True)),
    "places": replace(POINTS, places=17),
    "points by attention": replace(POINTS, encoder=SMALL, decoder=SMALL, score=Cosine(learned=True)),
    "wide": replace(POINTS, decoder=Recurrent(cell="lstm", layers=2, width=40, attention=NoAttention()), score=Additive(13, biased=True)),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_formulas_count_what_the_model_has(name: str):
    config = CONFIGS[name]
    with torch.device("meta"):
        real = sum(parameter.numel() for parameter in build(config).parameters())
    assert model_parts(config, Load(source=20, target=20)).size == real
    assert plan(config, Load(source=20, target=20, packed=False)).forward > 0


def test_the_published_sizes_of_the_small_vision_transformer():
    assert model_parts(PICTURES, Load()).size == 205_962
    assert model_parts(CONFIGS["hidden"], Load()).size == 210_122


def by_definition(config):
    """With products that torch's counter knows."""
    if not isinstance(config.body, VisionTransformer | SpeechTransformer):
        return config
    encoder = replace(config.body.encoder, own=Attention(kernel="reference"))
    return replace(config, body=replace(config.body, encoder=encoder))


@pytest.mark.parametrize("name", ["patches", "mean", "colours", "stages", "one stage"])
def test_flops_of_a_picture_are_those_that_torch_counts(name: str):
    """But for norms and biases, which torch counts for nothing."""
    config = by_definition(CONFIGS[name])
    model, count = build(config).eval(), FlopCounterMode(display=False)
    with count, torch.no_grad():
        model.output(model.body(torch.zeros(2, config.channels, *config.size)))
    ours = plan(config, Load(batch=2, source=1, target=1, packed=False)).forward
    assert ours == pytest.approx(count.get_total_flops() / 2, rel=0.05)


@pytest.mark.parametrize("name", ["frames", "frame stages"])
def test_flops_of_a_recording_are_those_that_torch_counts(name: str):
    config = by_definition(CONFIGS[name])
    model, count = build(config).eval(), FlopCounterMode(display=False)
    with count, torch.no_grad():
        x_BPD, _ = model.body(torch.zeros(2, 50, config.features.mels), torch.ones(2, 50, dtype=torch.bool))
        model.output(x_BPD.mean(1))
    ours = plan(config, Load(batch=2, source=50, target=1, packed=False)).forward
    assert ours == pytest.approx(count.get_total_flops() / 2, rel=0.05)


def test_more_places_cost_more_and_nothing_is_planned_without_knowing_the_data():
    costs = [plan(replace(PICTURES, size=(side, side)), Load(source=1, target=1)).forward for side in (28, 56)]
    assert 3.9 < costs[1] / costs[0] < 6
    with pytest.raises(UsageError, match="does not know its pictures"):
        plan(replace(PICTURES, size=(0, 0)), Load())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("fashion-mnist-vit --labels 10", "how large pictures are; say it: --picture 1x28x28"),
        ("fashion-mnist-vit --labels 10 --picture 28", "say it: --picture 1x28x28"),
        ("cora-attention --labels 7", "say how many: --features 1433"),
        ("fsdd-cnn", "say how many: --labels 10"),
        ("fsdd-cnn --features -1", "--features: -1 is below 0"),
    ],
)
def test_what_is_missing_is_asked_for(words: str, says: str):
    ended = regard("plan", *words.split())
    assert ended.code == 2 and says in ended.error, ended.error


def test_units_are_those_of_the_model():
    for name, unit in {
        "fashion-mnist-cnn": "picture",
        "fsdd-ctc": "recording",
        "cora-convolution": "node",
        "pointer-tour": "point",
    }.items():
        ended = regard("plan", name, "--labels", "10", "--picture", "1x28x28", "--features", "99", "--tokens", "1000")
        assert ended.code == 0, ended.error
        assert f"forward pass, a {unit}" in ended.out and f"training, 1k {unit}s (as asked)" in ended.out
        assert ("decoding" in ended.out) == (unit == "point")
