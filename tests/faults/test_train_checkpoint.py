"""Checkpoints under faults: the order of what is written, a disk that fails at every point in turn, rot, and death while saving."""

import errno
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from regard.data.batching import Cursor
from regard.errors import Interrupted, ModelError, UsageError
from regard.models import folder
from regard.models.tensors import read_tensors, restore, state_of, written
from regard.train.checkpoint import Checkpoints, Origin, Snapshot, read
from regard.train.progress import Progress

TORTURE = bool(os.environ.get("REGARD_TORTURE"))
FAULTS = [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT, errno.EFBIG]


def snapshot(step, *, score=None):
    generator = torch.Generator().manual_seed(step)
    tensors = {
        "model": {"weight": torch.randn(13, 7, generator=generator), "bias": torch.randn(7, generator=generator).bfloat16()},
        "optimiser": {"weight.exp_avg": torch.randn(13, 7, generator=generator), "weight.step": torch.tensor(float(step))},
    }
    scores = {} if score is None else {"scores": [score], "scored": [step]}
    return Snapshot(tensors, Progress(step=step, cursor=Cursor(1, step), **scores), Origin("c", "d"))


def checkpoints(place, **options):
    said = []
    kept = Checkpoints(place, warn=said.append, **options)
    return kept, said


def same(one, other):
    assert one.progress == other.progress and one.origin == other.origin
    assert {n: set(t) for n, t in one.tensors.items()} == {n: set(t) for n, t in other.tensors.items()}
    for name, tensors in one.tensors.items():
        for key, tensor in tensors.items():
            assert tensor.dtype == other.tensors[name][key].dtype and torch.equal(tensor, other.tensors[name][key])


class Calls:
    """Records what is asked of the system, in words, and may answer the nth call with an error."""

    def __init__(self, monkeypatch, fail_at=0, error=errno.EIO):
        self.seen, self.fail_at, self.error, self.names = [], fail_at, error, {}
        for name in ("mkdir", "open", "write", "fsync", "rename", "close"):
            monkeypatch.setattr(os, name, self._watch(name, getattr(os, name)))

    def _watch(self, name, real):
        def call(*arguments, **options):
            if name == "close":
                self.names.pop(arguments[0], None)
                return real(*arguments, **options)
            inside = self._name(arguments[0])
            if inside is None or (name, inside) == ("mkdir", "."):  # there already
                return real(*arguments, **options)
            what = f"{name} {inside}" + (f" -> {self._name(arguments[1])}" if name == "rename" else "")
            self.seen.append(what)
            if len(self.seen) == self.fail_at:
                raise OSError(self.error, os.strerror(self.error), str(arguments[0]))
            result = real(*arguments, **options)
            if name == "open":
                self.names[result] = inside
            return result

        return call

    def _name(self, target):
        if isinstance(target, int):
            return self.names.get(target)
        text = str(target)
        return text.split("/checkpoints", 1)[1].lstrip("/").replace(str(os.getpid()), "PID") or "." if "/checkpoints" in text else None


def test_the_order_of_calls_is_the_protocol(tmp_path, monkeypatch):
    place = tmp_path / "checkpoints"
    place.mkdir()
    calls = Calls(monkeypatch)
    assert checkpoints(place)[0].save(snapshot(3))
    monkeypatch.undo()
    draft = "step-3.tmp-PID"
    expected = [f"mkdir {draft}"]
    for name in ("model.safetensors", "optimiser.safetensors", "state.json", "manifest.json"):
        writes = {"model.safetensors": 3, "optimiser.safetensors": 3}.get(name, 1)
        expected += [f"open {draft}/{name}", *[f"write {draft}/{name}"] * writes, f"fsync {draft}/{name}"]
    expected += [f"open {draft}", f"fsync {draft}", f"rename {draft} -> step-3", "open .", "fsync ."]
    expected += [
        "open latest.tmp-PID",
        "write latest.tmp-PID",
        "fsync latest.tmp-PID",
        "rename latest.tmp-PID -> latest",
        "open .",
        "fsync .",
    ]
    assert calls.seen == expected


def test_what_was_saved_is_loaded(tmp_path):
    kept, said = checkpoints(tmp_path / "checkpoints")
    assert kept.load() is None
    assert kept.save(snapshot(3)) and kept.save(snapshot(7))
    same(kept.load(), snapshot(7))
    assert (tmp_path / "checkpoints" / "latest").read_text() == "step-7\n"
    assert not said


def test_other_tools_can_read_the_tensors(tmp_path):
    from safetensors.torch import load_file

    tensors = {"odd": torch.arange(3, dtype=torch.uint8), "wide": torch.randn(5, 3).T, "empty": torch.zeros(0), "one": torch.tensor(2**40)}
    (tmp_path / "t.safetensors").write_bytes(b"".join(written(tensors)))
    for loaded in (load_file(tmp_path / "t.safetensors"), read_tensors(tmp_path / "t.safetensors")):
        assert loaded.keys() == tensors.keys()
        assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def calls_of_a_save(tmp_path, monkeypatch):
    place = tmp_path / "counted" / "checkpoints"
    kept, _ = checkpoints(place)
    for step in (1, 2):
        kept.save(snapshot(step))
    with monkeypatch.context() as patch:
        calls = Calls(patch)
        kept.save(snapshot(3))
    return len(calls.seen)


