"""Tiny random Marian and BART models of Hugging Face give the same logits after a change of names."""

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration, MarianConfig, MarianMTModel

from regard.data.batch import PairBatch, Side
from regard.exchange.bart import config_of, tensors_of
from regard.models.build import translator
from regard.nn.view import Tokens

SIZE = {
    "vocab_size": 37,
    "d_model": 20,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 23,
    "decoder_ffn_dim": 29,
    "max_position_embeddings": 19,
    "pad_token_id": 0,
    "decoder_start_token_id": 1,
    "eos_token_id": 2,
    "forced_eos_token_id": None,
}


def marian():
    return MarianMTModel(MarianConfig(**SIZE, scale_embedding=True, activation_function="swish"))


def bart():
    return BartForConditionalGeneration(BartConfig(**SIZE, activation_function="gelu"))


@pytest.mark.parametrize("family", [marian, bart])
def test_same_logits(family):
    torch.manual_seed(11)
    theirs = family().eval()
    for name, parameter in theirs.named_parameters():
        if "embed_positions" not in name:
            torch.nn.init.normal_(parameter, std=0.3)
    theirs.final_logits_bias.normal_()
    config = config_of(theirs.config.to_dict())
    ours = translator(config).eval()
    ours.load_state_dict(tensors_of(theirs.state_dict(), config))
    source = torch.randint(3, 37, (3, 7))
    target = torch.randint(3, 37, (3, 5))
    real = torch.arange(7) < torch.tensor([7, 3, 5])[:, None]
    source = source * real
    expected = theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=target).logits
    batch = PairBatch(Side(source, Tokens.padded(real)), Side(target, Tokens.plain(3, 5)), target, (), 0, 0)
    torch.testing.assert_close(ours.output(ours(batch)), expected, atol=1e-5, rtol=1e-5)
    assert sum(p.numel() for p in ours.parameters()) - len(ours.output.bias) == sum(
        p.numel() for n, p in theirs.named_parameters() if "embed_positions" not in n or family is bart
    ) - (2 * 2 * 20 if family is bart else 0)
