"""Bad input through the real command line: one clear line that says what, where and what to do, the documented code, and nothing lost."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import small_run
from hostile import HOSTILE
from regard.cli import EXIT_CODES
from regard.errors import Interrupted
from small_run import regard

OK, FAILURE, USAGE, DATA, MODEL = 0, 1, 2, 3, 4


class Case(NamedTuple):
    """A command, its exit code, and the last line that it says to people; * stands for anything."""

    command: str
    code: int
    says: str
    out: int = 0  # lines of output


CASES = {  # `run` is a run folder; the other files and folders are made in `bench`
    # what is to be trained
    "no recipe": Case("train", USAGE, "nothing to train; name a recipe (*), a TOML file, or give --source and --target"),
    "unknown recipe": Case("train nosuch", USAGE, "there is no recipe nosuch; choose one (known: *)"),
    "no TOML file": Case("train no.toml", USAGE, "no.toml: there is no such file; check the path, or see `regard recipes`"),
    "wrong key": Case("train key.toml", USAGE, "key.toml: train.stpes is not a key of Train; did you mean steps? (known: *)"),
    "wrong type": Case("train type.toml", USAGE, 'type.toml: train.steps must be an integer, not the string "2"'),
    "wrong kind": Case(
        "train kind.toml", USAGE, 'kind.toml: tokenizer has no kind the string "unigramm"; did you mean unigram? (known: *)'
    ),
    "not TOML": Case("train syntax.toml", USAGE, "syntax.toml:*: is not TOML: Expected ']' at the end of a table declaration *"),
    "TOML in Latin-1": Case("train latin.toml", USAGE, "latin.toml: cannot be read (no UTF-8 at byte 6); save it as UTF-8"),
    "a size that does not divide": Case("train heads.toml", USAGE, "encoder: d_model 32 does not divide into 5 heads; choose a divisor, *"),
    "no end": Case("train endless.toml", USAGE, "train: nothing says when the run is over; set steps, epochs, seconds or patience"),
    "negative number": Case("train fine.toml --train.steps -3", USAGE, "train: steps = -3 makes no sense; take 0 or more"),
    "nothing to accumulate": Case("train fine.toml --train.accumulate 0", USAGE, "train: accumulate = 0 makes no sense; take 1 or more"),
    "dropout of more than all": Case(
        "train fine.toml --model.encoder.dropout 1.5", USAGE, "--model.encoder.dropout = 1.5 makes no sense; it is a share: *"
    ),
    "unknown metric": Case(
        "train metric.toml", USAGE, 'metric.toml: metrics[0] cannot be the string "blau"; did you mean bleu? (known: *)'
    ),
    "unknown setting": Case("train fine.toml --train.stpes 3", USAGE, "--train.stpes is not a setting; did you mean train.steps?"),
    "setting of a wrong type": Case("train fine.toml --train.steps x", USAGE, '--train.steps must be an integer, not the string "x"'),
    "setting without value": Case("train fine.toml --train.steps", USAGE, "--train.steps: its value is missing; see `regard --help`"),
    "unknown preset": Case("train fine.toml --preset huge", USAGE, "there is no preset huge; choose one (known: *)"),
    "flag mistyped": Case(
        "train fine.toml --frmo run", USAGE, "--frmo is not understood here (did you mean --from?); see `regard train --help`"
    ),
    # what is to be learned from
    "missing file": Case("train nodata.toml", USAGE, "data.train: *nothere.de: there is no such file; check the path, or give --data-root"),
    "unequal counts": Case(
        "train uneven.toml", DATA, "*uneven.de: 165 lines, but *uneven.en has 168; the two files must be aligned line by line"
    ),
    "broken UTF-8": Case(
        "train utf8.toml --data.filters.on_bad_line fail",
        DATA,
        "*utf8.de:5: invalid UTF-8 at byte 4; mend the line, or set on_bad_line = skip",
    ),
    "a 1 MB line": Case(
        "train long.toml --data.filters.on_bad_line fail", DATA, "*long.de:5: longer than 1 MB; mend the line, or set on_bad_line = skip"
    ),
    "empty corpus": Case(
        "train empty.toml", DATA, "*empty.de: no usable pair was found; look at the filters, or run `regard check` on the files"
    ),
    "blank corpus": Case(
        "train blank.toml", DATA, "*blank.de: no usable pair was found; look at the filters, or run `regard check` on the files"
    ),
    "one file": Case("train --source lines", USAGE, "two files are needed; give --source FILE and --target FILE, aligned line by line"),
    "own file missing": Case("train --source lines --target no", USAGE, "*/no: there is no such file; check the path"),
    "own files uneven": Case(
        "train --source three --target lines", DATA, "*three: 3 lines, but *lines has 5; the two files must be aligned *"
    ),
    "own files empty": Case("train --source nothing --target nothing", DATA, "*nothing: no usable pair was found; run `regard check` on *"),
    "own files too small": Case(
        "train --source three --target three", DATA, "10 + 10 pairs cannot be held out: *; hold out fewer, or give *"
    ),
    "UTF-16": Case(
        "train --source utf16 --target lines", DATA, "*utf16: this file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
    ),
    "archive cut short": Case(
        "train --source cut.gz --target lines", DATA, "*cut.gz:1: the archive is damaged or ends early *; fetch the file again"
    ),
    # where it is to be written, and what to go on with
    "a run is there": Case("train fine.toml --out run", USAGE, "run: there is a run in this folder already; go on with --resume run, or *"),
    "own files, a run is there": Case(
        "train --source lines --target lines --out run", USAGE, "run: there is a run in this folder already; *"
    ),
    "a file in the way": Case(
        "train fine.toml --out lines", FAILURE, "lines: File exists; check the path, its permissions and the free space"
    ),
    "no folder": Case(
        "train fine.toml --out lines/run", FAILURE, "lines/run: Not a directory; check the path, its permissions and the free space"
    ),
    "resume nothing": Case("train --resume no", MODEL, "no: is not a run folder (it has no run.toml); give the folder that --out named"),
    "resume what is no run": Case(
        "train --resume folder", MODEL, "folder: is not a run folder (it has no run.toml); give the folder that *"
    ),
    "resume with settings": Case(
        "train --resume run --train.steps 9", USAGE, "--resume goes on with the run as it was begun; leave recipe *"
    ),
    "resume ruins": Case(
        "train --resume ruins", MODEL, "ruins/checkpoints: no checkpoint is sound: *step-120/*damaged*step-100/*; start again *"
    ),
    "resume other settings": Case(
        "train --resume changed", USAGE, "changed/checkpoints: the configuration changed since this run was begun (*); start a new run, *"
    ),
    "warm start from nothing": Case(
        "train fine.toml --from no", MODEL, "no: there is no such folder; check the path: a model is a folder *"
    ),
    # models
    "no model": Case("translate", USAGE, "the following arguments are required: model; see `regard translate --help`"),
    "unknown model": Case(
        "translate no lines", MODEL, "no: there is no such folder; check the path: a model is a folder such as runs/demo/best"
    ),
    "no model folder": Case(
        "translate folder lines", MODEL, "folder: is not a model folder (it has no model.toml); give a folder such as *"
    ),
    "flipped bit": Case(
        "translate flipped lines", MODEL, "flipped/model.safetensors: it is damaged (*); copy the folder again, or export it *"
    ),
    "weights cut short": Case(
        "translate cut lines", MODEL, "cut/model.safetensors: it is damaged (1000 bytes, *); copy the folder again, or *"
    ),
    "weights gone": Case("translate gone lines", MODEL, "gone/model.safetensors: it cannot be read: No such file or directory; copy the *"),
    "manifest gone": Case(
        "score listless --source lines --target lines", MODEL, "listless/manifest.json: it cannot be read: No such *; copy *"
    ),
    "configuration damaged": Case(
        "look reworded Hund", MODEL, "reworded/model.toml: it is damaged (*); copy the folder again, or export it *"
    ),
    "tokenizer gone": Case(
        "evaluate mute --source lines --reference lines", MODEL, "mute/tokenizer.source.model: it cannot be read: *; copy *"
    ),
    "one of several": Case("translate run,no lines", MODEL, "no: there is no such folder; check the path: *"),
    "a damaged one in the mean": Case(
        "average run flipped --to out", MODEL, "flipped/model.safetensors: it is damaged (*); copy the folder *"
    ),
    "a lost checkpoint in the mean": Case(
        "average run/checkpoints/step-7 --to out", MODEL, "*manifest.json: it cannot be read: *; leave it out, *"
    ),
    # what is to be translated, and how
    "no such text": Case("translate run no", DATA, "no: no such file or directory; check the path and the data root"),
    "a folder for a text": Case("translate run folder", DATA, "folder: is a directory; check the path and the data root"),
    "text in UTF-16": Case("translate run utf16", DATA, "utf16: this file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    "text cut short": Case("translate run cut.gz", DATA, "cut.gz:1: the archive is damaged or ends early (EOFError); fetch the file again"),
    "beam of nothing": Case("translate run lines --beam 0", USAGE, "--beam 0 finds nothing; take 1 or more"),
    "beam of letters": Case(
        "translate run lines --beam x", USAGE, "argument --beam: invalid int value: 'x'; see `regard translate --help`"
    ),
    "more answers than beam": Case(
        "translate run lines --n-best 3 --beam 2", USAGE, "beam search: 3 best of a beam of 2; take 1 <= n_best <= size"
    ),
    "no such head": Case(
        "translate run lines --alignment --heads 0:9", USAGE, "no head 0:9 looks at the source; choose another: layers 0 with *"
    ),
    "no heads": Case(
        "translate run lines --heads a", USAGE, "--heads: 'a' does not name heads; write layer:head,layer:head with numbers *"
    ),
    "no threads": Case("translate run lines --threads -1", USAGE, "--threads -1 is negative; take 0 (all cores) or more"),
    "no temperature": Case(
        "translate run lines --sample --temperature 0", USAGE, "sampling: temperature = 0.0 makes no sense; take more *"
    ),
    "too much probability": Case(
        "translate run lines --sample --top-p 2", USAGE, "sampling: top_p = 2.0 makes no sense; take more than 0, *"
    ),
    "negative length": Case("translate run lines --max-length -1", USAGE, "decoding: max_length = -1 is negative; take 0 or more"),
    "prefixes of other lines": Case(
        "translate run lines --prefix three", USAGE, "5 texts and 3 prefixes; give one for each text, empty where *"
    ),
    # scores
    "score without files": Case("score run", USAGE, "the following arguments are required: --source, --target; see `regard score --help`"),
    "score uneven": Case(
        "score run --source lines --target three", DATA, "lines: 5 lines, but three has 3; the two files must be aligned *"
    ),
    "nothing to score": Case(
        "score run --source nothing --target nothing", DATA, "*there are no target tokens; give at least one sentence"
    ),
    "no reference": Case("evaluate run --source lines", USAGE, "the following arguments are required: --reference; see *"),
    "no sources": Case("evaluate run --reference lines", USAGE, "a model needs source sentences to translate; give --source FILE"),
    "model and translations": Case("evaluate run --hypothesis lines --reference lines", USAGE, "give either a model (with --source) or *"),
    "references of other lines": Case(
        "evaluate run --source lines --reference three", DATA, "three: 3 lines beside 5 sources; give line for line"
    ),
    "rivals of other lines": Case(
        "evaluate --hypothesis lines --reference lines --against three", DATA, "three: 3 lines beside 5 hypotheses; give line for line"
    ),
    "no such metric": Case(
        "evaluate --hypothesis lines --reference lines --metric x", USAGE, "there is no metric 'x'; choose from bleu, *"
    ),
    "nowhere to write": Case(
        "evaluate --hypothesis lines --reference lines --output no/x", USAGE, "no/x: there is no such folder to write into; make it, or *"
    ),
    "nothing to evaluate": Case(
        "evaluate --hypothesis nothing --reference nothing", DATA, "there is nothing to score; give at least one line"
    ),
    # the data doctor
    "nothing to check": Case("check", USAGE, "the following arguments are required: FILE; see `regard check --help`"),
    "examples of nothing": Case("check lines --examples -1", USAGE, "--examples -1 shows nothing; take 1 or more"),
    "clean nothing": Case("clean no --out out", DATA, "no: missing file; no such file or directory"),
    "clean into a file": Case("clean lines --out three", FAILURE, "three: File exists; check the path, its permissions and the free space"),
    "clean over itself": Case("clean lines --out .", USAGE, "lines: this would be written over itself; choose another --out"),
    # looking
    "nothing to look at": Case("look", USAGE, "there is nothing to look at; name a model and a text: *"),
    "no such layer": Case("look run Hund --layer 9 --export out", USAGE, "there is no layer 9; they are numbered from 0 to 0"),
    "no trace": Case(
        "look --trace lines --export out", DATA, "lines: is not JSON (*); a trace is made by `regard look MODEL TEXT --save FILE`"
    ),
    "nowhere to draw": Case("look run Hund --export no/x.html", FAILURE, "no/x.html: No such file or directory; check the path, *"),
    # the rest
    "no such verb": Case("nosuch", USAGE, "argument VERB: invalid choice: 'nosuch' (choose from *); see `regard --help`"),
    "a word too many": Case("translate run lines more", USAGE, "more is not understood here; see `regard translate --help`"),
    "nothing to plan": Case("plan nosuch", USAGE, "there is no recipe or preset nosuch; choose one (known: *)"),
    "a demo over other files": Case(
        "demo --out folder", USAGE, "folder: is not empty, and not an earlier demo; choose another folder with --out"
    ),
    # bad lines that do not stop anything: told, and the lines stay aligned
    "bad lines in training": Case(
        "train utf8.toml", OK, "learned from 167 of 168 pairs (left out: invalid UTF-8 1; `regard check FILES` names *"
    ),
    "a long line in training": Case(
        "train long.toml", OK, "learned from 167 of 168 pairs (left out: longer than 1 MB 1; `regard check FILES` *"
    ),
    "a damaged checkpoint": Case(
        "train --resume worn", OK, "skipped a damaged checkpoint: worn/checkpoints/step-120/model.safetensors: it is *"
    ),
    "bad line translated": Case("translate run bad", OK, "bad:5: invalid UTF-8 at byte 4, left empty", out=6),
    "long line translated": Case("translate run longline", OK, "longline:2: longer than 1 MB, left empty", out=3),
    "nothing translated": Case("translate run nothing", OK, "", out=0),
    "bad line scored": Case("score run --source bad --target bad", OK, "bad:5: invalid UTF-8 at byte 4, left empty", out=6),
    "bad line evaluated": Case("evaluate --hypothesis bad --reference bad", OK, "bad:5: invalid UTF-8 at byte 4, left empty", out=36),
    "no such file checked": Case("check no", DATA, "", out=2),
}
CHANGES = {"a damaged checkpoint": ["worn"]}  # what a command is meant to change


def write(folder: Path, name: str, content: str | bytes) -> None:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def bench(corpus: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that can be wrong, and a run that is not."""
    folder = tmp_path_factory.mktemp("bench")
    recipe = re.sub(r'"(train|valid|test)\.', rf'"{corpus}/\1.', small_run.RECIPE)
    recipe = recipe.replace("steps = 120", "steps = 2").replace("evaluate_every = 30", "evaluate_every = 2")
    for name, old, new in (
        ("fine", "", ""),
        ("key", "steps =", "stpes ="),
        ("type", "steps = 2", 'steps = "2"'),
        ("kind", 'kind = "unigram"', 'kind = "unigramm"'),
        ("syntax", "[train]", "[train"),
        ("heads", "heads = 2", "heads = 5"),
        ("endless", "steps = 2\n", ""),
        ("nodata", f"{corpus}/train.de", "nothere.de"),
        ("metric", '["bleu", "chrf"]', '["blau"]'),
    ):
        write(folder, f"{name}.toml", recipe.replace(old, new))
    write(folder, "latin.toml", f"# schön\n{recipe}".encode("latin-1"))

    sources, targets = ([pair[side].encode() for pair in small_run.TRAIN] for side in (0, 1))
    broken, long = list(sources), list(sources)
    broken[4], long[4] = b"sch\xf6n", b"x" * (1 << 20) + b" y"
    corpora = {"uneven": (sources[:-3], targets), "utf8": (broken, targets), "long": (long, targets)}
    corpora |= {"empty": ([], []), "blank": ([b""] * 3, [b""] * 3)}
    for name, sides in corpora.items():
        for lines, language in zip(sides, ("de", "en")):
            write(folder, f"{name}.{language}", b"".join(line + b"\n" for line in lines))
        write(folder, f"{name}.toml", recipe.replace(f"{corpus}/train", name))
    write(folder, "lines", b"\n".join(sources[:5]) + b"\n")
    write(folder, "bad", b"\n".join(broken[:6]) + b"\n")
    write(folder, "longline", "a b c\n" + "wort " * 250_000 + "\nd e f\n")
    write(folder, "three", "a\nb\nc\n")
    write(folder, "nothing", "")
    write(folder, "utf16", "Hund\n".encode("utf-16"))
    write(folder, "cut.gz", gzip.compress(b"\n".join(sources))[:200])

    (folder / "folder").mkdir()
    write(folder, "folder/notes.txt", "mine\n")
    shutil.copytree(trained, folder / "run")
    harm: dict[str, Callable[[Path], object]] = {
        "flipped": lambda model: flip(model / "model.safetensors"),
        "cut": lambda model: os.truncate(model / "model.safetensors", 1000),
        "gone": lambda model: (model / "model.safetensors").unlink(),
        "listless": lambda model: (model / "manifest.json").unlink(),
        "reworded": lambda model: flip(model / "model.toml"),
        "mute": lambda model: (model / "tokenizer.source.model").unlink(),
    }
    for name, how in harm.items():
        shutil.copytree(trained / "best", folder / name)
        how(folder / name)
    for name in ("ruins", "worn", "changed"):
        shutil.copytree(trained, folder / name)
    flip(folder / "worn" / "checkpoints" / "step-120" / "model.safetensors")
    for step in (100, 120):
        flip(folder / "ruins" / "checkpoints" / f"step-{step}" / "model.safetensors")
    changed = (trained / "run.toml").read_text("utf-8").replace("clip = 1.0", "clip = 2.0")
    write(folder, "changed/run.toml", changed)
    return folder


