"""`regard look` on a model that was trained a moment ago: pages, figures, traces, the server; and what it says when it cannot."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

import small_run
from regard.look.trace import load
from small_run import regard

TEXT = "Die Katze sieht das Haus."


def given(page: Path) -> dict:
    return json.loads(re.search(r'id="given">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])  # type: ignore[index]


def test_a_page_a_figure_and_a_trace_at_once(trained: Path, tmp_path: Path):
    done = regard("look", trained, TEXT, "--export", tmp_path / "a.html", "--figure", tmp_path / "a.svg", "--save", tmp_path / "a.trace")
    assert done.code == 0, done.error
    assert [line.split(":")[0] for line in done.out.splitlines()] == [str(tmp_path / name) for name in ("a.trace", "a.svg", "a.html")]
    trace = load(tmp_path / "a.trace")
    assert trace.text == TEXT and {one.kind for one in trace.maps} == {"enc-self", "cross", "dec-self"}
    assert regard("translate", trained, stdin=f"{TEXT}\n").out.strip() == trace.answers[0].text  # the page shows what translate says
    assert given(tmp_path / "a.html")["traces"][0]["text"] == TEXT
    again = regard("look", "--trace", tmp_path / "a.trace", "--export", tmp_path / "b.html")
    assert again.code == 0 and (tmp_path / "b.html").read_bytes() == (tmp_path / "a.html").read_bytes()


def test_a_page_of_several_sentences(trained: Path, tmp_path: Path):
    lines = "Der Hund hört Musik.\n\nDas Kind mag Brot.\r\n"
    assert regard("look", trained, "--export", tmp_path / "a.html", stdin=lines).code == 0
    assert [trace["text"] for trace in given(tmp_path / "a.html")["traces"]] == ["Der Hund hört Musik.", "Das Kind mag Brot."]


def test_only_what_is_asked_for_is_recorded(trained: Path, tmp_path: Path):
    done = regard("look", trained, TEXT, "--save", tmp_path / "a.trace", "--layer", 0, "--heads", "1", "--kind", "encoder")
    assert done.code == 0, done.error
    assert [(one.kind, one.layer, one.heads) for one in load(tmp_path / "a.trace").maps] == [("enc-self", 0, (1,))]


def test_from_the_decoder_s_vector_to_the_word(trained: Path):
    """The walk of the last word: its vectors, whom it looks at on both sides, and what it expects, which is what the page shows."""
    told = json.loads(regard("look", trained, TEXT, "--walk", "1", "--json").out)
    stages = {stage["name"]: stage for stage in told["stages"]}
    assert list(stages)[:3] == ["target.token", "target.position", "target.sum"] and list(stages)[-1] == "decoder.states"
    assert len(stages["decoder.0.cross.weights"]["columns"]) > len(stages["decoder.0.own.weights"]["columns"]) - 9
    assert stages["decoder.0.own.mask"]["values"][0][:3] == [0.0, 0.0, None]  # the second word sees two
    following = json.loads(regard("look", trained, TEXT, "--table", "next", "--json").out)[1]
    assert [one["id"] for one in told["next"]] == [one["id"] for one in following["top"]]
    expected = [one["log_prob"] for one in following["top"]]
    assert [one["log_prob"] for one in told["next"]] == pytest.approx(expected, abs=1e-4)
    encoder = json.loads(regard("look", trained, TEXT, "--walk", "0", "--kind", "encoder", "--json").out)
    assert encoder["next"] == [] and "source.sum" in {stage["name"] for stage in encoder["stages"]}
    form = regard("look", trained, TEXT, "--table", "form", "--kind", "cross", "--heads", "1").out
    assert "B = W_Q W_K^T: 32 x 32, rank 16" in form


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["MODEL"], "there is no text to look at"),
        (["MODEL", "  "], "there is no text to look at"),
        ([], "there is nothing to look at"),
        (["MODEL", TEXT, "--figure", "a.svg", "--layer", "7"], "there is no layer 7; they are numbered from 0 to 0"),
        (["MODEL", TEXT, "--figure", "a.svg", "--heads", "5"], "there is no head 5; they are numbered from 0 to 1"),
        (["MODEL", TEXT, "--figure", "a.svg", "--heads", "x"], "--heads: 'x' does not name heads"),
        (["MODEL", TEXT, "--figure", "a.gif"], "a.gif: a figure is written as .svg, .pdf, .png"),
        (["MODEL", TEXT, "--layer", "-1", "--export", "a.html"], "--layer -1 is negative"),
        (["MODEL", "Brot\nMusik", "--save", "a.trace"], "--save takes one sentence, not 2"),
        (["--trace", "nowhere.trace"], "nowhere.trace: there is no such file"),
        (["nowhere", TEXT], "nowhere: there is no such folder"),
        (["MODEL", TEXT, "--export", "no/such/folder.html"], "folder.html: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str):
    monkeypatch.chdir(tmp_path)
    done = regard("look", *(str(trained) if word == "MODEL" else word for word in words))
    assert done.code in (1, 2, 3, 4) and says in done.error
    assert done.error.count("\n") == 1 and not list(tmp_path.iterdir())


def test_the_page_is_served_until_it_is_stopped(trained: Path):
    command = small_run.command("look", trained, TEXT, "--no-browser")
    with subprocess.Popen(command, env=small_run.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout
        url = running.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", url)
        page = urllib.request.urlopen(url, timeout=20).read().decode()
        assert "Katze" in page
        body = json.dumps({"text": "Der Mann mag Brot."}).encode()
        request = urllib.request.Request(url + "trace", body, {"Content-Type": "application/json"})
        more = json.loads(urllib.request.urlopen(request, timeout=20).read())
        assert more["trace"]["text"] == "Der Mann mag Brot." and more["opening"]["kind"] == "cross"
        os.kill(running.pid, signal.SIGINT)
        _, error = running.communicate(timeout=20)
    assert running.returncode == 0 and "Traceback" not in error
