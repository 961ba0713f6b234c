"""The root of a run's configuration: the parts' own configs, put together, and how preset, file and flags become one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, assert_never

from regard.config.flags import apply
from regard.config.toml import nearest, read_toml, structure
from regard.data.audio import Recordings
from regard.data.batching import Batching
from regard.data.documents import Text
from regard.data.graph import GraphFile
from regard.data.images import Arrays, Folder, Idx, ImageCorpus, Table
from regard.data.labelled import Labelled
from regard.data.listops import ListOps
from regard.data.music import Music
from regard.data.parallel import Corpus, Filters, Jsonl, Lines, Tsv, paths
from regard.data.points import Points
from regard.data.scenes import Captions, Scenes
from regard.data.sections import Sections
from regard.data.strings import Strings
from regard.data.tagged import Tagged
from regard.data.tokenise import TokenizerConfig, Unigram
from regard.decode.translate import Decoding
from regard.errors import UsageError
from regard.evaluate.measure import MetricName
from regard.models.configs import EncoderDecoder, Model
from regard.models.presets import PRESETS, merge
from regard.train.configs import Train

AnyCorpus = Corpus | Text | Labelled | ListOps | Tagged | Captions | Scenes | ImageCorpus | Recordings | GraphFile | Points | Music
EMBEDDED = "embedded"  # as data.root: the corpora inside the package


@dataclass(frozen=True)
class Data:
    """What the run learns from, is watched on, and is scored on at the end: pairs, text, pictures, recordings, ... as its model needs."""

    root: str = "."
    'What paths are relative to, seen from the file itself; "embedded": the corpora inside the package.'
    train: tuple[AnyCorpus, ...] = ()
    "Corpora to learn from."
    valid: tuple[AnyCorpus, ...] = ()
    "Examples that choose the best model while it trains."
    test: tuple[AnyCorpus, ...] = ()
    "Examples that score the finished model, once."
    hold_out: int = 0
    """So many pictures, recordings, labelled texts, pieces of music or last documents (of a text that is one document: last tokens) are
    taken from train to choose the best model, where valid names none."""
    filters: Filters = Filters()
    "Which training pairs are left out."
    cache: str = ""
    "Folder of the tokenised corpus, to share it between runs; empty: beside the run."
    workers: int = 0
    "Processes that tokenise; 0: by the size of the corpus."

    def __post_init__(self):
        if self.hold_out < 0 or self.workers < 0:
            raise UsageError("hold_out and workers cannot be negative", do="take 0 or more")


@dataclass(frozen=True)
class Run:
    """Everything that makes a run what it is; run.toml in its folder holds it, and resuming reads nothing else."""

    preset: str = ""
    "A model of known size, tiny, small, base or big, or gpt3-small to gpt3-175b, over which the keys of [model] are laid."
    data: Data = Data()
    "The corpora."
    tokenizer: TokenizerConfig = field(default_factory=Unigram)
    "How text becomes tokens."
    model: Model = EncoderDecoder()
    "The model."
    batching: Batching = Batching()
    "How pairs become batches."
    train: Train = Train()
    "The training."
    decoding: Decoding = field(default_factory=Decoding)
    "How test sentences are translated, and what the model folder proposes to its users."
    metrics: tuple[MetricName, ...] = ()
    "Scores of the finished model on the test pairs; empty: bleu, chrf and ter (labels and running text have their own)."
    extensions: dict[str, str] = field(default_factory=dict)
    "Files of kinds of one's own that were passed (--extend), each with its hash. The program writes this."


def read_run(path: Path, *, flags: Mapping[str, str] | None = None, data_root: str = "") -> Run:
    """default < preset < file < flag. Paths of the corpora become absolute, so that the run's folder may lie anywhere."""
    return run_of(read_toml(path), path, flags=flags, data_root=data_root)


def run_of(tables: Mapping[str, Any], path: Path, *, flags: Mapping[str, str] | None = None, data_root: str = "") -> Run:
    """The same of tables that were read from this file, and perhaps changed since."""
    flags = dict(flags or {})
    preset = str(flags.pop("preset", tables.get("preset", ""))).lower()
    run = structure(Run, laid_over(tables, preset), where=str(path))
    run = apply(replace(run, preset=preset), flags)
    return with_root(run, data_root or run.data.root, beside=path.parent if not data_root else Path())


def laid_over(tables: Mapping[str, Any], preset: str) -> dict[str, Any]:
    """The tables of a file over those of its preset."""
    if not preset:
        return dict(tables)
    if preset not in PRESETS:
        raise UsageError(f"there is no preset {preset}", do=nearest(preset, PRESETS))
    return merge({"model": PRESETS[preset]}, dict(tables))


def with_root(run: Run, root: str, *, beside: Path) -> Run:
    """The run with an absolute data root (or the embedded one)."""
    if root == EMBEDDED:
        return replace(run, data=replace(run.data, root=EMBEDDED))
    return replace(run, data=replace(run.data, root=str((beside / root).resolve())))


def root_of(data: Data) -> Path:
    """The folder that the corpora's paths are relative to."""
    if data.root == EMBEDDED:
        from regard.data import corpora

        return Path(corpora.__file__).parent
    return Path(data.root)


def check_end(train: Train) -> None:
    """Something ends the run but a signal."""
    if not (train.steps or train.epochs or train.seconds or train.patience):
        raise UsageError("nothing says when the run is over", where="train", do="set steps, epochs, seconds or patience")


def check_files(data: Data) -> None:
    """Every file that the run names is there, before minutes are spent."""
    if not data.train:
        raise UsageError("there is nothing to train on", where="data.train", do="name a corpus: [[data.train]] with a kind and paths")
    for part in ("train", "valid", "test"):
        for corpus in getattr(data, part):
            for path in files_of(corpus, root=root_of(data)):
                folder = isinstance(getattr(corpus, "pictures", corpus), Folder | Recordings | Music)
                if not (path.is_file() or (folder and path.is_dir())):
                    raise UsageError("there is no such file", where=f"data.{part}: {path}", do="check the path, or give --data-root")


def files_of(corpus: AnyCorpus, *, root: Path) -> list[Path]:
    """The files or folders that a corpus needs."""
    match corpus:
        case Lines() | Tsv() | Jsonl() | Strings() | Sections():
            return list(paths(corpus, root=root))
        case Idx():
            return [root / corpus.images, root / corpus.labels]
        case Text() | Labelled() | Tagged() | Captions() | Folder() | Table() | Arrays() | Recordings() | GraphFile() | Music():
            return [root / corpus.path]
        case Scenes():
            return files_of(corpus.pictures, root=root)
        case Points() | ListOps():
            return []
        case _ if hasattr(corpus, "files"):  # a kind from outside
            return list(corpus.files(root))
        case _:
            assert_never(corpus)
