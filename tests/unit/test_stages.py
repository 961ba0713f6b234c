"""Every step of attention by its name, from any model: what passes the taps is what the model computes with."""

from __future__ import annotations

import pytest
import torch

from regard.data.batch import PairBatch
from regard.data.picture_batch import PictureBatch
from regard.data.text_batch import TextBatch
from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel, TextClassifier
from regard.models.image_classifier import ImageClassifier, VisionTransformer
from regard.nn.attention import ALiBi, Causal, attend
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.multihead import Attention
from regard.nn.attention.normalise import Epanechnikov
from regard.nn.attention.patterns import Window
from regard.nn.attention.scores import Dot, NegativeDistance
from regard.nn.edges import Edges
from regard.nn.embed_patches import PatchEmbedding
from regard.nn.feedforward import FeedForward
from regard.nn.tap import record, replace
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_graph import GraphAttention, GraphTrunk
from regard.nn.trunk_recurrent import Bahdanau, Luong, Recurrent
from regard.nn.trunk_transformer import Transformer
from toy_layouts import padded

SMALL = Transformer(layers=2, heads=2, dropout=0.0, feed_forward=FeedForward(d_ff=22))
TAPS = torch.nn.Identity()
ROWS = ("query", "scores", "mask", "masked", "weights")


def test_the_steps_of_the_deck_by_name():
    """D-4: scores, look-ahead matrix of 0 and -inf, their sum, softmax by rows, sum of values; the numbers are those of B-8."""
    scores = torch.tensor([[1.0, 0, -1, -1], [1, 1, -1, 0], [0, 1, 1, -1], [-1, -1, 2, 1]])
    query, key, value = scores[None, None], torch.eye(4)[None, None], torch.randn(1, 1, 4, 3)
    with record(TAPS, "mine.*") as seen:
        out = attend(query, key, value, pattern=Causal(), score=Dot(), taps="mine.")
    assert list(seen) == ["mine.scores", "mine.mask", "mine.masked", "mine.weights"]
    passed = {name.removeprefix("mine."): tensors[0][0, 0] for name, tensors in seen.items()}
    assert torch.equal(passed["scores"], scores)
    assert torch.equal(passed["mask"], torch.full((4, 4), -torch.inf).triu(1))
    assert torch.equal(passed["masked"], passed["scores"] + passed["mask"])
    assert passed["weights"][1].tolist() == [0.5, 0.5, 0, 0]
    assert torch.allclose(passed["weights"], passed["masked"].softmax(-1))
    assert torch.allclose(passed["weights"] @ value[0, 0], out[0, 0])


def test_what_nobody_listens_to_is_not_worked_out(monkeypatch: pytest.MonkeyPatch):
    from regard.nn.attention.sight import Sight

    query = torch.randn(1, 2, 5, 4)
    monkeypatch.setattr(Sight, "additive", lambda self, dtype: pytest.fail("a mask was made"))
    with record(TAPS, "mine.scores", "mine.weights", "other.mask") as seen:
        attend(query, query, query, pattern=Causal(), taps="mine.")
    assert sorted(seen) == ["mine.scores", "mine.weights"]


def test_what_is_replaced_counts_from_there_on():
    query, key, value = (torch.randn(1, 2, 5, 4) for _ in range(3))
    only_itself = torch.full((5, 5), -torch.inf).fill_diagonal_(0)
    with replace(TAPS, "mine.mask", lambda mask: only_itself):
        assert torch.allclose(attend(query, key, value, taps="mine."), value)
    with replace(TAPS, "mine.scores", torch.zeros_like):
        out = attend(query, key, value, taps="mine.")
    assert torch.allclose(out, value.mean(2, keepdim=True).expand_as(out))
    with replace(TAPS, "mine.bias", torch.zeros_like):
        assert torch.allclose(attend(query, key, value, bias=ALiBi(), taps="mine."), attend(query, key, value), atol=1e-6)


def test_listening_to_the_mask_leaves_gradients_whole():
    query = torch.randn(1, 1, 5, 3, requires_grad=True)
    axes = {"pattern": Causal(), "score": NegativeDistance(), "normalise": Epanechnikov(4.0)}
    attend(query, query.detach() + 1, torch.randn(1, 1, 5, 3), **axes).square().sum().backward()
    alone, query.grad = query.grad, None
    torch.manual_seed(0)
    with record(TAPS, "mine.*"):
        attend(query, query.detach() + 1, torch.randn(1, 1, 5, 3), taps="mine.", **axes).square().sum().backward()
    assert query.grad is not None and query.grad.isfinite().all() and alone is not None and alone.isfinite().all()


def texts(*rows: list[int]) -> TextBatch:
    text = padded([list(row) for row in rows])
    return TextBatch(text, text.ids, (0,), 1)