@pytest.mark.parametrize("error", FAULTS, ids=[errno.errorcode[e] for e in FAULTS])
def test_a_disk_that_fails_at_any_point_costs_nothing_that_was_there(tmp_path, monkeypatch, error):
    points = calls_of_a_save(tmp_path, monkeypatch)
    assert points > 20
    for point in range(1, points + 1):
        place = tmp_path / f"{point}" / "checkpoints"
        kept, said = checkpoints(place)
        for step in (1, 2):
            assert kept.save(snapshot(step))
        with monkeypatch.context() as patch:
            calls = Calls(patch, fail_at=point, error=error)
            saved = kept.save(snapshot(3))
        assert len(calls.seen) >= point
        if calls.seen[point - 1] == "open step-1":  # pruning can wait
            assert saved and not said
        else:
            assert not saved and len(said) == 1 and "training goes on" in said[0], f"point {point}: {calls.seen[point - 1]}"
        loaded = checkpoints(place)[0].load()
        same(loaded, snapshot(loaded.progress.step))
        assert loaded.progress.step in (2, 3)
        assert kept.save(snapshot(3))  # the disk works again
        same(checkpoints(place)[0].load(), snapshot(3))
        assert sorted(os.listdir(place)) == ["latest", "step-2", "step-3"]


def test_a_disk_that_stays_full_ends_the_run_with_75(tmp_path, monkeypatch):
    kept, said = checkpoints(tmp_path / "checkpoints", retries=3)
    kept.save(snapshot(1))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6, 100))
    assert not kept.save(snapshot(2)) and not kept.save(snapshot(3))
    with pytest.raises(Interrupted, match="3 times in a row: the disk is full") as info:
        kept.save(snapshot(4))
    assert info.value.code == 75 and len(said) == 2
    assert kept.load().progress.step == 1


def test_a_real_limit_on_file_size(tmp_path):
    script = (
        "import resource, signal, sys; sys.path.insert(0, sys.argv[2]); import test_train_checkpoint as t; from pathlib import Path;"
        "kept, said = t.checkpoints(Path(sys.argv[1])); kept.save(t.snapshot(1));"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300));"
        "assert not kept.save(t.snapshot(2)); assert 'full' in said[0], said; assert kept.load().progress.step == 1"
    )
    done = run([sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent)])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["model.safetensors", "optimiser.safetensors", "state.json", "manifest.json"])
def test_rot_is_found_named_and_stepped_over(tmp_path, name):
    place = tmp_path / "checkpoints"
    kept, said = checkpoints(place)
    kept.save(snapshot(1))
    kept.save(snapshot(2))
    path = place / "step-2" / name
    good, chance = path.read_bytes(), random.Random(7)
    for round_ in range(2500 if TORTURE else 60):
        path.write_bytes(rotten(good, chance, round_ % 4))
        said.clear()
        loaded = kept.load()
        same(loaded, snapshot(1))
        assert len(said) == 1 and str(path) in said[0]
    path.write_bytes(good)
    same(kept.load(), snapshot(2))


def rotten(good, chance, kind):
    place = chance.randrange(len(good))
    match kind:
        case 0:
            return good[:place] + bytes([good[place] ^ (1 << chance.randrange(8))]) + good[place + 1 :]
        case 1:
            return good[:place]
        case 2:
            end = chance.randrange(place, len(good)) + 1
            zeroed = good[:place] + bytes(end - place) + good[end:]
            return zeroed if zeroed != good else good + b"\0"
        case _:
            return good + bytes(chance.randrange(256) for _ in range(1 + chance.randrange(40)))


def test_a_missing_file_is_rot(tmp_path):
    kept, said = checkpoints(tmp_path)
    kept.save(snapshot(1))
    kept.save(snapshot(2))
    (tmp_path / "step-2" / "optimiser.safetensors").unlink()
    assert kept.load().progress.step == 1
    assert "optimiser.safetensors" in said[0]


def test_no_sound_checkpoint_is_an_error_with_every_reason(tmp_path):
    kept, _ = checkpoints(tmp_path)
    kept.save(snapshot(1))
    kept.save(snapshot(2))
    for step in (1, 2):
        (tmp_path / f"step-{step}" / "state.json").write_text("{}")
    with pytest.raises(ModelError, match=r"step-2/state.json.*step-1/state.json") as info:
        kept.load()
    assert info.value.code == 4


def test_a_rotten_checkpoint_does_not_count_as_kept(tmp_path):
    kept, said = checkpoints(tmp_path)
    for step in (1, 2, 3):
        kept.save(snapshot(step))
    assert kept.steps() == [2, 3]
    (tmp_path / "step-3" / "model.safetensors").write_bytes(b"gone")
    kept.save(snapshot(4))
    assert {2, 4} <= set(kept.steps())  # two sound ones, though 3 is newer than 2
    assert any("step-3" in text for text in said)


