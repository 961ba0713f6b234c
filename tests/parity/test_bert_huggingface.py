"""A tiny random BERT of Hugging Face gives the same scores of words after a change of names, padded or not."""

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from regard.data.text_batch import TextBatch
from regard.errors import ModelError
from regard.exchange.bert import config_of, tensors_of
from regard.models.build import build
from regard.plan.models import model_parts
from regard.plan.part import Load
from toy_layouts import packed, padded

SIZE = {
    "vocab_size": 37,
    "hidden_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 28,
    "max_position_embeddings": 19,
    "type_vocab_size": 2,
}
TEXTS = [[2, 9, 30, 4, 3], [2, 17, 3], [2, 5, 6, 7, 8, 9, 36, 3]]


@pytest.fixture(scope="module")
def both():
    torch.manual_seed(13)
    theirs = BertForMaskedLM(BertConfig(**SIZE)).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    config = config_of(theirs.config.to_dict())
    ours = build(config).eval()
    ours.load_state_dict(tensors_of(theirs.state_dict(), config))
    return ours, theirs


@pytest.mark.parametrize("layout", [padded, packed])
def test_same_scores(both, layout):
    ours, theirs = both
    side, plain = layout(TEXTS), padded(TEXTS)
    expected = theirs(input_ids=plain.ids, attention_mask=plain.tokens.real.long()).logits[plain.tokens.real]
    found = ours.output(ours(TextBatch(side, side.ids, (0, 1, 2), 16)))[side.tokens.real]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_as_many_parameters_but_for_the_segments(both):
    ours, theirs = both
    count = sum(parameter.numel() for parameter in ours.parameters())
    assert count == theirs.num_parameters() - 2 * 20 == model_parts(ours.config, Load()).size


def test_the_same_words_are_most_probable_where_the_mask_stands(both):
    ours, theirs = both
    ids = torch.tensor([[2, 9, 36, 4, 36, 3]])
    side = padded(ids.tolist())
    found, expected = ours.output(ours(TextBatch(side, side.ids, (0,), 6))), theirs(input_ids=ids).logits
    assert torch.equal(found[0, [2, 4]].topk(5).indices, expected[0, [2, 4]].topk(5).indices)


def test_what_is_no_bert_is_refused():
    for changed in ({"model_type": "gpt2"}, {"position_embedding_type": "relative_key"}, {"is_decoder": True}):
        with pytest.raises(ModelError):
            config_of(BertConfig(**SIZE).to_dict() | changed)
