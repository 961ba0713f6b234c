"""Summaries by a decoder alone: sections and their titles, pairs as one text, and what is asked for at each place."""

from pathlib import Path

import numpy as np
import pytest
import torch

import small_handbook
from regard.data.batch import IGNORED
from regard.data.completions import SEPARATOR, Completions
from regard.data.marks import BOS, EOS
from regard.data.parallel import read_pairs
from regard.data.sections import Sections, is_title
from regard.data.tokenise import Word, train_tokenizer
from regard.decode.sample import Greedy
from regard.decode.translate import Decoding
from regard.decode.write import score_texts
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import LanguageModel
from regard.models.language_model import Writer
from regard.nn.trunk_transformer import Transformer
from regard.tasks.completing import written
from regard.train.loss import CrossEntropy, Objective

PAIRS = [("the dog sees the cat", "dog cat"), ("a bird", "the bird"), ("the cat sees a bird and a dog", "cat")]
TOKENIZER = train_tokenizer(Word(tags=(SEPARATOR,)), [text for pair in PAIRS for text in pair])


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Inserting a table", True),
        ("Print (Options)", True),
        ("It inserts a table.", False),
        ("Insert", False),
        ("tables; inserting", False),
        ("inserting a table", False),
        ("Sub Main = 1", False),
        ("One two three four five six seven eight nine ten eleven", False),
    ],
)
def test_what_is_a_title(text: str, is_one: bool):
    assert is_title(text) == is_one


def test_sections_are_cut_at_titles_and_split_by_twenties(tmp_path: Path):
    path = small_handbook.write(tmp_path / "book.tsv")
    parts = {
        split: list(read_pairs(Sections(path.name, column=2, area="help", least=5, split=split), root=tmp_path))
        for split in ("train", "valid", "test")
    }
    assert [len(part) for part in parts.values()] == [90, 5, 5]
    assert parts["train"][0] == (
        "This command is used to insert the table that is selected in the document. The table may also be changed by hand.",
        "Insert the table",
    )
    assert len({pair for part in parts.values() for pair in part}) == 100
    short = Sections(path.name, column=2, area="help", least=5, words=6)
    assert next(read_pairs(short, root=tmp_path))[0] == "This command is used to insert"
    assert not list(read_pairs(Sections(path.name, column=2, area="help", least=100), root=tmp_path))
    assert not list(read_pairs(Sections(path.name, column=2, area="nowhere"), root=tmp_path))


def test_what_no_sections_are():
    with pytest.raises(UsageError, match="columns are counted from 1"):
        Sections("book.tsv", column=0)


def test_a_pair_is_one_text_and_what_follows_is_asked_for():
    (separator,) = TOKENIZER.encode(SEPARATOR)
    source, target = TOKENIZER.encode("a bird"), TOKENIZER.encode("the bird")
    for told in ("all", "target"):
        batch = Completions.of(PAIRS, TOKENIZER, longest=30, told=told).batch(np.array([1, 0]))
        assert batch.text.ids[0][batch.text.tokens.real[0]].tolist() == [BOS, *source, separator, *target]
        asked = [*source, separator] if told == "all" else [IGNORED] * 3
        assert batch.labels[0].tolist()[:6] == [*asked, *target, EOS]
        assert batch.target_tokens == int((batch.labels != IGNORED).sum()) == (6 + 9 if told == "all" else 3 + 3)
    assert Completions.of(PAIRS, TOKENIZER, longest=30, told="all").costs.tolist() == [9, 6, 11]


def test_what_is_too_long_loses_the_end_of_its_source():
    some = Completions.of(PAIRS, TOKENIZER, longest=7, told="all")
    assert some.costs.max() <= 7
    text = TOKENIZER.decode(some.sources.row(2)[1:-1].tolist())
    assert PAIRS[2][0].startswith(text) and some.targets.row(2)[-1] == EOS


def writer() -> Writer:
    torch.manual_seed(3)
    config = LanguageModel(d_model=16, trunk=Transformer(layers=1, heads=2, dropout=0.0), vocabulary=TOKENIZER.size)
    model = build(config)
    assert isinstance(model, Writer)
    return model.eval()


def test_the_loss_of_targets_is_what_each_text_by_itself_says():
    model = writer()
    batch = Completions.of(PAIRS, TOKENIZER, longest=30, told="target").batch(np.arange(3))
    with torch.no_grad():
        loss = float(Objective(model, CrossEntropy(smoothing=0.0))(batch))
    alone = score_texts(model, [f"{source} {SEPARATOR} {target}" for source, target in PAIRS], tokenizer=TOKENIZER)
    told = sum(sum(one.log_probs[-len(TOKENIZER.encode(target)) - 1 :]) for one, (_, target) in zip(alone, PAIRS, strict=True))
    assert loss == pytest.approx(-told, rel=1e-5)


def test_answers_are_written_behind_the_separator_whatever_stands_beside_them():
    model = writer()
    examples = Completions.of(PAIRS, TOKENIZER, longest=30, told="target")
    asked = {"tokenizer": TOKENIZER, "decoding": Decoding(search=Greedy(), max_length=5)}
    together = written(model, examples.batch(np.arange(3)), **asked)
    alone = [written(model, examples.batch(np.array([place])), **asked)[0] for place in range(3)]
    assert together == alone and all(len(text.split()) <= 5 for text in alone) and any(alone)
