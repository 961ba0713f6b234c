"""Scores by hand, and inputs that are not to be scored."""

import json
import math

import pytest

from regard.errors import DataError, UsageError
from regard.evaluate.bleu import METRICS, MultiBleu, metric, score
from regard.evaluate.perplexity import Perplexity, perplexity
from regard.evaluate.rouge import common, words
from regard.evaluate.significance import approximate_randomisation, paired_bootstrap

REFERENCE = ["the cat sat on the mat", "a dog barked at me ."]


def test_multi_bleu_by_hand():
    hypotheses = ["the cat sat on a mat", "a dog barked at me"]
    # right: 5 + 5 of 11 words, 3 + 4 of 9 pairs, 2 + 3 of 7 triples, 1 + 2 of 5 quadruples; 11 words for 12
    expected = 100 * math.exp(1 - 12 / 11) * (10 / 11 * 7 / 9 * 5 / 7 * 3 / 5) ** 0.25
    found = score("multi-bleu", hypotheses, [REFERENCE])
    assert found.score == pytest.approx(expected)
    assert found.detail["precisions"] == pytest.approx([1000 / 11, 700 / 9, 500 / 7, 60])
    assert found.detail["lengths"] == [11, 12]
    assert "tok:as-given" in found.signature and found.name == "multi-bleu"


def test_a_word_counts_no_more_often_than_the_reference_has_it():
    assert MultiBleu()._sentence("the the the the", "the cat the dog")[2] == 2


def test_the_nearest_reference_length_counts_and_of_two_the_shorter():
    lengths = [MultiBleu()._sentence("a b c d", *others)[1] for others in (["a b c", "a b c d e f"], ["a b c d e", "a b c"])]
    assert lengths == [3, 3]


def test_unsmoothed_bleu_without_a_quadruple_is_zero():
    assert score("multi-bleu", ["the cat sat"], [["the cat sat"]]).score == 0
    assert score("multi-bleu", [""], [["the cat sat"]]).score == 0


def test_perfect_and_hopeless():
    for name in METRICS:
        perfect = score(name, REFERENCE, [REFERENCE]).score
        assert perfect == pytest.approx(0 if name == "ter" else 100)
        hopeless = score(name, ["xyz", "qqq"], [REFERENCE]).score
        assert hopeless == pytest.approx(100 if name == "ter" else 0, abs=2)


def test_every_score_has_its_own_signature_and_becomes_json():
    found = [score(name, REFERENCE, [REFERENCE]) for name in METRICS]
    assert len({each.signature for each in found}) == len(METRICS)
    assert all(json.loads(json.dumps(each.json()))["score"] == each.score for each in found)


def test_rouge_l_by_hand():
    # Lin 2004's example: police killed the gunman / police kill the gunman
    found = score("rouge-l", ["police kill the gunman", "the gunman kill police"], [["police killed the gunman"] * 2])
    assert found.score == pytest.approx(100 * (3 / 4 + 2 / 4) / 2)
    uneven = score("rouge-l", ["A b, C d"], [["a c x"]])
    assert uneven.detail == pytest.approx({"precision": 50, "recall": 200 / 3}) and uneven.score == pytest.approx(100 * 4 / 7)
    assert score("rouge-l", ["a b"], [["x"], ["b"]]).score == pytest.approx(200 / 3)  # the better reference
    assert score("rouge-l", ["..."], [["a"]]).score == 0


