"""Text in, text out: lines, empty lines, long lines, prefixes, n-best, alignments and the forms they are written in."""

import json
import math

import pytest
import torch

from regard.config.toml import structure, unstructure
from regard.data.tokenise import Tokenizer
from regard.data.words import WordVocabulary
from regard.decode.beam import Beam
from regard.decode.engine import Room
from regard.decode.formats import as_json, n_best, one_line, plain
from regard.decode.penalties import Exponent
from regard.decode.pharaoh import between_words, hard, read, word_of, write
from regard.decode.sample import Greedy, Sample
from regard.decode.step_function import function_stepper
from regard.decode.translate import Candidate, Decoding, Translation, translate, translate_stream
from regard.errors import UsageError

GERMAN = Tokenizer(WordVocabulary(["ein", "alter", "Hund", "bellt"]))
ENGLISH = Tokenizer(WordVocabulary(["an", "old", "dog", "barks"]))
END, V = 2, 8


def word_for_word(source, written):
    """The k-th target word is likely the translation of the k-th source word: 4 to 4, 5 to 5. It looks at it, too."""
    place = len(written) - 1
    likely = source[place] if place < len(source) else END
    log_probs = torch.full((V,), math.log(0.05))
    log_probs[likely] = math.log(0.65)
    look = torch.full((len(source),), 0.1)
    look[min(place, len(source) - 1)] = 0.9
    return log_probs, look


def run(texts, **settings):
    return translate(function_stepper(word_for_word), texts, source=GERMAN, target=ENGLISH, **settings)


@pytest.mark.parametrize("search", [Greedy(), Beam(), Sample(top_k=1)], ids=str)
def test_lines_in_are_lines_out(search):
    texts = ["Hund bellt", "", "ein alter Hund bellt", "   ", "Hund"]
    found = run(texts, decoding=Decoding(search), room=Room(rows=8))
    assert [each.text for each in found] == ["dog barks", "", "an old dog barks", "", "dog"]
    assert [each.source for each in found] == texts
    assert found[0].best.pieces == ("dog", "barks")
    assert found[0].best.log_prob == pytest.approx(3 * math.log(0.65))
    assert found[1].candidates == (Candidate("", ""),)


def test_no_texts_and_only_empty_ones():
    assert run([]) == []
    assert [each.text for each in run(["", ""])] == ["", ""]


def test_n_best_begins_with_the_best():
    found = run(["Hund bellt"], decoding=Decoding(Beam(size=4, n_best=3)))[0]
    assert len(found.candidates) == 3 and found.text == "dog barks"
    assert [one.score for one in found.candidates] == sorted((one.score for one in found.candidates), reverse=True)


def test_a_long_source_is_never_cut_silently():
    said: list[str] = []
    found = run(["Hund", "ein alter Hund bellt"], longest_source=4, first=10, warn=said.append)
    assert [each.dropped for each in found] == [0, 1]
    assert found[1].text == "an old dog"  # three words and the end mark
    assert len(said) == 1 and said[0].startswith("line 12: 4 tokens") and "the last 1 " in said[0]
    assert run(["ein alter Hund"], longest_source=4, warn=said.append)[0].dropped == 0 and len(said) == 1


def test_limits_and_that_they_are_told():
    texts = ["ein alter Hund bellt"]
    for decoding, words, full in (
        (Decoding(Greedy(), max_length=2), 2, True),
        (Decoding(Greedy(), max_ratio=0.8), 3, True),
        (Decoding(Greedy(), max_ratio=0.01), 1, True),
        (Decoding(Greedy(), max_extra=0), 4, True),
        (Decoding(Greedy(), max_extra=1), 4, False),
        (Decoding(Greedy(), min_length=6), 6, False),
    ):
        best = run(texts, decoding=decoding)[0].best
        assert len(best.pieces) == words
        assert best.full == full
    assert Decoding(max_length=40, max_ratio=2.0, max_extra=9).limit(10) == 19
    assert Decoding(max_length=15, max_ratio=2.0).limit(10) == 15
    assert Decoding().limit(10) == 60 and Decoding().limit(10, model=30) == 30
    assert len(run(texts, decoding=Decoding(Greedy(), min_length=9), longest_target=4)[0].best.pieces) == 3
    with pytest.raises(UsageError, match="max_extra"):
        Decoding(max_extra=-1)


def test_prefixes_and_banned_phrases_are_texts():
    texts = ["Hund bellt", "Hund bellt"]
    assert [each.text for each in run(texts, prefixes=["old", ""], decoding=Decoding(Greedy()))] == ["old barks", "dog barks"]
    assert "dog barks" not in run(texts, banned=["dog barks", ""], decoding=Decoding(Greedy()))[0].text
    with pytest.raises(UsageError, match="prefixes"):
        run(texts, prefixes=["old"])


