"""The walk of one token and the tables between tokens: their numbers are the model's, and what is told is what was found."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch

import regard
from regard.data.batch import PairBatch, Side
from regard.data.text_batch import TextBatch
from regard.errors import UsageError
from regard.look.reading import Reading, Slot, labels
from regard.look.table import form, forms, table
from regard.look.telling import sum_of_words, told_form, told_table, told_walk, walk_json
from regard.look.trace import Answer, Token
from regard.look.walk import Walk, walk
from regard.models.build import build
from regard.models.configs import EncoderDecoder, TextClassifier
from regard.nn.attention import ALiBi, Cosine
from regard.nn.attention.multihead import Attention
from regard.nn.attention.scores import Bilinear
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Rotary
from regard.nn.trunk_recurrent import Bahdanau, Luong, Recurrent
from regard.nn.trunk_transformer import Transformer
from toy_layouts import padded

WORDS = ("Thinking", "Machines", "learn")


def reading(trunk: Transformer, *, width: int = 12) -> Reading:
    """Three words before a classifier of random parameters."""
    torch.manual_seed(7)
    model = build(TextClassifier(d_model=width, encoder=trunk, embedding=Embedding(dropout=0.0), vocabulary=9, labels=("a", "b"))).eval()
    text: Side = padded([[4, 5, 6]])
    slot = Slot("encoder", "own", (0, 1), model.encoder, "text")  # type: ignore[arg-type]
    return Reading(
        " ".join(WORDS), model, TextBatch(text, text.ids, (0,), 1), tuple(map(Token, WORDS)), (), {"enc-self": slot}, labels(("a", "b"))
    )


def trunk(heads: int = 2, **changes) -> Transformer:
    return Transformer(layers=2, heads=heads, dropout=0.0, feed_forward=FeedForward(d_ff=14), **changes)


def stage_of(found: Walk, where: str, stage: str) -> np.ndarray:
    return values(found, f"{where}.{stage}")


def values(found: Walk, name: str) -> np.ndarray:
    return next(stage.values for stage in found.stages if stage.name == name)


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("placement", ["post", "pre"])
@torch.inference_mode()
def test_every_vector_follows_from_those_before_it(heads: int, placement):
    """Queries, keys, values; products, divided; softmax, sum; side by side, W_O; add and norm; feed-forward; the next layer."""
    read = reading(trunk(heads, placement=placement))
    found, width = walk(read, "Machines"), 12 // heads
    assert (found.place, found.token.text) == (1, "Machines")
    assert np.allclose(values(found, "text.token") + values(found, "text.position"), values(found, "text.sum"), atol=1e-6)
    before = values(found, "text.sum")
    for layer, block in enumerate(read.model.encoder.blocks):  # type: ignore[union-attr]
        own, feed = (partial(stage_of, found, f"encoder.{layer}.{part}") for part in ("own", "feed_forward"))
        assert np.array_equal(own("input"), before)
        query_HE, key_HSE, value_HSE = own("query"), own("key").reshape(heads, 3, width), own("value").reshape(heads, 3, width)
        entering = own("normed") if placement == "pre" else own("input")
        assert np.allclose(block.own.query(torch.from_numpy(entering)).numpy().reshape(heads, width), query_HE, atol=1e-5)
        products_HS = np.einsum("he,hse->hs", query_HE, key_HSE)
        assert np.allclose(own("scores"), products_HS / width**0.5, atol=1e-5)
        exponentials_HS = np.exp(own("masked"))
        assert np.allclose(own("weights"), exponentials_HS / exponentials_HS.sum(1, keepdims=True), atol=1e-6)
        assert np.allclose(own("heads"), np.einsum("hs,hse->he", own("weights"), value_HSE), atol=1e-5)
        assert np.allclose(block.own.output(torch.from_numpy(own("heads").reshape(1, -1))).numpy(), own("change"), atol=1e-5)
        assert np.allclose(own("added"), own("input") + own("change"), atol=1e-6)
        hidden = torch.relu(block.feed_forward.inner(torch.from_numpy(feed("normed" if placement == "pre" else "input"))))
        assert np.allclose(hidden.numpy(), feed("hidden"), atol=1e-5)
        assert np.allclose(feed("added"), feed("input") + feed("change"), atol=1e-6)
        before = values(found, f"encoder.{layer}.stream")
        assert np.array_equal(before, feed("added" if placement == "pre" else "normed"))
    assert [choice.token.text for choice in found.next] and sum(np.exp(choice.log_prob) for choice in found.next) == pytest.approx(
        1, abs=1e-5
    )


@torch.inference_mode()
def test_in_vectors_for_one_and_in_a_table_for_all_the_numbers_are_equal():
    read = reading(trunk())
    rows = [values(walk(read, place), "encoder.1.own.scores")[1] for place in range(3)]
    assert np.allclose(np.stack(rows), table(read, "scores", layer=1, head=1).values, atol=1e-5)


def test_the_numbers_of_the_figure():
    """112 and 96 are divided by 8 = sqrt(64) and become 0.88 and 0.12."""
    query, keys = torch.zeros(1, 1, 1, 64), torch.zeros(1, 1, 2, 64)
    query[..., 0], keys[..., 0] = 14.0, torch.tensor([8.0, 96 / 14])
    weights = regard.attend(query, keys, torch.eye(2)[None, None])
    assert [round(weight, 2) for weight in weights.flatten().tolist()] == [0.88, 0.12]


@torch.inference_mode()
def test_the_form_between_words_scores_them():
    """D-2: x B x, with B = W_Q W_K^T: rank at most d_k, neither symmetric nor an inner product."""
    read = reading(trunk(own=Attention(biases=False)), width=20)
    for head in (0, 1):
        found, scores = form(read, layer=1, head=head), table(read, "scores", layer=1, head=head)
        assert np.allclose(found.table.values / 10**0.5, scores.values, atol=1e-4)
        assert found.matrix.shape == (20, 20) and found.rank == 10
        above, below = found.signs
        assert above and below and found.asymmetry > 0.5
    assert "rank 10" in told_form(found) and "Machines" in told_form(found)


@torch.inference_mode()
def test_a_bilinear_score_stands_between_the_two_maps():
    read = reading(trunk(own=Attention(biases=False, score=Bilinear(), kernel="reference"), placement="pre", key_value_heads=1))
    found, scores = form(read, layer=0, head=1), table(read, "scores", layer=0, head=1)
    assert np.allclose(found.table.values, scores.values, atol=1e-5)


@pytest.mark.parametrize(
    ("own", "says"), [(Attention(score=Cosine()), "no bilinear form"), (Attention(rotation=Rotary()), "turned by their positions")]
)
def test_where_there_is_no_form_it_says_so(own: Attention, says: str):
    model = reading(trunk(own=own)).model
    with pytest.raises(UsageError, match=says):
        forms(model.encoder.blocks[0].own)  # type: ignore[union-attr]


@torch.inference_mode()
def test_tables_are_labelled():
    """D-3, with scores and weights apart."""
    read = reading(trunk(own=Attention(bias=ALiBi())))
    text = told_table(table(read, "scores", layer=0, head=1))
    first, header, *rows = text.splitlines()
    assert first == "encoder.0.own.scores, head 1: rows look, columns are looked at"
    assert header.split() == list(WORDS) and [row.split()[0] for row in rows] == list(WORDS)
    assert [len(row.split()) for row in rows] == [4, 4, 4]
    weights = table(read, "weights", layer=0, head=1).values
    assert np.allclose(weights.sum(1), 1) and not np.allclose(weights, table(read, "scores", layer=0, head=1).values)
    bias = table(read, "bias", layer=0, head=1).values
    assert np.array_equal(bias, np.abs(np.subtract.outer(range(3), range(3))) * bias[0, 1])
    with pytest.raises(UsageError, match="nothing passes encoder"):
        table(reading(trunk()), "bias")
    with pytest.raises(UsageError, match="choose scores, bias, mask, masked, weights, form or next"):
        table(read, "nonsense")


@torch.inference_mode()
def test_what_is_told_is_what_was_found():
    read = reading(trunk())
    found = walk(read, 2, layers=[1], heads=[1])
    told, value = told_walk(found), json.loads(json.dumps(walk_json(found)))
    assert "encoder.0" not in told and "head 0" not in told and "encoder.1.own.query  (what it asks for)" in told
    weights = values(found, "encoder.1.own.weights")[0]
    assert f"head 1: {sum_of_words(weights, WORDS)}" in told
    scores = next(stage for stage in value["stages"] if stage["name"] == "encoder.1.own.scores")
    assert scores["columns"] == list(WORDS) and np.allclose(scores["values"], values(found, "encoder.1.own.scores"))
    assert sum_of_words([0.6, 0.1, 0.3], ["I", "am", "Sam"]) == "0.60 I + 0.10 am + 0.30 Sam"


@pytest.mark.parametrize("attention", [Bahdanau(), Luong()], ids=["bahdanau", "luong"])
@torch.inference_mode()
def test_attention_of_a_recurrent_decoder_is_built_up_step_by_step(attention):
    """States of the encoder and one of the decoder; scores, weights; what is gathered; what comes out: at every step the same numbers."""
    torch.manual_seed(8)
    trunk = Recurrent(bidirectional=True, output=12, dropout=0.0)
    config = EncoderDecoder(
        d_model=12, encoder=trunk, decoder=Recurrent(attention=attention, dropout=0.0), tie="none", source_vocabulary=9, target_vocabulary=9
    )
    model = build(config).eval()
    source, target = padded([[4, 5, 6]]), padded([[1, 7, 8, 4]])
    batch = PairBatch(source, target, target.ids, (0,), 3, 4)
    slots: dict = {"cross": Slot("decoder", "cross", model.decoder.cross_maps, model.decoder, "target")}  # type: ignore[union-attr]
    read = Reading(
        "", model, batch, tuple(map(Token, WORDS)), tuple(map(Token, "abcd")), slots, lambda scores, top: ((), (Answer("", 0.0, 0.0),))
    )
    whole = model(batch)[0]
    for step in range(4):
        found = walk(read, step)
        names = [stage.name for stage in found.stages if stage.name.startswith("decoder.0.cross.")]
        assert [name.rpartition(".")[2] for name in names] == ["query", "key", "value", "scores", "mask", "masked", "weights", "context"]
        weights = values(found, "decoder.0.cross.weights")
        assert weights.shape == (1, 3) and weights.sum() == pytest.approx(1, abs=1e-5)
        assert np.allclose(weights @ values(found, "decoder.0.cross.value"), values(found, "decoder.0.cross.context"), atol=1e-5)
        assert np.allclose(values(found, "decoder.stream")[0], whole[step].numpy(), atol=1e-5)


@pytest.mark.parametrize(("place", "says"), [("9", "they are numbered from 0 to 2"), ("Machine", "no token is 'Machine'")])
def test_a_token_that_is_not_there(place: str, says: str):
    with pytest.raises(UsageError, match=says):
        walk(reading(trunk()), place)
