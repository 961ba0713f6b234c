"""Scores and significance tests against sacreBLEU's own."""

import random

import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from regard.evaluate.bleu import MultiBleu, metric, score
from regard.evaluate.significance import approximate_randomisation, paired_bootstrap

WORDS = "the a old young dog cat man , . saw sees in on garden house blue , ; It's 5,000 km \u201cyes\u201d Straße ."


def corpus(lines: int, *, seed: int) -> list[str]:
    lot = random.Random(seed)
    return [" ".join(lot.choice(WORDS.split()) for _ in range(lot.randrange(1, 17))) for _ in range(lines)]


def spoilt(lines: list[str], *, share: float, seed: int) -> list[str]:
    """Each word, with this share, lost or another."""
    lot = random.Random(seed)
    return [" ".join(lot.choice([lot.choice(WORDS.split()), ""]) if lot.random() < share else w for w in line.split()) for line in lines]


REFERENCES = corpus(211, seed=1)
OTHERS = spoilt(REFERENCES, share=0.4, seed=2)
GOOD, WORSE = spoilt(REFERENCES, share=0.3, seed=3), spoilt(REFERENCES, share=0.34, seed=4)


@pytest.mark.parametrize("streams", [[REFERENCES], [REFERENCES, OTHERS]], ids=["one", "two"])
def test_sacrebleu_metrics(streams):
    for name, oracle in (
        ("bleu", sacrebleu.BLEU()),
        ("chrf", sacrebleu.CHRF()),
        ("chrf++", sacrebleu.CHRF(word_order=2)),
        ("ter", sacrebleu.TER()),
    ):
        expected = oracle.corpus_score(GOOD, streams)
        found = score(name, GOOD, streams)
        assert 20 < found.score < 90
        assert found.score == pytest.approx(expected.score, abs=1e-9)
        assert found.signature == str(oracle.get_signature())


def test_sacrebleu_options_show_in_the_signature():
    found = score("bleu", GOOD, [REFERENCES], lowercase=True, tokenize="intl")
    assert found.score == pytest.approx(sacrebleu.corpus_bleu(GOOD, [REFERENCES], lowercase=True, tokenize="intl").score)
    assert "case:lc" in found.signature and "tok:intl" in found.signature


@pytest.mark.parametrize("streams", [[REFERENCES], [REFERENCES, OTHERS]], ids=["one", "two"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_multi_bleu_is_sacrebleu_without_tokenisation_and_smoothing(streams, lowercase):
    expected = sacrebleu.corpus_bleu(GOOD, streams, tokenize="none", smooth_method="none", lowercase=lowercase, force=True)
    found = score("multi-bleu", GOOD, streams, lowercase=lowercase)
    assert found.score == pytest.approx(expected.score, abs=1e-9)
    assert found.detail["precisions"] == pytest.approx(expected.precisions)
    assert found.detail["brevity"] == pytest.approx(expected.bp)
    assert found.detail["lengths"] == [expected.sys_len, expected.ref_len]


@pytest.mark.parametrize("name", ["bleu", "ter"])
@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_significance_gives_sacrebleus_p_values(name, kind):
    oracle = sacrebleu.BLEU() if name == "bleu" else sacrebleu.TER()
    _, tables = PairedTest([("first", GOOD), ("second", WORSE)], {name: oracle}, [REFERENCES], test_type=kind, n_samples=200)()
    expected = next(column for title, column in tables.items() if title != "System")
    test = paired_bootstrap if kind == "bs" else approximate_randomisation
    found = test(metric(name), GOOD, WORSE, [REFERENCES], samples=200)
    assert found.scores == pytest.approx((expected[0].score, expected[1].score))
    ties = 0.06 if kind == "ar" else 0  # draws that differ exactly as much as the systems do count here, and do not there
    assert -1e-9 <= found.p_value - expected[1].p_value <= ties + 1e-9
    assert 0.005 <= found.p_value < 1


def test_multi_bleu_is_tested_for_significance_too():
    found = paired_bootstrap(MultiBleu(), GOOD, WORSE, [REFERENCES], samples=300)
    assert found.p_value < 0.1 and found.interval is not None
    assert found.interval[0] < found.difference < found.interval[1]