@pytest.mark.parametrize(
    "trunk", [SMALL, Transformer(layers=1, heads=2, own=Attention(bias=ALiBi(), kernel="blocked", pattern=(Window(2),)))]
)
@torch.no_grad()
def test_of_a_language_model(trunk: Transformer):
    torch.manual_seed(1)
    model = build(LanguageModel(d_model=12, trunk=trunk, vocabulary=17)).eval()
    batch = texts([1, 5, 9, 4, 11, 6, 3])
    expected = model(batch)
    with record(model, "trunk.0.*", "trunk.states") as seen:
        found = model(batch)
    assert torch.allclose(found, expected, atol=1e-5)  # a kernel that was named does not serve who is watched
    own = {name.removeprefix("trunk.0.own."): tensors[0] for name, tensors in seen.items() if ".own." in name}
    assert {"query", "key", "value", "scores", "mask", "masked", "weights", "heads", "change", "added", "normed"} <= set(own)
    bias = own.get("bias", torch.zeros(()))
    assert torch.allclose(own["scores"], own["query"] @ own["key"].mT / 6**0.5, atol=1e-5)
    assert torch.allclose(own["masked"], own["scores"] + bias + own["mask"])
    assert torch.allclose(own["weights"], own["masked"].softmax(-1))
    assert torch.allclose(own["heads"], own["weights"] @ own["value"], atol=1e-6)
    block = model.trunk.blocks[0]
    assert torch.allclose(own["change"], block.own.output(own["heads"].transpose(1, 2).flatten(2)), atol=1e-6)
    assert torch.allclose(own["normed"], block.own_residual.norm(own["added"]))
    assert torch.allclose(seen["trunk.0.stream"][0], seen["trunk.0.feed_forward.normed"][0])
    assert torch.equal(seen["trunk.states"][0], found)


@pytest.mark.parametrize(
    ("decoder", "name"),
    [
        (SMALL, "decoder.1.cross"),
        (Recurrent(attention=Bahdanau()), "decoder.0.cross"),
        (Recurrent(attention=Luong()), "decoder.0.cross"),
        (Convolutional(layers=2), "decoder.1.cross"),
    ],
    ids=["transformer", "bahdanau", "luong", "convolutional"],
)
def test_of_what_looks_at_a_source(decoder, name: str):
    torch.manual_seed(2)
    config = EncoderDecoder(d_model=12, encoder=SMALL, decoder=decoder, tie="none", source_vocabulary=17, target_vocabulary=19)
    model = build(config).eval()
    with torch.inference_mode(), record(model, f"{name}.*") as seen:
        target = padded([[1, 8, 9]])
        model(PairBatch(padded([[5, 6, 7, 2]]), target, target.ids, (0,), 4, 3))
    stages = {stage: seen[f"{name}.{stage}"] for stage in ("key", "value", *ROWS)}
    rows = {stage: torch.cat(stages[stage], 2) for stage in ROWS}
    assert rows["weights"].shape[2:] == (3, 4)
    assert torch.allclose(rows["weights"], rows["masked"].softmax(-1))
    assert torch.allclose(rows["masked"], rows["scores"] + rows["mask"])


def test_of_a_vision_transformer():
    torch.manual_seed(3)
    body = VisionTransformer(embedding=PatchEmbedding(patch=2), encoder=SMALL)
    model = build(ImageClassifier(d_model=12, body=body, channels=1, size=(4, 6), labels=("a", "b"))).eval()
    batch = PictureBatch(torch.randint(0, 255, (1, 1, 4, 6), dtype=torch.uint8), torch.zeros(1, dtype=torch.long), (0,))
    with torch.inference_mode(), record(model, "encoder.1.own.*", "output.scores") as seen:
        scores = model.output(model(batch))
    assert seen["encoder.1.own.scores"][0].shape == (1, 2, 7, 7)
    assert torch.equal(seen["output.scores"][0], scores)


def test_of_longformer_both_softmaxes():
    torch.manual_seed(4)
    trunk = Transformer(layers=1, heads=2, dropout=0.0, own=Longformer(reach=1))
    model = build(TextClassifier(d_model=12, encoder=trunk, vocabulary=17, labels=("a", "b"))).eval()
    with torch.inference_mode(), record(model, "*.own.*masked", "*.own.*weights") as seen:
        model(texts([1, 5, 9, 4, 11]))
    assert {name.rpartition(".")[2] for name in seen} == {"masked", "weights", "global_masked", "global_weights"}


def test_of_a_graph_in_both_forms():
    torch.manual_seed(5)
    edges = Edges.of(torch.tensor([[0, 1], [1, 2], [3, 4]]), 5)
    x, seen = torch.randn(5, 16), {}
    for form in ("edges", "dense"):
        torch.manual_seed(6)
        trunk = GraphTrunk(GraphAttention(heads=2, form=form), 3, name="graph").eval()
        with torch.inference_mode(), record(trunk, "graph.0.*") as seen[form]:
            trunk(x, edges)
    for stage in ("scores", "weights"):
        along, dense = seen["edges"][f"graph.0.{stage}"][0], seen["dense"][f"graph.0.{stage}"][0]
        assert torch.allclose(along, dense[0][:, edges.target, edges.source].T, atol=1e-6)
