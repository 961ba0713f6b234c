"""A decoder alone that learns from pairs: source, separator and target are one text to it; it is scored by the targets that it writes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import nn

from regard.data.completions import SEPARATOR, Completions
from regard.data.documents import Text
from regard.data.marks import BOS, EOS
from regard.data.music import Music
from regard.data.parallel import read_pairs
from regard.data.text_batch import TextBatch
from regard.data.tokenise import Tokenizer, train_tokenizers
from regard.decode.translate import Decoding
from regard.decode.write import go_on
from regard.errors import DataError, UsageError
from regard.evaluate.bleu import score
from regard.evaluate.measure import Score
from regard.evaluate.perplexity import log_perplexity
from regard.models.configs import LanguageModel
from regard.models.language_model import Writer
from regard.models.saved import Saved, as_writer
from regard.run import Run, root_of
from regard.tasks.labelling import Labelling, parted
from regard.tasks.tokenizers import kept
from regard.tasks.translation import METRICS, pairs_only
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks


def reads_pairs(run: Run) -> bool:
    """Whether a language model is given pairs, and neither running text nor music."""
    return bool(run.data.train) and not isinstance(run.data.train[0], Text | Music)


def open_completion(run: Run, config: LanguageModel, out: Path, *, ranks: Ranks, warm: Saved | None = None) -> Labelling:
    root = root_of(run.data)
    if config.recalls:
        raise UsageError("pairs are read one by one", where="model.trunk", do="take attention without a memory of earlier segments")

    def made() -> dict[str, Tokenizer]:
        if warm is not None:
            return {"text": as_writer(warm).text}
        tags = tuple(dict.fromkeys((*run.tokenizer.tags, SEPARATOR)))
        corpora = pairs_only(run.data.train, part="train")
        both = replace(run.tokenizer, joint=True, tags=tags)
        return {"text": train_tokenizers(both, corpora, root=root, filters=run.data.filters, seed=run.train.seed)[0]}

    (tokenizer,) = kept(out, ("text",), made, ranks=ranks)
    if SEPARATOR not in tokenizer.tags:
        raise UsageError(f"its tokenizer has no tag {SEPARATOR}", where="--from", do="begin with a model that learned from pairs")

    def examples(part: str) -> Completions | None:
        corpora = pairs_only(getattr(run.data, part), part=part)
        filters = run.data.filters if part == "train" else None
        pairs = [pair for corpus in corpora for pair in read_pairs(corpus, root=root, filters=filters)]
        told = "all" if part == "train" else "target"
        return Completions.of(pairs, tokenizer, longest=run.batching.max_length, told=told) if pairs else None

    train, valid, test = (examples(part) for part in ("train", "valid", "test"))
    if train is None:
        raise DataError("there is no usable pair to learn from", where="data.train")
    learned, held = parted(run, train)
    metrics = run.metrics or METRICS

    def judged(found: Sequence[str], things: Completions) -> list[Score]:
        lowercase = tokenizer.surface.lowercase
        return [score(name, found, [list(things.answers)], lowercase=lowercase) for name in metrics if name != "log-perplexity"]

    def expected(total: float, tokens: int) -> list[Score]:
        return [log_perplexity(total, tokens=tokens, tokenizer=tokenizer.fingerprint)] if "log-perplexity" in metrics else []

    return Labelling(
        run=run,
        config=replace(config, begin=BOS, end=EOS, vocabulary=tokenizer.size),
        train=learned,
        valid=valid or (replace(held, told="target") if held is not None else None),
        test=test,
        fingerprint=hashlib.blake2b(learned.sources.values.tobytes() + learned.targets.values.tobytes()).hexdigest()[:32],
        what="pairs",
        goal=_goal,
        read=lambda model, batch: written(model, batch, tokenizer=tokenizer, decoding=run.decoding),
        on_cpu=2048,
        judge=judged,
        makes="A language model",
        use=f'regard generate FOLDER --prompt "TEXT {SEPARATOR}"',
        usual="loss",
        tokenizers={"text": tokenizer},
        lost=expected,
        asked=False,
    )


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    return Objective(model, loss)  # type: ignore[arg-type]


def written(model: nn.Module, batch: TextBatch, *, tokenizer: Tokenizer, decoding: Decoding) -> list[str]:
    """How the model goes on behind each separator."""
    assert isinstance(model, Writer)
    (separator,) = tokenizer.encode(SEPARATOR)
    rows = [ids[real].tolist() for ids, real in zip(batch.text.ids, batch.text.tokens.real, strict=True)]
    begun = [tuple(row[: len(row) - row[::-1].index(separator)]) for row in rows]
    found = go_on(model, begun, search=decoding.search, limits=[decoding.limit(len(ids)) for ids in begun])
    return [tokenizer.detokenise(tokenizer.decode(ids)) for ids in found]