def contents(folder: Path, *, apart: list[str] | tuple[str, ...] = ()) -> dict[str, bytes]:
    """Every file below a folder; `apart`: but those in these folders."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name.split("/")[0] not in apart}


def matches(says: str, line: str) -> bool:
    return re.fullmatch(re.escape(says).replace(r"\*", ".*"), line) is not None


@pytest.mark.parametrize("name", CASES)
def test_one_clear_line_and_nothing_lost(bench: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    case = CASES[name]
    monkeypatch.chdir(bench)
    before = contents(bench)
    words = shlex.split(case.command)
    new = words[0] == "train" and not {"--out", "--resume"} & set(words)
    ended = regard(*words, *(("--out", "out", "--progress", "none") if new else ()))
    assert ended.code == case.code, ended.error
    said = ended.error.splitlines()
    assert "Traceback" not in ended.error and "a fault of regard" not in ended.error
    assert len(ended.out.splitlines()) == case.out, ended.out
    if case.code != OK and not case.out:
        assert len([line for line in said if line.startswith("regard: ")]) == 1
        assert said[-1].startswith("regard: ") and matches(case.says, said[-1].removeprefix("regard: ")), said[-1]
    else:
        assert not case.says or any(matches(case.says, line) for line in said), ended.error
    made = ["out"] if case.code == OK and words[0] == "train" else []
    assert contents(bench, apart=made + CHANGES.get(name, [])) == {
        path: content for path, content in before.items() if path.split("/")[0] not in CHANGES.get(name, [])
    }
    shutil.rmtree(bench / "out", ignore_errors=True)


def test_what_was_mistyped_is_mended_and_given_again(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(bench)
    out = ("--out", tmp_path / "run", "--progress", "none")
    assert regard("train", "heads.toml", *out).code == USAGE and not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    write(tmp_path, "run/notes.txt", "mine\n")
    assert regard("train", "empty.toml", *out).code == DATA
    assert contents(tmp_path / "run") == {"notes.txt": b"mine\n"}
    assert regard("train", "fine.toml", *out).code == OK
    assert (tmp_path / "run" / "notes.txt").is_file() and (tmp_path / "run" / "report.json").is_file()


def test_lines_from_standard_input_are_read_as_from_a_file(bench: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(bench)
    texts = ["Der Hund", "", "a\u2028b\x85c\x0bd", "Der\0Hund", "x " * 600_000, "Brot\r", "ohne Ende"]
    given = b"\xef\xbb\xbf" + "\n".join(texts).encode() + b"\n\xff"
    write(bench, "odd", given)
    by_file, by_pipe = regard("translate", "run", "odd", "--beam", 1), regard("translate", "run", "--beam", 1, stdin=given)
    (bench / "odd").unlink()
    assert (by_file.code, by_pipe.code) == (OK, OK)
    assert by_file.out == by_pipe.out and len(by_pipe.out.split("\n")) == len(texts) + 2
    assert by_pipe.error.splitlines() == [
        "standard input:4: NUL character, left empty",
        "standard input:5: longer than 1 MB, left empty",
        "standard input:8: invalid UTF-8 at byte 1, left empty",
    ]
    assert by_file.error == by_pipe.error.replace("standard input", "odd")


def test_ten_thousand_odd_lines_come_out_as_many_and_in_order(bench: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(bench)
    chance = random.Random(4)
    odd = [text.replace("\n", "").replace("\r", "")[:40].encode("utf-8", "replace") for text in HOSTILE]
    odd += [b"", b" ", b"\xff", b"\xc3(", b"\x0b\x0c\x1c", b"\0", b"|||", b"1 ||| x"]
    odd += [text.encode() for text in ("\u2028", "a\x85b", "\U0001f469\u200d")]
    lines = [b" ".join(chance.choices(odd, k=chance.randrange(1, 3))) for _ in range(10_000)]
    ended = regard("translate", "run", "--beam", 1, "--max-length", 1, "--json", stdin=b"\n".join(lines) + b"\n")
    assert ended.code == OK, ended.error
    answers = [json.loads(line) for line in ended.out.removesuffix("\n").split("\n")]
    told = {int(number): why for number, why in re.findall(r"^standard input:(\d+): (.*), left empty$", ended.error, flags=re.MULTILINE)}
    assert len(answers) == len(lines)
    for number, (line, answer) in enumerate(zip(lines, answers, strict=True), 1):
        broken = b"\0" in line or b"\xff" in line or b"\xc3(" in line
        assert (number in told) == broken
        assert answer["source"] == ("" if broken else line.decode("utf-8"))


def test_a_dash_is_standard_input_wherever_a_text_is_asked_for(bench: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(bench)
    given = (bench / "lines").read_bytes()
    for command in ("score run --source {} --target lines", "score run --source lines --target {}", "translate run {} --beam 1"):
        command += " --json"
        by_file, by_pipe = regard(*command.format("lines").split()), regard(*command.format("-").split(), stdin=given)
        assert (by_pipe.code, by_pipe.out) == (OK, by_file.out) and by_pipe.out.count("\n") == 5
    for command in ("evaluate --hypothesis {} --reference lines", "evaluate run --source lines --reference {}"):
        assert regard(*command.format("-").split(), stdin=given).out == regard(*command.format("lines").split()).out


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (MemoryError(), 5, "out of memory (no details); make the batch or the model smaller"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to"), 5, "out of memory (CUDA out of memory. Tried to); make the batch *"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            5,
            "out of memory (*); make the batch or the model smaller",
        ),
        (Interrupted("stopped by SIGTERM", do="go on with --resume"), 75, "stopped by SIGTERM; go on with --resume"),
        (KeyboardInterrupt(), 130, "stopped"),
        (KeyError("x"), 1, "a fault of regard itself: KeyError: 'x'; run again with `regard --traceback ...` to see where"),
    ],
    ids=["memory", "CUDA", "the CPU's allocator", "a signal", "Ctrl-C", "our own fault"],
)
def test_every_end_has_its_documented_code(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, says: str):
    def fails(*_: object, **__: object):
        raise error

    monkeypatch.setattr("regard.loaded.load_translator", fails)
    ended = regard("translate", "anything")
    assert ended.code == code and matches(f"regard: {says}", ended.error.strip())
    assert re.search(rf"\b{code} ", EXIT_CODES)
    if code == FAILURE:
        with pytest.raises(KeyError):
            regard("--traceback", "translate", "anything")


def process(*words: object, shell: str = "", cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, with redirections of the shell."""
    line = ["bash", "-c", f"{shlex.join(small_run.command(*words))} {shell}; exit ${{PIPESTATUS[0]}}"]
    return subprocess.run(line, cwd=cwd, env=small_run.environment(), capture_output=True, text=True, timeout=60, check=False)


