"""Recordings from files: WAV by the standard library, other formats by soundfile; in folders, in an archive, or named by a list."""

from __future__ import annotations

import csv
import io
import re
import tarfile
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.images import natural
from regard.data.text import BROKEN
from regard.errors import DataError, UsageError
from regard.nn.spectrum import LogMel, log_mel

SOUNDS = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")
SILENCE = 1e-4  # deviation from the mean, of a full scale of 1: below half a step of 12 bits


@dataclass(frozen=True)
class Recordings:
    """Recordings in a folder or an archive, with what was said in their names or in a list."""

    kind: ClassVar[Literal["recordings"]] = "recordings"
    path: str
    "A folder, or a .tar (plain, .gz, .xz) with files, relative to the data root."
    label: str = ""
    "A regular expression: its first group, found in the file's name without its ending, is the label; empty: the folder's name is."
    only: str = ""
    "A regular expression that the name must match to be read; empty: all are read."
    manifest: str = ""
    "A file inside with a path and a label in each row, parted by a tab; empty: all files there are."
    spelled: tuple[str, ...] = ()
    "label=text for each label that is written in another way, such as 7=seven."

    def __post_init__(self):
        for field in ("label", "only"):
            try:
                groups = re.compile(getattr(self, field)).groups
            except re.error as error:
                raise UsageError(f"{field} is no regular expression: {error}") from None
            if field == "label" and self.label and not groups:
                raise UsageError("label has no group", do="put what is the label into parentheses, as in ^([0-9])_")
        if wrong := [pair for pair in self.spelled if "=" not in pair]:
            raise UsageError(f"spelled holds {wrong[0]}", do="write label=text")


@dataclass(frozen=True, eq=False)
class Speech:
    """All recordings of a corpus as frames, in memory, and what was said in each."""

    frames: tuple[Float[Tensor, "T M"], ...]
    said: tuple[str, ...]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frames)


def read_speech(corpora: Sequence[Recordings], features: LogMel, *, root: str | Path = ".") -> Speech:
    """Every recording of these corpora, as frames."""
    found = [one for corpus in corpora for one in read_recordings(corpus, root=root)]
    frames = tuple(framed(content, features, where=where) for where, _, content in found)
    return Speech(frames, tuple(said for _, said, _ in found), tuple(where for where, _, _ in found))


def labels_of(speech: Speech) -> tuple[str, ...]:
    """All that is said, numbers in their order."""
    return tuple(sorted(set(speech.said), key=natural))


def framed(content: bytes | Path, features: LogMel, *, where: str) -> Float[Tensor, "T M"]:
    """The frames of one recording; one that has none, or nothing to be heard, is an error that names it."""
    samples = read_sound(content, rate=features.rate, where=where)
    if not len(samples):
        raise DataError("the recording is empty", where=where, do="leave it out, or record it again")
    if not features.frames(len(samples)):
        what = f"the recording is too short ({len(samples) / features.rate:.3f} s, less than one window of {features.window} s)"
        raise DataError(what, where=where, do="leave it out, or shorten features.window")
    if float(samples.std(correction=0)) < SILENCE:
        raise DataError("the recording is silent", where=where, do="leave it out, or record it again")
    return log_mel(samples, features)


def read_sound(content: bytes | Path, *, rate: int, where: str) -> Float[Tensor, "N"]:
    """The samples of a recording from -1 to 1, its channels as one. Another rate than this is an error."""
    try:
        data = content if isinstance(content, bytes) else content.read_bytes()
    except OSError as error:
        raise DataError((error.strerror or "cannot be read").lower(), where=where, do="check the path") from None
    if not data:
        raise DataError("the file is empty", where=where, do="leave it out, or record it again")
    samples, own = _wave(data, where=where) if data[:4] == b"RIFF" and data[8:12] == b"WAVE" else _other(data, where=where)
    if own != rate:
        do = f"resample it (sox FILE -r {rate} OUT), or train with features.rate = {own}"
        raise DataError(f"it has {own} samples a second, and the model reads {rate}", where=where, do=do)
    return torch.from_numpy(samples)


