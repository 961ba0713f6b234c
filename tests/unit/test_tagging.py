"""Labels of words: files, spelling, entities and their score, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.batch import IGNORED
from regard.data.spelled_words import SpelledWords, spelled_words
from regard.data.tagged import Tagged, read_tagged
from regard.data.tokenise import Tokenizer
from regard.data.words import CharacterVocabulary
from regard.errors import DataError, UsageError
from regard.evaluate.entities import Entity, entities, entity_f1

LETTERS = Tokenizer(CharacterVocabulary(list("abc"), bytes_too=False))


def test_files_as_conll_has_them(tmp_path: Path):
    (tmp_path / "a.conll").write_text("-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n\nPeter\tNNP\tB-PER\n")
    one, two = read_tagged([Tagged("a.conll")], root=tmp_path)
    assert one.words == ("EU", "rejects") and one.labels == ("B-ORG", "O") and two == (("Peter",), ("B-PER",))
    assert read_tagged([Tagged("a.conll", columns=(1, 2))], root=tmp_path)[0].labels == ("NNP", "VBZ")


@pytest.mark.parametrize(("line", "says"), [("alone", "a.conll:2: a line is a word"), ("\tO", "a.conll:2: the word or its label is empty")])
def test_a_line_that_is_not_whole_is_named(tmp_path: Path, line: str, says: str):
    (tmp_path / "a.conll").write_text(f"good\tO\n{line}\n")
    with pytest.raises(DataError) as error:
        read_tagged([Tagged("a.conll")], root=tmp_path)
    assert says in str(error.value)
    with pytest.raises(UsageError, match="columns"):
        Tagged("a.conll", columns=(0, 1))


def test_a_label_stands_at_the_first_piece_of_its_word():
    texts = [SpelledWords.of(words, LETTERS, longest=9) for words in (["ab", "c", "bca"], ["a"])]
    batch = spelled_words(texts, [[7, 8, 9], [5]], (0, 1))
    assert batch.labels.tolist() == [[IGNORED, 7, IGNORED, 8, 9, IGNORED, IGNORED], [IGNORED, 5] + [IGNORED] * 5]
    assert batch.text.ids[0].tolist() == [1, *LETTERS.encode("abcbca")] and batch.target_tokens == 4
    short = SpelledWords.of(["ab", "c", "bca"], LETTERS, longest=5)
    assert spelled_words([short], [[7, 8, 9]], (0,)).labels.tolist() == [[IGNORED, 7, IGNORED, 8]]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("B-a I-a O B-a", {Entity("a", 0, 2), Entity("a", 3, 4)}),
        ("B-a B-a I-b", {Entity("a", 0, 1), Entity("a", 1, 2), Entity("b", 2, 3)}),
        ("O I-a I-a", {Entity("a", 1, 3)}),
        ("noun noun O", {Entity("noun", 0, 2)}),
        ("O O", set()),
        ("", set()),
    ],
)
def test_entities_by_hand(labels: str, found: set[Entity]):
    assert entities(labels.split()) == found


def test_the_score_of_entities_by_hand():
    """Three are there, two are said, one of them rightly: precision 1/2, recall 1/3, F1 0.4."""
    right, found = [["B-a", "I-a", "O", "B-b"], ["B-a"]], [["B-a", "I-a", "O", "O"], ["B-b"]]
    score = entity_f1(found, right)
    assert score.score == pytest.approx(40) and score.detail["precision"] == 50 and score.detail["recall"] == pytest.approx(100 / 3)
    assert score.detail["types"] == {"a": pytest.approx(66.67), "b": 0.0} and score.signature == "entity-f1|n:3"
    assert entity_f1([["O"]], [["O"]]).score == 100