FULL = "regard: standard output: No space left on device; check where the output goes, and the free space there\n"
CLOSED = "regard: standard output: it is closed; check where the output goes, and the free space there\n"
NO_INPUT = "regard: standard input: bad file descriptor; check the path and the data root\n"


@pytest.mark.parametrize(
    ("words", "shell", "code", "out", "error"),
    [
        (["translate", "run"], "<&-", DATA, "", NO_INPUT),
        (["translate", "run", "bad"], "2>&- | tail -n +5 | head -1", OK, "\n", ""),  # no warning runs into the output
        (["check", "bad"], ">&-", FAILURE, "", CLOSED),
        (["check", "bad"], "> /dev/full", FAILURE, "", FULL),
        (["recipes"], "| true", 141, "", ""),
        (["--completion", "bash"], "| true", 141, "", ""),
    ],
    ids=["no stdin", "no stderr", "no stdout", "stdout full", "pipe closed", "completions into a closed pipe"],
)
def test_streams_that_are_closed_full_or_broken(bench: Path, words, shell: str, code: int, out: str, error: str):
    ended = process(*words, shell=shell, cwd=bench)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, out, error)


def test_a_reader_that_has_seen_enough_and_one_who_presses_ctrl_c(bench: Path):
    running = subprocess.Popen(
        small_run.command("translate", "run", "--interactive", "--beam", "1"),
        cwd=bench,
        env=small_run.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdin and running.stdout
    running.stdin.write("Der Hund\n")
    running.stdin.flush()
    assert running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=30)
    assert (running.returncode, error) == (130, "regard: stopped\n")
    ended = process("translate", "run", "--beam", 1, shell="< <(yes Der Hund | head -n 20000) | head -1 > /dev/null", cwd=bench)
    assert (ended.returncode, ended.stderr) == (141, "")
