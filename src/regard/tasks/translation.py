"""Translation: sentence pairs from raw files, tokenizers made of them, and a translator that is watched, saved and scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from regard.config.toml import unstructure
from regard.data.batching import Batches, Batching
from regard.data.parallel import Corpus, Jsonl, Lines, Tsv, read_pairs
from regard.data.prepare import prepare_pairs
from regard.data.sections import Sections
from regard.data.stream import PairCache
from regard.data.strings import Strings
from regard.data.tokenise import Tokenizer, train_tokenizers
from regard.decode.sample import Greedy
from regard.decode.score import encoded, score_pairs
from regard.decode.translator import translate_texts
from regard.errors import DataError
from regard.evaluate.measure import Score
from regard.evaluate.perplexity import log_perplexity
from regard.evaluate.translations import score_translations
from regard.models.configs import EncoderDecoder
from regard.models.copying import CopyingTranslator
from regard.models.saved import Saved, as_translator, save_model
from regard.models.translator import Translator
from regard.nn.copying import NoCopy
from regard.run import Run, root_of
from regard.tasks.protocol import Check
from regard.tasks.refusing import only
from regard.tasks.telling import readme, say
from regard.tasks.tokenizers import kept
from regard.train.auto import worth_trying
from regard.train.copy_loss import CopyObjective
from regard.train.device import Machine
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks
from regard.train.signals import Signals

SIDES = ("source", "target")
METRICS = ("bleu", "chrf", "ter")
SHOWN = 7  # validation pairs that take turns as samples


@dataclass(frozen=True, eq=False)
class Translation:
    """A run's sentence pairs, ready to be read."""

    run: Run
    config: EncoderDecoder
    tokenizers: tuple[Tokenizer, Tokenizer]
    cache: PairCache
    valid: list[tuple[str, str]]
    valid_cache: PairCache | None

    usual = "bleu"
    on_cpu = 2048  # a core's caches gain nothing from more, and small steps learn sooner

    @property
    def fingerprint(self) -> str:
        return self.cache.fingerprint

    @property
    def counts(self) -> Mapping[str, int]:
        return self.cache.counts

    @property
    def most(self) -> int:
        return worth_trying(int(self.cache.target_lengths.sum()) + len(self.cache))

    def batches(self, batching: Batching, *, rank: int = 0, world: int = 1) -> Batches:
        return Batches(self.cache, batching, seed=self.run.train.seed, rank=rank, world=world)

    def objective(self, model: nn.Module) -> nn.Module:
        return _objective(model, self.run.train.loss)

    def watch(self, model: nn.Module, machine: Machine, batching: Batching) -> Callable[[Check], Mapping[str, float]] | None:
        """The loss and, where it decides, BLEU of greedy translations."""
        if self.valid_cache is None:
            return None
        sources, references = [source for source, _ in self.valid], [target for _, target in self.valid]
        objective = _objective(model, CrossEntropy(smoothing=0.0))
        batches = Batches(self.valid_cache, batching, seed=self.run.train.seed)
        greedy = replace(self.run.decoding, search=Greedy())
        name = "bleu" if self.tokenizers[1].surface.lossless else "multi-bleu"  # of the text as the model writes it

        def watched(check: Check) -> dict[str, float]:
            total = tokens = 0.0
            for batch in batches.once():
                check()
                with machine.autocast():
                    total += float(objective(batch.to(machine.device)))
                tokens += batch.target_tokens
            found = {"loss": total / max(1.0, tokens)}
            if self.run.train.score in ("usual", "bleu"):
                with machine.autocast():
                    answers = translate_texts(_translator(model), sources, tokenizers=self.tokenizers, decoding=greedy, check=check)
                found["bleu"] = score_translations([name], answers, references, target=self.tokenizers[1])[name]["score"]
            return found

        return watched

    def sample(self, model: nn.Module) -> Callable[[int], Sequence[tuple[str, str]]] | None:
        if not self.valid:
            return None
        texts = [self.valid[place] for place in range(0, len(self.valid), max(1, len(self.valid) // SHOWN))][:SHOWN]
        greedy = replace(self.run.decoding, search=Greedy())

        def sampled(number: int) -> list[tuple[str, str]]:
            source, _ = texts[number % len(texts)]
            found = translate_texts(_translator(model), [source], tokenizers=self.tokenizers, decoding=greedy)
            return [(source, found[0].text)]

        return sampled

    def save(self, folder: Path, model: nn.Module) -> None:
        save_model(
            folder,
            model,
            self.config,
            tokenizers=dict(zip(SIDES, self.tokenizers, strict=True)),
            tables={"decoding": unstructure(self.run.decoding)},
            readme=readme(
                "A translation model",
                learned=f"{len(self.cache):,} sentence pairs",
                corpora=self.run.data.train,
                use="regard translate FOLDER < sentences.txt",
            ),
        )

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        run = self.run
        pairs = [sides for corpus in pairs_only(run.data.test, part="test") for sides in read_pairs(corpus, root=root_of(run.data))]
        if not pairs:
            return {}
        say(f"translating the {len(pairs):,} test sentences")
        with machine.autocast():
            sources = [source for source, _ in pairs]
            answers = translate_texts(_translator(model), sources, tokenizers=self.tokenizers, decoding=run.decoding, check=check)
        texts = [name for name in run.metrics or METRICS if name != "log-perplexity"]
        found = score_translations(texts, answers, [target for _, target in pairs], target=self.tokenizers[1])
        if "log-perplexity" in run.metrics:
            found["log-perplexity"] = self._expected(model, pairs, machine).json()
        return found

    def _expected(self, model: nn.Module, pairs: Sequence[tuple[str, str]], machine: Machine) -> Score:
        """How well the model expects the right translations."""
        ids = [encoded(self.tokenizers, pair, copies=isinstance(model, CopyingTranslator)) for pair in pairs]
        with machine.autocast():
            told = score_pairs(_translator(model).scores, ids, device=machine.device)
        return log_perplexity(
            -sum(one.log_prob for one in told), tokens=sum(one.tokens for one in told), tokenizer=self.tokenizers[1].fingerprint
        )


def open_translation(
    run: Run, config: EncoderDecoder, out: Path, *, ranks: Ranks, signals: Signals, warm: Saved | None = None
) -> Translation:
    """Tokenizers and caches; made by the first rank, read by all."""
    root = root_of(run.data)
    corpora, valid_corpora, _ = (pairs_only(getattr(run.data, part), part=part) for part in ("train", "valid", "test"))

    def made() -> dict[str, Tokenizer]:
        if warm is not None:
            known = as_translator(warm)
            return {"source": known.source, "target": known.target}
        return dict(
            zip(SIDES, train_tokenizers(run.tokenizer, corpora, root=root, filters=run.data.filters, seed=run.train.seed), strict=True)
        )

    source, target = kept(out, SIDES, made, ranks=ranks)
    pair = source, target
    folder = Path(run.data.cache) if run.data.cache else out / "cache"

    def cached(corpora: Sequence[Corpus], sides: tuple[Tokenizer, Tokenizer]) -> PairCache:
        return prepare_pairs(
            corpora,
            sides,
            folder,
            root=root,
            filters=run.data.filters,
            seed=run.train.seed,
            workers=run.data.workers,
            progress=lambda *_: signals.check(),
            lends=not isinstance(config.copy, NoCopy),
        )

    if not ranks.first:
        ranks.wait()
    cache = cached(corpora, pair)
    valid_cache = cached(valid_corpora, (_without_sampling(pair[0]), _without_sampling(pair[1]))) if valid_corpora else None
    if ranks.first:
        ranks.wait()
    if not len(cache):
        raise DataError("no usable pair is left", where="data.train", do="look at the filters, or run `regard check` on the files")
    valid = [sides for corpus in valid_corpora for sides in read_pairs(corpus, root=root)]
    config = replace(config, source_vocabulary=pair[0].size, target_vocabulary=pair[1].size)
    return Translation(run, config, pair, cache, valid, valid_cache)


def pairs_only(corpora: Sequence[object], *, part: str) -> list[Corpus]:
    """These corpora, if all of them hold sentence pairs."""
    mine = [corpus for corpus in corpora if not hasattr(corpus, "pairs")]  # a kind from outside says itself what its pairs are
    only(mine, (Lines, Tsv, Jsonl, Strings, Sections), part=part, reader="a translator")
    return list(corpora)  # type: ignore[arg-type]


def _objective(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    return CopyObjective(model, loss) if isinstance(model, CopyingTranslator) else Objective(model, loss)  # type: ignore[arg-type]


def _translator(model: nn.Module) -> Translator:
    assert isinstance(model, Translator)
    return model


def _without_sampling(tokenizer: Tokenizer) -> Tokenizer:
    return Tokenizer(tokenizer.vocabulary, surface=tokenizer.surface, language=tokenizer.language, tags=tokenizer.tags)
