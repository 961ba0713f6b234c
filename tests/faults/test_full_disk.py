"""The disk is full, at many sizes of what still fits: one clear line, nothing half-written, and with room again the straight run.

Where nobody may mount a small disk, the system's limit on the size of a file stands for it: its error, EFBIG, is treated alike.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))
import train_toy as toy

import small_run
from regard.data.clean import clean
from regard.models.folder import replace_text, verify
from regard.models.tensors import read_tensors
from regard.train.log import Log, read_log
from small_run import Ended, regard

TORTURE = bool(os.environ.get("REGARD_TORTURE"))
SMALL = {"steps": 20, "save_every": 4, "evaluate_every": 8, "log_every": 1, "sample_every": 0}
STEPS = [f"--train.{name}={n}" for name, n in SMALL.items()]
LIMITS = range(0, 260_000, 2_500) if TORTURE else (0, 3_000, 50_000, 150_000, 250_000)  # bytes of one file
DISKS = range(300, 1600, 12) if TORTURE else (300, 700, 1000, 1300, 1500)  # kB in all


@pytest.fixture(scope="module")
def straight(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("straight") / "run"
    done = regard("train", corpus / "small.toml", *STEPS, "--out", out, "--progress", "none")
    assert done.code == 0, done.error
    return out


def training(*words: object, file_limit: int | None = None) -> Ended:
    """`regard train` in a forked process that may be forbidden to write larger files."""

    def work() -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, before[1]))
        ended = regard("train", *words, "--progress", "none")
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        print(json.dumps(ended))

    (child,) = toy.forked(work)
    assert child.code == 0, child.error
    return Ended(*json.loads(child.out))


def told(ended: Ended) -> None:
    """One line at the end that says what happened and what to do."""
    assert ended.code in (1, 3, 75), ended
    assert "Traceback" not in ended.error and "a fault of regard" not in ended.error
    last = ended.error.splitlines()[-1]
    assert last.startswith("regard: ") and "; " in last
    assert ("--resume" in last) == (ended.code == 75), last


def gone_on_with(run: Path, ended: Ended, corpus: Path, straight: Path) -> None:
    """What is there is whole, and with room again the run comes out as if nothing had happened."""
    assert not list(run.rglob("*.tmp-*")), "drafts were left"
    for manifest in run.rglob("manifest.json"):
        verify(manifest.parent)
    again = ["--resume", run] if ended.code == 75 else [corpus / "small.toml", *STEPS, "--out", run]
    done = training(*again)
    assert done.code == 0, done.error
    for model in ("best", "last"):
        one, other = (read_tensors(folder / model / "model.safetensors") for folder in (run, straight))
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert small_run.log_of(run)[-1] == small_run.log_of(straight)[-1]
    assert (run / "report.json").is_file()


@pytest.mark.parametrize("limit", LIMITS)
def test_no_file_may_grow_beyond_a_limit(limit: int, corpus: Path, straight: Path, tmp_path: Path):
    run = tmp_path / "run"
    ended = training(corpus / "small.toml", *STEPS, "--out", run, file_limit=limit)
    told(ended)
    gone_on_with(run, ended, corpus, straight)


@contextlib.contextmanager
def small_disk(place: Path, *, kilobytes: int) -> Iterator[Path]:
    """A file system in memory of this size."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk may be mounted here ({done.stderr.strip()}); the limit on files above stands for it")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("kilobytes", DISKS)
def test_a_small_disk_runs_full(kilobytes: int, corpus: Path, straight: Path, tmp_path: Path):
    with small_disk(tmp_path / "disk", kilobytes=kilobytes) as disk:
        run = disk / "run"
        ended = training(corpus / "small.toml", *STEPS, "--out", run)
        told(ended)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        gone_on_with(run, ended, corpus, straight)


class Full:
    """os.write, with no room left after so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int):
        self.room, self.write = room, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, file: int, data) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part = bytes(data)[: self.room]
        self.room -= len(part)
        return self.write(file, part)


@pytest.mark.parametrize("room", [0, 1, 500])
def test_an_old_page_stays_until_the_new_one_is_whole(room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "look.html"
    page.write_text("old", "utf-8")
    Full(monkeypatch, room)
    with pytest.raises(OSError, match="No space left"):
        replace_text(page, "new" * 1000)
    monkeypatch.undo()
    assert page.read_text("utf-8") == "old" and list(tmp_path.iterdir()) == [page]
    replace_text(page, "new" * 1000)
    assert page.read_text("utf-8") == "new" * 1000


def test_the_log_waits_for_room(tmp_path: Path):
    def work() -> None:
        log, before = Log(tmp_path / "log.jsonl"), resource.getrlimit(resource.RLIMIT_FSIZE)
        log.begin(after=0)
        for step in range(1, 5):
            resource.setrlimit(resource.RLIMIT_FSIZE, (20 if step in (2, 3) else before[0], before[1]))
            with contextlib.redirect_stderr(said := io.StringIO()):
                log.write({"step": step})
            assert ("a line was not written" in said.getvalue()) == (step in (2, 3))
        log.close()

    (child,) = toy.forked(work)
    assert child.code == 0, child.error
    assert [line["step"] for line in read_log(tmp_path / "log.jsonl")] == [1, 2, 3, 4]


def test_cleaned_files_come_all_or_none(corpus: Path, tmp_path: Path):
    files = [corpus / "train.de", corpus / "train.en"]
    clean(files, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"train.de", "train.en", "report.json"}

    def work() -> None:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before["train.de"]) - 1, limit[1]))
        ended = regard("clean", *files, "--out", tmp_path)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        print(json.dumps(ended))

    (child,) = toy.forked(work)
    ended = Ended(*json.loads(child.out))
    assert ended.code == 1 and ended.error == f"regard: {tmp_path}: File too large; check the path, its permissions and the free space\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
