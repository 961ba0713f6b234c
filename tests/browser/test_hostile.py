"""More than sixty hostile texts in every place where text of data stands: nothing of them runs, and all of them are seen."""

from __future__ import annotations

from pathlib import Path

import pytest

import made_traces
from hostile import HOSTILE

TEXTS = list(HOSTILE)
PAGES = 6  # traces, each with another hostile text as its sentence, answer and model


def hostile_traces(count: int):
    return [
        made_traces.made(
            TEXTS, ("<s>", *TEXTS[:40]), (*TEXTS[:40], "</s>"), layers=1, heads=2, text=text, answer=TEXTS[-place], about=TEXTS[place + 7]
        )
        for place, text in enumerate(TEXTS[:count])
    ]


def nothing_ran(page) -> bool:
    return page.evaluate("window.__pwned === undefined && document.scripts.length === 2 && document.images.length === 0")


def test_there_are_enough_of_them():
    assert len(HOSTILE) >= 80


@pytest.mark.parametrize("view", ["picture", "matrix", "replay"])
def test_in_tokens(watched, written, view):
    page = watched.open(written(*hostile_traces(1)), f"#view={view}&kind=cross&layer=0&heads=0.1&step=39")
    shown = page.locator({"picture": "[data-side=column] bdi", "matrix": ".labels.left bdi", "replay": "#read bdi"}[view])
    if view == "matrix":
        assert shown.all_text_contents() == [HOSTILE[text] for text in TEXTS[:40:2]] + ["</s>"]  # every other label, or they would overlap
    else:
        assert shown.all_text_contents() == [HOSTILE[text] for text in TEXTS]
    if view == "picture":
        for place in range(0, len(TEXTS), 9):
            page.locator("[data-side=column] .token").nth(place).hover()
            assert page.locator("#readout bdi").first.text_content() == HOSTILE[TEXTS[place]]
    assert nothing_ran(page)


def test_in_sentences_answers_and_models(watched, written):
    traces = hostile_traces(PAGES)
    page = watched.open(written(*traces))
    for place, trace in enumerate(traces):
        page.select_option("#sentences", str(place))
        watched.settle(page)
        assert page.locator("#source-text").text_content() == HOSTILE[trace.text]
        assert page.locator("#target-text").text_content() == HOSTILE[trace.answers[0].text]
        assert page.locator("#about").text_content() == f"· {HOSTILE[trace.about['model']]}"
        assert nothing_ran(page)


def test_in_a_notebook(watched, tmp_path: Path):
    cells = "".join(trace._repr_html_() for trace in hostile_traces(2))
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8><title>n</title>{cells}", encoding="utf-8")
    page = watched.open(tmp_path / "notebook.html", ready=False)
    frames = [frame for frame in page.frames if frame is not page.main_frame]
    assert len(frames) == 2
    for frame, text in zip(frames, TEXTS):
        frame.wait_for_selector("body[data-ready]")
        assert frame.locator("#source-text").text_content() == HOSTILE[text]
        assert nothing_ran(frame)
    assert page.evaluate("window.__pwned === undefined && document.scripts.length === 0")
