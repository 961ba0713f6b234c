"""The course in a real browser: from a file and from the server, by day and by night, and what a slider does."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.lessons.written import lesson, page, write
from regard.serve.app import Server
from regard.serve.lessons import course


@pytest.mark.parametrize("from_server", [False, True], ids=["file", "served"])
def test_a_slider_changes_the_picture_and_what_it_says(watched, tmp_path: Path, from_server: bool):
    if from_server:
        with Server(course("soft-look-up", ["soft-look-up"], lambda name: page(name, blanks=False))) as server:
            server.begin()
            slide(watched.open(server.url, ready=False))
            server.shutdown()
    else:
        (path,) = write(tmp_path, lesson("soft-look-up", "html"))
        slide(watched.open(path, ready=False))


def slide(shown) -> None:
    figure = shown.locator("figure.slider").first
    said, picture = figure.locator("output"), figure.locator(".state:visible")
    assert said.text_content() == "0.5" and "temperature 0.5:" in picture.inner_text()
    figure.locator("input").focus()
    shown.keyboard.press("End")
    assert said.text_content() == "0.01" and picture.count() == 1 and "0.01: the answer is 20" in picture.inner_text()
    shown.keyboard.press("Home")
    assert said.text_content() == "5.0" and "temperature 5.0:" in picture.inner_text()


def test_an_answer_is_shown_to_whom_opens_it_and_figures_know_the_night(watched, tmp_path: Path):
    (path,) = write(tmp_path, lesson("soft-look-up", "html"))
    shown = watched.open(path, ready=False)
    answer = shown.locator("details").first
    assert not answer.locator("p").first.is_visible()
    answer.locator("summary").click()
    assert answer.locator("p").first.is_visible()
    colours = []
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        colours.append(
            [shown.locator(f"figure >> {what}").first.evaluate("one => getComputedStyle(one).fill") for what in ("text", "rect")]
        )
    assert colours[0] == ["rgb(31, 35, 40)", "rgb(255, 255, 255)"] and colours[1] == ["rgb(232, 230, 224)", "rgb(25, 28, 35)"]


def test_links_lead_through_the_served_course(watched):
    names = ["soft-look-up", "convexity"]
    with Server(course("soft-look-up", names, lambda name: page(name, blanks=name == "convexity"))) as server:
        server.begin()
        shown = watched.open(server.url, ready=False)
        shown.click("nav >> text=next")
        assert shown.url.endswith("/convexity.html") and shown.locator("h1").count() == 1
        shown.click("nav >> text=all lessons")
        assert shown.locator(".contents li").count() >= 2
        server.shutdown()
