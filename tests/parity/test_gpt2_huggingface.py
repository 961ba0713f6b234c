"""A tiny random GPT-2 of Hugging Face gives the same logits, and writes the same text, after a change of names."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from regard.data.batch import Side
from regard.data.text_batch import TextBatch
from regard.data.tokenise import Tokenizer
from regard.data.words import CharacterVocabulary
from regard.decode.sample import Greedy
from regard.decode.write import write_texts
from regard.errors import ModelError
from regard.exchange.gpt2 import config_of, tensors_of
from regard.models.build import build
from regard.nn.view import Tokens
from regard.plan.models import model_parts
from regard.plan.part import Load

SIZE = {"vocab_size": 37, "n_embd": 20, "n_layer": 3, "n_head": 5, "n_positions": 19, "bos_token_id": 36, "eos_token_id": 36}
LETTERS = Tokenizer(CharacterVocabulary([chr(ord("A") + number) for number in range(33)], bytes_too=False))


@pytest.fixture(scope="module")
def both():
    torch.manual_seed(11)
    theirs = GPT2LMHeadModel(GPT2Config(**SIZE)).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    config = config_of(theirs.config.to_dict())
    ours = build(config).eval()
    ours.load_state_dict(tensors_of(theirs.state_dict(), config))
    return ours, theirs


def test_same_logits(both):
    ours, theirs = both
    ids = torch.randint(0, 37, (3, 7))
    batch = TextBatch(Side(ids, Tokens.plain(3, 7)), ids, (0, 1, 2), 21)
    torch.testing.assert_close(ours.output(ours(batch)), theirs(input_ids=ids).logits, atol=1e-5, rtol=1e-5)


def test_as_many_parameters_and_as_the_plan_says(both):
    ours, theirs = both
    count = sum(parameter.numel() for parameter in ours.parameters())
    assert count == theirs.num_parameters() == model_parts(ours.config, Load()).size


def test_the_same_text_is_written(both):
    """Ids from 4 on are letters here; theirs may not write the marks either."""
    ours, theirs = both
    prompts = ["AB", "QXF", "M"]
    found = write_texts(ours, prompts, tokenizer=LETTERS, search=Greedy(), length=9)
    for prompt, (one,) in zip(prompts, found, strict=True):
        ids = torch.tensor([[36, *LETTERS.encode(prompt)]])
        written = theirs.generate(ids, max_new_tokens=9, do_sample=False, suppress_tokens=[0, 1, 3], pad_token_id=0)[0, ids.shape[1] :]
        expected = [place for place in written.tolist() if place != 36]
        assert list(one.pieces) == [LETTERS.piece(place) for place in expected] and one.pieces


def test_what_is_no_gpt2_is_refused():
    for changed in ({"model_type": "bart"}, {"scale_attn_by_inverse_layer_idx": True}):
        with pytest.raises(ModelError):
            config_of(GPT2Config(**SIZE).to_dict() | changed)