def test_the_unknown_word_is_written_only_when_asked_for():
    def unsure(source, written):
        log_probs = torch.full((V,), -3.0)
        log_probs[3 if len(written) == 1 else END] = -0.1
        return log_probs

    def first(**settings):
        decoding = Decoding(Greedy(), **settings)
        return translate(function_stepper(unsure), ["Hund"], source=GERMAN, target=ENGLISH, decoding=decoding)[0].best.pieces[:1]

    assert first(unknown=True) == ("<unk>",)
    assert first() != ("<unk>",)


def test_alignment_in_words():
    found = run(["ein alter Hund"], alignment=True)[0].best
    assert found.alignment == ((0, 0), (1, 1), (2, 2))
    assert run(["ein alter Hund"])[0].best.alignment == ()
    longer = run(["ein alter Hund"], alignment=True, decoding=Decoding(Greedy(), min_length=4))[0].best
    assert longer.alignment == ((0, 0), (0, 3), (1, 1), (2, 2))  # the fourth looks at the end mark most, which is no word


def test_pharaoh_form():
    attention = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.0, 0.5]])
    assert hard(attention) == ((1, 0), (0, 1))
    assert write(hard(attention)) == "1-0 0-1" and read("1-0 0-1") == hard(attention) and read("") == ()
    assert between_words(((0, 0), (1, 0), (2, 1)), [0, 0, 1], [0, 0]) == ((0, 0), (1, 0))
    pieces = ["an", " o", "ld", " ", "dog"]
    assert word_of(range(5), lambda ids: "".join(pieces[k] for k in ids)) == [0, 1, 1, 1, 2]


def test_a_stream_is_the_same_whatever_its_chunks():
    texts = ["Hund bellt", "", "ein alter Hund", "bellt", "alter Hund"] * 3

    def some(texts, *, first):
        return run(texts, first=first, decoding=Decoding(Sample(seed=4, temperature=3.0)))

    whole = some(texts, first=0)
    for chunk in (1, 4, 99):
        assert list(translate_stream(iter(texts), some, chunk=chunk)) == whole
    assert whole[0].text != whole[5].text or whole[2].text != whole[7].text  # the same text on other lines has other luck


def test_a_stream_answers_before_it_reads_on():
    read_so_far = []

    def lines():
        for text in ("Hund", "bellt"):
            read_so_far.append(text)
            yield text

    stream = translate_stream(lines(), lambda texts, first: run(texts, first=first), chunk=1)
    assert next(stream).text == "dog" and read_so_far == ["Hund"]


CANDIDATES = (
    Candidate("a dog", "a do g", ("a", "do", "g"), (-0.5, -0.25, -0.25, -1.0), -0.5, alignment=((0, 0), (2, 1))),
    Candidate("dogs", "dogs", ("dogs",), (-2.0, -1.0), -1.5, full=True),
)
LINE = Translation("ein Hund", CANDIDATES)


def test_plain_and_n_best_forms():
    assert plain(LINE) == "a dog"
    assert plain(LINE, alignment=True) == "a dog ||| 0-0 2-1"
    assert list(n_best(7, LINE)) == ["7 ||| a dog ||| F0= -2.000000 ||| -0.500000", "7 ||| dogs ||| F0= -3.000000 ||| -1.500000"]
    assert next(n_best(0, LINE, alignment=True)) == "0 ||| a dog ||| 0-0 2-1 ||| F0= -2.000000 ||| -0.500000"


def test_json_form():
    found = json.loads(as_json(LINE, n_best=True, alignment=True))
    assert found["text"] == "a dog" and found["source"] == "ein Hund" and found["tokenised"] == "a do g" and found["dropped"] == 0
    assert found["alignment"] == [[0, 0], [2, 1]] and found["log_probs"] == [-0.5, -0.25, -0.25, -1.0]
    assert [one["text"] for one in found["n_best"]] == ["a dog", "dogs"] and "tokenised" not in found["n_best"][1]
    assert {"n_best", "alignment"}.isdisjoint(json.loads(as_json(LINE)))
    assert "Zoë" in as_json(Translation("Zoë", CANDIDATES))


def test_a_text_never_becomes_two_lines():
    odd = Translation("x", (Candidate("a\nb\u2028c\x85d\re", ""),))
    assert one_line(odd.text) == "a b\u2028c\x85d\re"
    for line in (plain(odd), *n_best(0, odd), as_json(odd, n_best=True)):
        assert "\n" not in line


def test_decoding_is_configuration():
    table = {"search": {"kind": "beam", "size": 5, "penalty": {"kind": "exponent", "power": 0.5}, "coverage": 0.1}, "max_ratio": 2}
    made = structure(Decoding, table)
    assert made == Decoding(Beam(size=5, penalty=Exponent(0.5), coverage=0.1), max_ratio=2.0)
    for decoding in (made, Decoding(), Decoding(Sample(top_k=4, seed=7), no_repeat=3), structure(Decoding, {"search": "greedy"})):
        assert structure(Decoding, unstructure(decoding)) == decoding
