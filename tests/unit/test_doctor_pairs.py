"""What the doctor holds against pairs: each reason by hand where it has one, by planted cases where it is learned."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from regard.bench.noise import KINDS, inject, measure
from regard.data.alignment import judge
from regard.data.clean import clean
from regard.data.corpora import files
from regard.data.doctor import check, grouped
from regard.data.examine import REASONS, examine
from regard.data.language import BUCKETS, _scores, foreign, wrong_script
from regard.data.parallel import Jsonl, Lines, Tsv
from regard.data.text import read_lines
from regard.errors import UsageError


def embedded(pair: str, count: int) -> list[tuple[str, str]]:
    """Every 37th pair of an embedded corpus, from short to long."""
    rows = [line.text.split("\t") for line in read_lines(files(pair)["train"])]
    return [(row[0], row[1]) for row in rows[-count * 37 :: 37]]


@pytest.fixture(scope="module")
def german() -> list[tuple[str, str]]:
    return embedded("de-en", 3001)


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> Lines:
    for side, ending in enumerate(("de", "en")):
        (folder / f"{name}.{ending}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return Lines(str(folder / f"{name}.de"), str(folder / f"{name}.en"))


def test_files_are_grouped_by_their_names():
    listed = ["a/train.de.gz", "a/train.en", "a/test.de", "a/test.en", "more.tsv.xz", "more.jsonl", "alone.de"]
    assert grouped(listed) == [
        *(Tsv("more.tsv.xz"), Jsonl("more.jsonl")),
        *(Lines("a/train.de.gz", "a/train.en"), Lines("a/test.de", "a/test.en")),
    ]
    assert grouped(["x/source.txt", "y/other"]) == [Lines("x/source.txt", "y/other")]
    with pytest.raises(UsageError, match="3 files are called"):
        grouped(["t.de", "t.en", "t.fr"])


def test_reasons_that_need_no_learning(tmp_path: Path):
    train = [("ein Hund", "a dog"), ("Ein Hund!", "A dog."), ("eine Katze", "a dog"), ("das ist gut so", "Das ist gut so."), ("x", "\tz ")]
    train += [("Tom", "Tom"), ("ein Buch", "a book"), ("zwei Bücher", "two books"), ("", "nothing"), ("Geh", "go")]
    test = [("Ein Buch", "the book"), ("die Bücher", "Two books"), ("a", "b"), ("A", "B")]
    found = examine([write(tmp_path, "train", train), write(tmp_path, "test", test)])
    names = [REASONS[code] for code in found[0].reasons]
    assert names == ["", "duplicate", "", "copied source", "", "", "in held-out", "in held-out", "broken", ""]
    assert [REASONS[code] for code in found[1].reasons] == ["", "", "", "duplicate"] and found[1].held_out
    assert found[0].examples["duplicate"][0].line == 2


def test_clean_leaves_a_test_set_whole(tmp_path: Path):
    pairs = [("ein Hund", "a dog"), ("Ein Hund", "A dog"), ("eine Katze", "")]
    train, test = write(tmp_path, "train", pairs), write(tmp_path, "test", [("der Hund", "the dog"), ("Der Hund", "The dog"), ("x", "")])
    told = clean([train.source, train.target, test.source, test.target], tmp_path / "out")
    assert [one["kept"] for one in told["corpora"]] == [1, 2]
    assert (tmp_path / "out" / "test.en").read_text(encoding="utf-8") == "the dog\nThe dog\n"
    assert (tmp_path / "out" / "report.json").is_file()


def test_scripts():
    assert wrong_script(["Hallo", "привет", "", "123", "Das Wort привет hier"]) == ["", "Cyrillic", "", "", ""]
    assert wrong_script(["日本語", "ひらがな", "漢字", "hello"]) == ["", "", "", "Latin"]


def test_languages_are_told_by_profiles_learned_on_the_spot(german: list[tuple[str, str]]):
    french = [pair[0] for pair in embedded("fr-en", 3001)]
    source, target = [pair[0] for pair in german], [pair[1] for pair in german]
    places = random.Random(3).sample(range(len(source)), 180)
    for place in places[:90]:
        target[place] = french[place]
    for place in places[90:]:
        target[place] = source[place]
    found = foreign(target, source)
    assert np.mean([found[place] == "fr" for place in places[:90]]) > 0.9
    assert np.mean([found[place] == "de" for place in places[90:]]) > 0.9
    assert np.mean([bool(said) for place, said in enumerate(found) if place not in places]) < 0.003
    assert not [said for said in foreign(source, target[:5]) if said == "fr"]


def test_a_line_does_not_vouch_for_itself():
    """A line that alone makes up the foreign profile is no evidence of a language."""
    grams, line = np.array([3, 5, 7, 3, 5, 11]), np.array([0, 0, 0, 1, 1, 1])
    there, here = np.bincount(grams[:3], minlength=BUCKETS).astype(float), np.bincount(grams[3:], minlength=BUCKETS).astype(float)
    score = _scores(there, here, (grams, line, line == 0), np.ones(6, np.int64), 2)
    assert score[0] < 0
    assert _scores(there, here, (grams, line, line == 2), np.ones(6, np.int64), 2)[0] > 0


def test_misaligned_and_truncated_pairs_are_found_and_good_ones_stay(german: list[tuple[str, str]]):
    rng, pairs = random.Random(5), list(german)
    places = rng.sample(range(len(pairs)), 300)
    for place, other in zip(places[:150], places[1:150] + places[:1], strict=True):
        pairs[place] = (pairs[place][0], german[other][1])
    for place in places[150:]:
        words = pairs[place][1].split()
        pairs[place] = (pairs[place][0], " ".join(words[: max(1, len(words) // 2)]))
    verdict = judge(pairs)
    bad = verdict.bad > 0.5
    good = np.setdiff1d(np.arange(len(pairs)), places)
    assert bad[places[:150]].mean() > 0.85 and bad[places[150:]].mean() > 0.7 and bad[good].mean() < 0.03
    assert np.array_equal(judge(pairs).bad, verdict.bad)


def test_a_corpus_that_is_parallel_as_a_whole_is_left_alone_and_one_that_is_not_is_named(german: list[tuple[str, str]], tmp_path: Path):
    assert (judge(german).bad > 0.5).mean() < 0.01
    targets = [pair[1] for pair in german]
    random.Random(1).shuffle(targets)
    shuffled = [(pair[0], target) for pair, target in zip(german, targets, strict=True)]
    verdict = judge(shuffled)
    assert verdict.told_apart < 0.65 and not (verdict.bad > 0.5).any()
    corpus = write(tmp_path, "train", shuffled)
    report = check([corpus.source, corpus.target])
    assert report.code == 3 and "do not look like translations of each other" in report.text()


def test_few_pairs_are_not_judged():
    assert not judge([("a", "b")] * 999).bad.any() and judge([]).told_apart == 1.0


def test_noise_is_injected_as_it_says():
    pairs = [(f"s {number} a b c d", f"t {number} e f g h") for number in range(997)]
    spoilt, kinds = inject(pairs, [[f"f {number}" for number in range(997)]], share=0.2, seed=3)
    assert {kind: kinds.count(kind) for kind in KINDS} == dict.fromkeys(KINDS, 24)
    for before, after, kind in zip(pairs, spoilt, kinds, strict=True):
        assert (before == after) == (not kind)
        if kind == "misaligned":
            assert after[0] == before[0] and after[1].startswith("t")
        if kind == "other side":
            assert after == before[::-1]
        if kind == "truncated target":
            assert before[1].startswith(after[1]) and len(after[1].split()) <= len(before[1].split()) - 2
    assert all(spoilt.index(pair) < place for place, pair in enumerate(spoilt) if kinds[place] == "duplicate")


def test_the_measurement_of_noise(german: list[tuple[str, str]]):
    french = [pair[0] for pair in embedded("fr-en", 3001)]
    told = measure(german, [french], share=0.2, seed=1)
    assert told["found"] > 0.85 and told["wrongly_left_out"] < 0.05 and told["found_by_kind"]["duplicate"] > 0.95


def test_the_report_is_for_people_and_for_programs(tmp_path: Path):
    corpus = write(tmp_path, "train", [("ein Hund", "a dog"), ("Ein  Hund", "A dog")])
    report = check([corpus.source, corpus.target])
    assert f"{corpus.source}: doubled space (column 3): 1 x, line 2 [mend]" in report.text()
    assert "duplicate: 1 (50.00 %)\n    line 2: Ein Hund ||| A dog" in report.text()
    assert report.data()["corpora"][0]["left_out"]["duplicate"] == 1 and report.data()["code"] == report.code == 3
    good = write(tmp_path, "good", [("ein Hund", "a dog"), ("eine Katze", "a cat")])
    assert check([good.source, good.target]).code == 0