# Two pairs of the data that the rouge-score package is tested with (Google, Apache-2.0); its figures for them are those of ROUGE-1.5.5.
ROUGE_TARGETS = [
    "ZfbCUIUuePaiLVUlCaUXxkpu XPeWing tUHfPMuZ',-Xd Y BrUgVJing M-HV.-DgdDaY.rFDJCRing Ht-LM EKBDXkME,yz'RBr q'wtion wIojNbN wL,b"
    " .a-'XdQggyFl jB-RPP'iyOIcUxer tKM L",
    "KsJdPByEtAor fE-Qg Dpdbring cw-WeFyu vC MoBL Xdn g wkvcEiGvKtion BDFhrpMtion psing sbKao Q m qiing LMmer HqqLFXe,XPY,J XsurkMer"
    " ,ed nB'wH'bWVHjWFEing tQ.saefZwJtKrTlixYpMMsJing UCAPwNHeYVjDing c T BUySKtion gMPfJpwGw p'NvxAoping eu pBwMBKV'I"
    " DNxqelhu,PHPxDEq,mtion SN",
]
ROUGE_FOUND = [
    "rFDJCRtion Ht-LM EKtDXkME,yz'RBr q'wer wrojNbN wL,b .a-'XdQggyFl jB-RPP'iyOIcUxi",
    "n cw-WeFyu vC MoBL Xdn g wkvcEiGvKtion BDFhrpMer pstion sbKao Q m qier LMmed HqqLFXe,XPY,J XsurkMeo ,ed nB'wH'bWVHjWFEer"
    " tQ.saefZwJtKrTlixYpMMNJtion UCAPwNHeYVjD",
]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("rouge-1", (68.750, 40.741, 51.163), (65.385, 40.476, 50.000)),
        ("rouge-2", (53.333, 30.769, 39.024), (48.000, 29.268, 36.364)),
        ("rouge-l", (68.750, 40.741, 51.163), (65.385, 40.476, 50.000)),
    ],
)
def test_rouge_gives_the_figures_of_rouge_1_5_5(name, first, second):
    for found, target, (precision, recall, f1) in zip(ROUGE_FOUND, ROUGE_TARGETS, (first, second), strict=True):
        scored = score(name, [found], [[target]])
        assert (scored.detail["precision"], scored.detail["recall"], scored.score) == pytest.approx((precision, recall, f1), abs=6e-4)
    assert score(name, ROUGE_FOUND, [ROUGE_TARGETS]).score == pytest.approx((first[2] + second[2]) / 2, abs=6e-4)


def test_a_line_is_exactly_right_or_not():
    assert score("exact", [" a b", "A b", "a"], [["a b", "a b", "b"], ["x", "x", "a"]]).score == pytest.approx(200 / 3)
    assert score("exact", ["A b"], [["a b"]], lowercase=True).score == 100


def test_words_and_common_subsequence():
    assert words("It's 3 o'clock, Zoë") == ["it", "s", "3", "o", "clock", "zo"]
    assert common("abcbdab", "bdcaba") == 4
    assert common("", "ab") == 0 and common("a", "aa") == 1


def test_perplexity_by_hand():
    found = perplexity([(-math.log(8), 3), (-math.log(4), 2)], unit="word")
    assert found.nats_per_token == pytest.approx(math.log(2))
    assert found.perplexity == pytest.approx(2) and found.bits_per_token == pytest.approx(1) and found.tokens == 5
    assert json.loads(json.dumps(found.json()))["unit"] == "word"
    assert "per word" in str(found)
    assert [Perplexity(nats, 1, "x").perplexity for nats in (5.04952, 2.46645)] == pytest.approx([155.95, 11.78], abs=0.01)
    with pytest.raises(DataError):
        perplexity([], unit="word")


def test_a_system_against_itself_is_never_better():
    worse = ["the cat", "a dog barked"]
    for test in (paired_bootstrap, approximate_randomisation):
        same = test(metric("bleu"), REFERENCE, REFERENCE, [REFERENCE], samples=50)
        assert same.difference == 0 and same.p_value == 1
        assert test(metric("bleu"), worse, REFERENCE, [REFERENCE], samples=20).difference < 0


def test_the_better_of_many_sentences_is_found():
    good, bad = ["a b c d e"] * 40, ["a b c x e"] * 40
    for test in (paired_bootstrap, approximate_randomisation):
        found = test(metric("bleu"), good, bad, [["a b c d e"] * 40], samples=99)
        assert found.p_value == pytest.approx(0.01)
        assert json.loads(json.dumps(found.json()))["test"] == found.test


@pytest.mark.parametrize(
    ("hypotheses", "references", "error"),
    [
        (["a"], [["a", "b"]], DataError),
        (["a"], ["a"], UsageError),
        (["a"], [], UsageError),
        ([], [[]], DataError),
    ],
)
def test_what_does_not_fit_together_is_refused(hypotheses, references, error):
    with pytest.raises(error):
        score("bleu", hypotheses, references)


def test_unknown_metric_names_the_known_ones():
    with pytest.raises(UsageError, match="chrf"):
        score("blue", ["a"], [["a"]])
