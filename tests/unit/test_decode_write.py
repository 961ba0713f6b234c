"""Going on with texts: the caches, the queue and the prompts change nothing of what the model says when it reads the whole each time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from regard.data.marks import BOS, EOS, PAD, UNK
from regard.data.tokenise import Tokenizer
from regard.data.words import ByteVocabulary, CharacterVocabulary
from regard.decode import write
from regard.decode.beam import Beam
from regard.decode.engine import Room
from regard.decode.sample import Greedy, Sample
from regard.decode.write import score_texts, text_batch, write_texts
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import LanguageModel
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Learned, Sinusoid
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer

TOKENIZER = Tokenizer(CharacterVocabulary("abcdefgh ", bytes_too=False))
TRUNKS = {
    "transformer": Transformer(layers=2, heads=2, dropout=0.0, placement="pre", feed_forward=FeedForward(d_ff=20)),
    "recurrent": Recurrent(attention=NoAttention(), dropout=0.0),
    "convolutional": Convolutional(layers=2, dropout=0.0),
}
PROMPTS = ["abc", "", "h", "ab ab ab ab", "ff", "g h a", "hhhh", "a", "da", "bag", "c c"]


def model_of(trunk="transformer", positions=None, seed=5):
    torch.manual_seed(seed)
    embedding = Embedding(positions=positions or Sinusoid(), dropout=0.0)
    config = LanguageModel(d_model=16, trunk=TRUNKS[trunk], embedding=embedding, tie=False, vocabulary=TOKENIZER.size)
    model = build(config).eval()
    with torch.no_grad():
        model.output.table.mul_(3)
    return model


def said(model, ids):
    """Log-probabilities after these ids, by reading all of them."""
    return model.output(model(text_batch([ids], end=EOS)))[0, -1].log_softmax(-1)


def greedily(model, prompt, *, length, reach=1000):
    seen, found = [model.config.begin, *TOKENIZER.encode(prompt)], []
    while len(found) < length:
        seen = seen[-(reach // 2) :] if len(seen) >= reach else seen
        scores = said(model, seen)
        scores[[PAD, BOS, UNK]] = -torch.inf
        if (best := int(scores.argmax())) == EOS:
            break
        found.append(best)
        seen = [*seen, best]
    return TOKENIZER.decode([*TOKENIZER.encode(prompt), *found])[len(prompt) :]


@pytest.mark.parametrize("trunk", TRUNKS)
@pytest.mark.parametrize("rows", [2, 256])
def test_greedy_search_is_reading_the_whole_each_time(trunk, rows, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(write, "room", lambda device: Room(rows=rows))
    model = model_of(trunk)
    found = write_texts(model, PROMPTS, tokenizer=TOKENIZER, search=Greedy(), length=12)
    assert [one.prompt for (one,) in found] == PROMPTS
    assert [one.text for (one,) in found] == [greedily(model, prompt, length=12) for prompt in PROMPTS]


@pytest.mark.parametrize("trunk", TRUNKS)
@pytest.mark.parametrize("search", [Greedy(), Sample(seed=3), Sample(temperature=2.0, top_k=4, seed=1), Beam(size=3)], ids=lambda s: s.kind)
def test_what_is_written_scores_as_when_it_is_read(trunk, search, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(write, "room", lambda device: Room(rows=2 * search.rows))  # few slots, which are filled again
    model = model_of(trunk)
    for (one,) in write_texts(model, PROMPTS, tokenizer=TOKENIZER, search=search, length=9):
        (score,) = score_texts(model, [one.prompt + one.text], tokenizer=TOKENIZER)
        given = len(TOKENIZER.encode(one.prompt))
        assert len(one.log_probs) == len(one.pieces) + one.ended
        assert score.log_probs[given : given + len(one.log_probs)] == pytest.approx(one.log_probs, abs=1e-4)


def test_texts_are_scored_together_as_alone():
    model = model_of()
    together = score_texts(model, PROMPTS, tokenizer=TOKENIZER, tokens=20)
    for prompt, score in zip(PROMPTS, together, strict=True):
        (alone,) = score_texts(model, [prompt], tokenizer=TOKENIZER)
        assert score.log_probs == pytest.approx(alone.log_probs, abs=1e-5) and score.tokens == len(prompt) + 1
        ids = [BOS, *TOKENIZER.encode(prompt)]
        assert score.log_probs[-1] == pytest.approx(said(model, ids)[EOS].item(), abs=1e-5)


def test_neighbours_change_no_draw():
    model = model_of()
    draw = lambda prompts, seed=7, **more: write_texts(model, prompts, tokenizer=TOKENIZER, search=Sample(seed=seed), length=10, **more)
    together = draw(PROMPTS, count=3)
    assert [[one.text for one in each[:1]] for each in together] == [[one.text for one in each] for each in draw(PROMPTS)]
    for place, prompt in enumerate(PROMPTS):
        assert [one.text for one in draw([prompt], count=3, first=place)[0]] == [one.text for one in together[place]]
    assert len({one.text for one in together[0]}) == 3
    assert draw(["abc"], seed=8)[0][0].text != together[0][0].text


@pytest.mark.parametrize("prompt", ["abc", "a" * 6, "a" * 7, "b" * 8, "c" * 30])
def test_where_positions_end_the_last_half_is_read_again(prompt):
    model, told = model_of(positions=Learned(8)), []
    model.output.bias = torch.nn.Parameter(torch.zeros(TOKENIZER.size).index_fill(0, torch.tensor(EOS), -5.0))  # texts go on for a while
    (found,) = write_texts(model, [prompt], tokenizer=TOKENIZER, search=Greedy(), length=25, count=2, warn=told.append)
    assert len(told) == (len(prompt) >= 7)
    assert found[0].text == found[1].text == greedily(model, prompt, length=25, reach=8) and len(found[0].text) > 8
    drawn = [write_texts(model, [prompt], tokenizer=TOKENIZER, search=Sample(seed=2), length=25, count=4)[0] for _ in range(2)]
    assert drawn[0] == drawn[1] and len({one.text for one in drawn[0]}) == 4


def test_where_positions_end_neighbours_change_nothing():
    model = model_of(positions=Learned(8))
    write_all = lambda prompts: [one.text for (one,) in write_texts(model, prompts, tokenizer=TOKENIZER, search=Greedy(), length=20)]
    prompts = ["abcdef", "a", "h", "gg"]
    assert write_all(prompts) == [text for prompt in prompts for text in write_all([prompt])]


def test_a_beam_ends_with_the_positions_and_finds_the_likelier_text():
    model, told = model_of(positions=Learned(8)), []
    ((beam, other),) = write_texts(model, ["abc"], tokenizer=TOKENIZER, search=Beam(size=4), length=40, count=2, warn=told.append)
    assert len(beam.pieces) <= 4 and "8 positions" in told[0] and beam.text != other.text
    with pytest.raises(UsageError, match="fills"):
        write_texts(model, ["a" * 8], tokenizer=TOKENIZER, search=Beam(size=4), length=5)
    with pytest.raises(UsageError, match="8 positions"):
        score_texts(model, ["a" * 8], tokenizer=TOKENIZER)
    with pytest.raises(UsageError, match="1 or more"):
        write_texts(model, ["a"], tokenizer=TOKENIZER, search=Greedy(), length=0)


@pytest.mark.parametrize("search", [Sample(seed=1), Beam(size=3), Greedy()], ids=lambda search: search.kind)
def test_a_text_that_never_ends_and_begins_with_what_may_be_written(search):
    model = model_of()
    model.config = replace(model.config, begin=TOKENIZER.encode(" ")[0], end=0)
    (one,) = write_texts(model, ["ab"], tokenizer=TOKENIZER, search=search, length=30)[0]
    assert len(one.pieces) == len(one.log_probs) == 30 and not one.ended and "<" not in "".join(one.pieces)
    assert not isinstance(search, Sample) or " " in one.text
    (score,) = score_texts(model, [one.prompt + one.text], tokenizer=TOKENIZER)
    assert score.tokens == 32 and score.log_probs[2:] == pytest.approx(one.log_probs, abs=1e-4)


def test_bytes_that_make_one_letter_come_whole():
    tokenizer = Tokenizer(ByteVocabulary())
    torch.manual_seed(1)
    model = build(LanguageModel(d_model=16, trunk=TRUNKS["transformer"], vocabulary=tokenizer.size)).eval()
    (one,) = write_texts(model, ["äö"], tokenizer=tokenizer, search=Greedy(), length=5)[0]
    assert one.prompt == "äö" and len(one.pieces) <= 5
