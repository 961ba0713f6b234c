"""Traces as values and as files: what goes in comes out, and what is broken says so."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from pathlib import Path

import numpy as np
import pytest

from hostile import HOSTILE
from made_traces import drawn, made
from regard.errors import DataError, UsageError
from regard.look.trace import as_json, compress, expand, load, save


def test_a_file_holds_all_that_was_seen(tmp_path: Path):
    trace = made()
    save(trace, tmp_path / "a.trace")
    assert load(tmp_path / "a.trace") == trace
    assert trace.weights("cross", 2).shape == (5, 5, 7)


def test_any_text_survives_the_file(tmp_path: Path):
    words = list(HOSTILE)
    trace = made(words, ["<s>"], ["</s>"], layers=1, heads=2)
    save(trace, tmp_path / "a.trace")
    assert [token.text for token in load(tmp_path / "a.trace").source] == words


def test_bytes_keep_their_promise():
    weights = np.concatenate([np.linspace(0, 1, 4001), np.geomspace(1e-9, 1, 4001)])
    back = expand(compress(weights[None, None]))[0, 0]
    assert np.abs(np.sqrt(back) - np.sqrt(weights)).max() <= 0.5 / 255 + 1e-7
    assert np.abs(back - weights).max() < 1 / 255
    assert back[[0, 4000]].tolist() == [0, 1]


def test_a_long_trace_is_small(tmp_path: Path):
    words = [f"w{place}" for place in range(128)]
    trace = made(words, words, words, layers=6, heads=8)
    from regard.look.page import write_page

    write_page(tmp_path / "look.html", [trace])
    assert (tmp_path / "look.html").stat().st_size <= 2_500_000


def test_what_was_not_recorded_is_told():
    trace = made(layers=2)
    with pytest.raises(UsageError, match="layer 7 of cross was not recorded; choose one of: 0, 1"):
        trace.weights("cross", 7)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda value: value.pop("format"), "is not a trace"),
        (lambda value: value.update(version=99), "is a trace of version 99"),
        (lambda value: value.update(version=True), "is a trace of version True"),
        (lambda value: value.pop("steps"), "steps"),
        (lambda value: value.update(more=1), "more"),
        (lambda value: value["steps"].pop(), "4 steps for 5 target tokens"),
        (lambda value: value["source"].pop(), "does not hold 5 heads of 6 x 6 weights"),
        (lambda value: value["answers"].clear(), "needs tokens, of a source or of a target, and an answer"),
        (lambda value: value["maps"].append(value["maps"][0]), "two maps are of the same kind and layer"),
        (lambda value: value["maps"][0].update(weights="!!"), "cannot be unpacked"),
        (lambda value: value["maps"][0].update(heads=[0, 0, 1, 2, 3]), "wrong numbers of layer or heads"),
        (lambda value: value["maps"][0].update(layer=-1), "wrong numbers of layer or heads"),
        (lambda value: value["maps"][0].update(layer="0"), "layer"),
        (lambda value: value["maps"][0].update(kind="both"), "kind"),
        (lambda value: value["answers"][0].update(score=10**400), ""),
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path: Path, change, says: str):
    value = as_json(made())
    change(value)
    (tmp_path / "a.trace").write_text(json.dumps(value))
    with pytest.raises(DataError, match=r"a\.trace") as error:
        load(tmp_path / "a.trace")
    assert says in str(error.value) and "\n" not in str(error.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path):
    value = as_json(made())
    value["maps"][0]["weights"] = b64encode(zlib.compress(bytes(50_000_000), 9)).decode()
    assert len(b64decode(value["maps"][0]["weights"])) < 60_000
    (tmp_path / "a.trace").write_text(json.dumps(value))
    with pytest.raises(DataError, match="does not hold"):
        load(tmp_path / "a.trace")


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff\xfe", b'{"format": NaN}', b"[" * 100_000, b"null"])
def test_what_is_no_trace_is_told(tmp_path: Path, raw: bytes):
    (tmp_path / "a.trace").write_bytes(raw)
    with pytest.raises(DataError, match="regard look MODEL TEXT --save FILE"):
        load(tmp_path / "a.trace")
    with pytest.raises(DataError, match="there is no such file"):
        load(tmp_path / "b.trace")


def test_weights_are_the_drawn_ones():
    trace = made(seed=3)
    exact = drawn("dec-self", 1, heads=5, shape=(5, 5), seed=3)
    assert np.abs(trace.weights("dec-self", 1) - exact).max() < 1 / 255