def test_the_best_is_kept_besides_the_newest(tmp_path):
    kept, _ = checkpoints(tmp_path, keep=2, keep_best=1)
    for step, score in ((1, 0.1), (2, 0.9), (3, 0.4), (4, None), (5, 0.2)):
        kept.save(snapshot(step, score=score))
    assert kept.steps() == [2, 4, 5]
    with pytest.raises(UsageError, match="fewer than two"):
        Checkpoints(tmp_path, keep=1)


def test_a_damaged_folder_in_the_way_is_moved_aside_and_a_sound_one_stays(tmp_path):
    kept, _ = checkpoints(tmp_path)
    kept.save(snapshot(2))
    (tmp_path / "step-2" / "model.safetensors").write_bytes(b"?")
    kept.save(snapshot(2))
    same(read(tmp_path / "step-2"), snapshot(2))
    made = (tmp_path / "step-2" / "state.json").stat().st_mtime_ns
    kept.save(snapshot(2))
    assert (tmp_path / "step-2" / "state.json").stat().st_mtime_ns == made
    assert sorted(os.listdir(tmp_path)) == ["latest", "step-2"]


def test_leftovers_of_the_dead_are_swept_and_those_of_the_living_left(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    living = subprocess.Popen(["sleep", "30"])
    try:
        for process in (dead.pid, living.pid, os.getpid()):
            (tmp_path / f"step-9.tmp-{process}").mkdir()
        (tmp_path / f"best.old-{dead.pid}").mkdir()
        assert checkpoints(tmp_path)[0].save(snapshot(3))
        assert sorted(os.listdir(tmp_path)) == ["best", "latest", "step-3", f"step-9.tmp-{living.pid}"]
    finally:
        living.kill()
        living.wait()


def test_modes_follow_the_umask_and_the_file_replaced(tmp_path):
    before = os.umask(0o027)
    try:
        kept, _ = checkpoints(tmp_path / "c")
        kept.save(snapshot(1))
        assert stat.S_IMODE((tmp_path / "c/step-1/model.safetensors").stat().st_mode) == 0o640
        (tmp_path / "c/latest").chmod(0o664)
        kept.save(snapshot(2))
        assert stat.S_IMODE((tmp_path / "c/latest").stat().st_mode) == 0o664
    finally:
        os.umask(before)


def test_nan_is_no_json_and_a_path_no_file_name(tmp_path):
    (tmp_path / "n.json").write_text('{"score": NaN}')
    with pytest.raises(ModelError, match="NaN"):
        folder.read_json(tmp_path / "n.json")
    listed = {"../n.json": {"bytes": 1, "sha256": ""}}
    (tmp_path / "manifest.json").write_bytes(folder._signed({"format": 1, "files": listed}))
    with pytest.raises(ModelError, match="outside"):
        folder.verify(tmp_path)


def test_a_huge_header_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ModelError, match="header"):
        read_tensors(path)


def test_tensors_of_another_model_are_refused_by_name():
    model = torch.nn.Linear(3, 2)
    state = {name: tensor.clone() for name, tensor in state_of(model).items()}
    for wrong, words in (
        ({"weight": state["weight"]}, "bias is missing"),
        (state | {"extra": state["bias"]}, "extra is not of this model"),
        (state | {"bias": torch.zeros(3)}, r"bias has the shape \(3,\) and not \(2,\)"),
    ):
        with pytest.raises(ModelError, match=words):
            restore(model, wrong, where="here")


SAVE_FOR_EVER = """
import sys, torch; sys.path.insert(0, sys.argv[2]); import test_train_checkpoint as t; from pathlib import Path
torch.set_num_threads(1)
kept, said = t.checkpoints(Path(sys.argv[1])); found = kept.load()
step = found.progress.step if found else 0
print("ready", flush=True)
while True:
    step += 1
    snapshot = t.snapshot(step)
    snapshot.tensors["model"]["large"] = torch.full((200_000,), float(step))
    assert kept.save(snapshot), said
    print(step, flush=True)
"""


def test_death_while_saving_loses_at_most_that_save(tmp_path):
    """A handful of kills at random moments; `make torture` does hundreds."""
    chance, kills = random.Random(3), 500 if TORTURE else 6
    command = [sys.executable, "-c", SAVE_FOR_EVER, str(tmp_path), str(Path(__file__).parent)]
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        assert process.stdout and process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.0, 0.2))
        process.send_signal(signal.SIGKILL)
        printed = process.stdout.read().split()
        process.wait()
        kept, said = checkpoints(tmp_path)
        found = kept.load()
        last = int(printed[-1]) if printed else 0
        if last:
            assert found.progress.step in (last, last + 1) and not said
            assert torch.equal(found.tensors["model"]["large"], torch.full((200_000,), float(found.progress.step)))
    kept, _ = checkpoints(tmp_path)
    assert kept.save(snapshot(10**6))
    assert not list(tmp_path.glob("*tmp*"))


def environment():
    return os.environ | {"PYTHONPATH": str(Path(folder.__file__).parents[2]), "OMP_NUM_THREADS": "1"}


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
