"""The speech encoder against Hugging Face's Speech2Text, with random weights: the convolutions, and what the encoder makes of them.

Its sinusoids divide by D/2 - 1 where the paper divides by D/2, so its table is given our rows; and it lets its padding leak through the
second convolution, so recordings are compared alone.
"""

from __future__ import annotations

import pytest
import torch
from transformers import Speech2TextConfig, Speech2TextModel

from regard.data.frame_batch import FrameBatch
from regard.models.speech import Listener, Speech, SpeechTransformer
from regard.models.tensors import restore
from regard.nn.embed_frames import FrameEmbedding
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Sinusoid
from regard.nn.spectrum import LogMel
from regard.nn.trunk_transformer import Transformer

LAYERS, WIDTH, HEADS, BETWEEN, MELS, FF = 3, 28, 4, 34, 11, 44


@pytest.fixture(scope="module")
def theirs() -> Speech2TextModel:
    torch.manual_seed(13)
    config = Speech2TextConfig(
        vocab_size=17,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        encoder_ffn_dim=FF,
        decoder_layers=1,
        decoder_attention_heads=HEADS,
        decoder_ffn_dim=FF,
        conv_channels=BETWEEN,
        input_feat_per_channel=MELS,
        dropout=0.0,
        activation_dropout=0.0,
        attention_dropout=0.0,
        max_source_positions=200,
    )
    model = Speech2TextModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    return model


@pytest.fixture(scope="module")
def ours(theirs: Speech2TextModel) -> Listener:
    encoder = Transformer(layers=LAYERS, heads=HEADS, placement="pre", feed_forward=FeedForward(d_ff=FF))
    body = SpeechTransformer(embedding=FrameEmbedding(width=BETWEEN, positions=Sinusoid(layout="halves")), encoder=encoder)
    config = Speech(d_model=WIDTH, features=LogMel(mels=MELS), body=body, output="ctc", labels=("a", "b"))
    model = Listener(config).eval()
    state = theirs.state_dict()
    names = {"body.encoder.norm": "layer_norm"}
    names |= {f"body.embedding.layers.{number}": f"conv.conv_layers.{number}" for number in range(2)}
    for layer in range(LAYERS):
        for mine, other in (
            ("own.query", "self_attn.q_proj"),
            ("own.key", "self_attn.k_proj"),
            ("own.value", "self_attn.v_proj"),
            ("own.output", "self_attn.out_proj"),
            ("own_residual.norm", "self_attn_layer_norm"),
            ("feed_forward.inner", "fc1"),
            ("feed_forward.outer", "fc2"),
            ("feed_forward_residual.norm", "final_layer_norm"),
        ):
            names[f"body.encoder.blocks.{layer}.{mine}"] = f"layers.{layer}.{other}"
    moved = {f"{mine}.{part}": state[f"encoder.{other}.{part}"] for mine, other in names.items() for part in ("weight", "bias")}
    moved |= {f"output.outer.{name}": value for name, value in model.output.outer.state_dict().items()}
    restore(model, moved, where="a random model")
    positions = theirs.encoder.embed_positions
    first = positions.padding_idx + 1  # theirs counts from the number of the padding mark
    rows = model.body.embedding.positions(torch.arange(100)[None])[0]  # type: ignore[union-attr,operator]
    with torch.no_grad():
        positions.weights[first : first + 100] = rows
    return model


@pytest.mark.parametrize("frames", [7, 10, 61, 128])
def test_the_convolutions_are_the_same(theirs, ours, frames: int):
    x = torch.randn(1, frames, MELS, generator=torch.Generator().manual_seed(frames))
    found, tokens = ours.body.embedding(x, torch.ones(1, frames, dtype=torch.bool))
    expected = theirs.encoder.conv(x) * WIDTH**0.5
    torch.testing.assert_close(found - ours.body.embedding.positions(tokens.positions), expected, atol=1e-5, rtol=1e-4)
    assert tokens.real.sum() == theirs._get_feat_extract_output_lengths(torch.tensor(frames))


@pytest.mark.parametrize("frames", [9, 61])
def test_the_encoders_are_the_same(theirs, ours, frames: int):
    x = torch.randn(1, frames, MELS, generator=torch.Generator().manual_seed(frames))
    with torch.no_grad():
        expected = theirs.encoder(x, attention_mask=torch.ones(1, frames, dtype=torch.long)).last_hidden_state
        found = ours(FrameBatch.of([x[0]], [[1]], [0]))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert found.std() > 0.1
