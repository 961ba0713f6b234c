"""The Vision Transformer against Hugging Face's, with random weights: the same scores, also for pictures of another size."""

from __future__ import annotations

import pytest
import torch
from transformers import ViTConfig, ViTForImageClassification

from regard.data.picture_batch import PictureBatch
from regard.models.image_classifier import ImageClassifier, ImageLabeller, VisionTransformer
from regard.models.tensors import restore
from regard.nn.embed_patches import PatchEmbedding
from regard.nn.feedforward import FeedForward
from regard.nn.norms import LayerNorm
from regard.nn.trunk_transformer import Transformer

LAYERS, WIDTH, HEADS, PATCH, SIZE, CHANNELS, CLASSES = 3, 28, 4, 5, (35, 35), 3, 7  # theirs interpolates square grids alone


@pytest.fixture(scope="module")
def theirs() -> ViTForImageClassification:
    torch.manual_seed(11)
    config = ViTConfig(
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=44,
        image_size=SIZE,  # type: ignore[arg-type]
        patch_size=PATCH,
        num_channels=CHANNELS,
        num_labels=CLASSES,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = ViTForImageClassification(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


@pytest.fixture(scope="module")
def ours(theirs: ViTForImageClassification) -> ImageLabeller:
    norm = LayerNorm(eps=1e-12)
    feed_forward = FeedForward(d_ff=44, activation="gelu")
    encoder = Transformer(layers=LAYERS, heads=HEADS, placement="pre", norm=norm, feed_forward=feed_forward)
    body = VisionTransformer(embedding=PatchEmbedding(patch=PATCH), encoder=encoder)
    labels = tuple(str(number) for number in range(CLASSES))
    model = ImageLabeller(ImageClassifier(d_model=WIDTH, body=body, channels=CHANNELS, size=SIZE, labels=labels)).eval()
    state = theirs.state_dict()
    moved = {
        "body.embedding.first": state["vit.embeddings.cls_token"][0, 0],
        "body.embedding.places": state["vit.embeddings.position_embeddings"][0],
    }
    names = {
        "body.embedding.project": "vit.embeddings.patch_embeddings.projection",
        "body.encoder.norm": "vit.layernorm",
        "output.outer": "classifier",
    }
    for layer in range(LAYERS):
        block, theirs_block = f"body.encoder.blocks.{layer}", f"vit.layers.{layer}"
        for mine, other in (
            ("own.query", "attention.q_proj"),
            ("own.key", "attention.k_proj"),
            ("own.value", "attention.v_proj"),
            ("own.output", "attention.o_proj"),
            ("own_residual.norm", "layernorm_before"),
            ("feed_forward.inner", "mlp.fc1"),
            ("feed_forward.outer", "mlp.fc2"),
            ("feed_forward_residual.norm", "layernorm_after"),
        ):
            names[f"{block}.{mine}"] = f"{theirs_block}.{other}"
    for mine, other in names.items():
        for part in ("weight", "bias"):
            moved[f"{mine}.{part}"] = state[f"{other}.{part}"]
    restore(model, moved, where="a random model")
    return model


def scores(model: ImageLabeller, pixels: torch.Tensor) -> torch.Tensor:
    return model.output(model(PictureBatch(pixels, torch.zeros(len(pixels), dtype=torch.long), tuple(range(len(pixels))))))


@pytest.mark.parametrize("size", [SIZE, (45, 50), (20, 15)])
def test_the_scores_are_the_same(theirs, ours, size: tuple[int, int]):
    pixels = torch.randint(0, 256, (2, CHANNELS, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        expected = theirs(pixels.float() / 127.5 - 1, interpolate_pos_encoding=size != SIZE).logits
        found = scores(ours, pixels)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert found.std() > 0.5
