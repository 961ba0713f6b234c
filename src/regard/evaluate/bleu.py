"""Scores of translations: sacreBLEU's BLEU, chrF and TER on ordinary text, and the old tokenised multi-bleu under a name of its own.

multi-bleu counts the tokens it is given, so it depends on who tokenised; its figures are comparable with those of old papers that used the
same tokenisation, and never with BLEU.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEUScore

from regard.errors import UsageError
from regard.evaluate.accuracy import Exact
from regard.evaluate.measure import Metric, MetricName, Score, measure
from regard.evaluate.rouge import RougeL, RougeN, grams

METRICS = tuple(name for name in get_args(MetricName) if name != "log-perplexity")
"""Those that texts alone decide; log-perplexity needs the model."""
LONGEST = 4  # n-grams of BLEU


class SacreBleu:
    """One of sacreBLEU's metrics. What sacreBLEU's own significance tests ask of it is all that is asked of it here."""

    def __init__(self, name: str, metric: sacrebleu.BLEU | sacrebleu.CHRF | sacrebleu.TER):
        self.name, self.metric = name, metric

    def counts(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        return np.array(self.metric._extract_corpus_statistics(hypotheses, references), dtype=float)

    def value(self, total: np.ndarray) -> tuple[float, dict[str, Any]]:
        score = self.metric._compute_score_from_stats(total.tolist())
        return score.score, _parts(score) if isinstance(score, BLEUScore) else {}

    def signature(self, references: int) -> str:
        self.metric.num_refs = references  # pyright: ignore[reportAttributeAccessIssue]  (it learns this only from a whole scoring)
        return str(self.metric.get_signature())


class MultiBleu:
    """BLEU as Moses' multi-bleu.perl defines it: tokens are what stands between spaces, nothing is smoothed."""

    name = "multi-bleu"

    def __init__(self, *, lowercase: bool = False):
        self.lowercase = lowercase

    def counts(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        return np.array([self._sentence(*lines) for lines in zip(hypotheses, *references, strict=True)], dtype=float)

    def value(self, total: np.ndarray) -> tuple[float, dict[str, Any]]:
        length, wanted, *grams = total.tolist()
        correct, tried = grams[:LONGEST], grams[LONGEST:]
        precisions = [right / all_ if all_ else 0.0 for right, all_ in zip(correct, tried, strict=True)]
        brevity = 1.0 if length >= wanted else math.exp(1 - wanted / length) if length else 0.0
        score = brevity * math.exp(sum(map(math.log, precisions)) / LONGEST) if all(precisions) else 0.0
        detail = {
            "precisions": [100 * share for share in precisions],
            "brevity": brevity,
            "ratio": length / wanted if wanted else 0.0,
            "lengths": [int(length), int(wanted)],
        }
        return 100 * score, detail

    def signature(self, references: int) -> str:
        return f"multi-bleu|nrefs:{references}|case:{'lc' if self.lowercase else 'as-given'}|tok:as-given|smooth:none"

    def _sentence(self, hypothesis: str, *references: str) -> list[int]:
        """Tokens, reference tokens (of the reference nearest in length, the shorter of two), right n-grams, n-grams."""
        words = self._tokens(hypothesis)
        wanted = [self._tokens(reference) for reference in references]
        nearest = min((abs(len(each) - len(words)), len(each)) for each in wanted)[1]
        right, tried = [], []
        for size in range(1, LONGEST + 1):
            have, most = grams(words, size), Counter[tuple[str, ...]]()
            for each in wanted:
                most |= grams(each, size)
            right.append((have & most).total())
            tried.append(have.total())
        return [len(words), nearest, *right, *tried]

    def _tokens(self, line: str) -> list[str]:
        return (line.lower() if self.lowercase else line).split()


def metric(name: str, *, lowercase: bool = False, tokenize: str = "13a") -> Metric:
    """The metric of this name. `tokenize` is sacreBLEU's, for BLEU only; TER and ROUGE never heed case."""
    match name:
        case "bleu":
            return SacreBleu(name, sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenize, force=True))
        case "chrf":
            return SacreBleu(name, sacrebleu.CHRF(lowercase=lowercase))
        case "chrf++":
            return SacreBleu(name, sacrebleu.CHRF(lowercase=lowercase, word_order=2))
        case "ter":
            return SacreBleu(name, sacrebleu.TER())
        case "multi-bleu":
            return MultiBleu(lowercase=lowercase)
        case "rouge-1" | "rouge-2":
            return RougeN(int(name[-1]))
        case "rouge-l":
            return RougeL()
        case "exact":
            return Exact(lowercase=lowercase)
        case _:
            raise UsageError(f"there is no metric {name!r}", do=f"choose from {', '.join(METRICS)}")


def score(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, lowercase: bool = False, tokenize: str = "13a"
) -> Score:
    """Score a corpus by the metric of this name."""
    return measure(metric(name, lowercase=lowercase, tokenize=tokenize), hypotheses, references)


def _parts(score: BLEUScore) -> dict[str, Any]:
    lengths = [int(score.sys_len), int(score.ref_len)]
    return {"precisions": list(score.precisions), "brevity": score.bp, "ratio": score.ratio, "lengths": lengths}
