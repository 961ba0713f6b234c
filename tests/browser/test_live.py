"""The page that a local server gives: the same page, which may also ask for more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import made_traces
from regard.errors import UsageError
from regard.serve.app import Server
from regard.serve.explorer import explorer


@pytest.fixture
def served() -> Iterator[str]:
    def look(text: str):
        if text == "nothing":
            raise UsageError("there is <b>nothing</b> to look at", do="write more")
        return made_traces.made(text=text, seed=7)

    with Server(explorer([made_traces.made()], look=look)) as server:
        server.begin()
        yield server.url
        server.shutdown()


def test_another_sentence(watched, served):
    page = watched.open(served)
    page.fill("#asked", "Noch <i>einer</i>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#source-text:text('Noch')")
    assert page.locator("#source-text").text_content() == "Noch <i>einer</i>"
    assert page.locator("#sentences option").all_text_contents() == ["Der Hund sieht das Haus.", "Noch <i>einer</i>"]
    page.select_option("#sentences", "0")
    watched.settle(page)
    assert page.locator("#source-text").text_content() == "Der Hund sieht das Haus."


def test_what_the_server_refuses_is_told(watched, served):
    page = watched.open(served)
    page.fill("#asked", "nothing")
    page.keyboard.press("Enter")
    page.wait_for_selector("#readout:text('there is <b>nothing</b> to look at; write more')")
    watched.press(page, "ArrowRight")
    assert [text for text in watched.complaints if "400" not in text] == []
    watched.complaints.clear()  # the browser itself notes an answer that is no success


def test_a_file_asks_for_nothing(watched, written):
    assert not watched.open(written(made_traces.made())).locator("#asker").is_visible()