def read_recordings(corpus: Recordings, *, root: str | Path = ".") -> Iterator[tuple[str, str, bytes]]:
    """Name, what was said, and the bytes of each recording, in the order of the names."""
    path = Path(root, corpus.path)
    files = _archived(path) if path.is_file() else _in_folder(path)
    names = sorted(name for name in files if name.lower().endswith(SOUNDS) and re.search(corpus.only, Path(name).stem))
    said = _listed(corpus, path, files) if corpus.manifest else {name: _label(corpus, name, path) for name in names}
    spelled = dict(pair.split("=", 1) for pair in corpus.spelled)
    names = [name for name in names if name in said]
    if not names:
        what = "there is no recording in it" + (f" whose name matches {corpus.only}" if corpus.only else "")
        raise DataError(what, where=str(path), do=f"give files that end in {', '.join(SOUNDS)}")
    for name in names:
        content = files[name]
        label = said[name]
        yield f"{path}/{name}", spelled.get(label, label), content if isinstance(content, bytes) else content.read_bytes()


def _wave(data: bytes, *, where: str) -> tuple[np.ndarray, int]:
    """Samples and rate of a WAV file of whole numbers; one of floats is left to soundfile."""
    if data[20:22] not in (b"\1\0", b"\xfe\xff"):
        return _other(data, where=where)
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, width, count, rate = file.getnchannels(), file.getsampwidth(), file.getnframes(), file.getframerate()
            raw = file.readframes(count)
    except (wave.Error, EOFError) as error:
        if data[20:22] == b"\xfe\xff":
            return _other(data, where=where)
        raise DataError(f"the recording is damaged or cut short ({error})", where=where, do="fetch the file again") from None
    if len(raw) != count * channels * width:
        what = f"the recording is cut short: it says {count} samples, but holds {len(raw) // (channels * width)}"
        raise DataError(what, where=where, do="fetch the file again")
    match width:
        case 1:
            samples = (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / 128
        case 2:
            samples = np.frombuffer(raw, "<i2").astype(np.float32) / 2**15
        case 3:
            wide = np.zeros((count * channels, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
            samples = wide.view("<i4")[:, 0].astype(np.float32) / 2**31
        case _:
            samples = np.frombuffer(raw, "<i4").astype(np.float32) / 2**31
    return samples.reshape(-1, channels).mean(1), rate


def _other(data: bytes, *, where: str) -> tuple[np.ndarray, int]:
    try:
        import soundfile  # pyright: ignore[reportMissingImports]
    except ImportError:
        do = 'install it with pip install "regard[audio]", or give WAV files of whole numbers'
        raise UsageError("to read this recording, soundfile is needed", where=where, do=do) from None
    try:
        samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise DataError(f"it is no recording that can be read ({error})", where=where, do="give a WAV or FLAC file") from None
    return samples.mean(1), int(rate)


def _archived(path: Path) -> dict[str, bytes | Path]:
    try:
        with tarfile.open(path) as archive:
            return {member.name: file.read() for member in archive if member.isfile() and (file := archive.extractfile(member))}
    except (tarfile.TarError, OSError, *BROKEN) as error:
        raise DataError(f"the archive is damaged or ends early ({type(error).__name__})", where=str(path), do="fetch it again") from None


def _in_folder(path: Path) -> dict[str, bytes | Path]:
    if not path.is_dir():
        raise DataError("there is no such folder or archive", where=str(path), do="check the path, or give --data-root")
    return {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}


def _label(corpus: Recordings, name: str, path: Path) -> str:
    if not corpus.label:
        return Path(name).parent.name
    found = re.search(corpus.label, Path(name).stem)
    if not found:
        raise DataError(f"no label is found in its name by {corpus.label}", where=f"{path}/{name}", do="mend data's label, or use only")
    return found[1]


def _listed(corpus: Recordings, path: Path, files: dict[str, bytes | Path]) -> dict[str, str]:
    if corpus.manifest not in files:
        raise DataError("there is no such list", where=f"{path}/{corpus.manifest}", do="check data's manifest")
    content = files[corpus.manifest]
    text = (content if isinstance(content, bytes) else content.read_bytes()).decode("utf-8-sig", errors="replace")
    said = {}
    for number, row in enumerate(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE), 1):
        where = f"{path}/{corpus.manifest}:{number}"
        if not row:
            continue
        if len(row) != 2:
            raise DataError("a row is a path, a tab and a label", where=where)
        if row[0] not in files:
            raise DataError(f"there is no recording {row[0]}", where=where)
        said[row[0]] = row[1]
    return said
