"""The page in a file: what it shows, with real mouse and keyboard, and that every number on it is the model's."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import made_traces
from regard.look.trace import expand, unpack

NAMES = {"enc-self": "Input – Input", "cross": "Input – Output", "dec-self": "Output – Output"}


def words(page, selector: str) -> list[str]:
    return page.locator(f"{selector} bdi").all_text_contents()


def pressed(page, box: str) -> list[str]:
    return page.locator(f"{box} [aria-pressed=true]").all_text_contents()


def test_layers_heads_and_kinds(watched, written):
    page = watched.open(written(made_traces.made()))
    assert words(page, "[data-side=column]") == list(made_traces.SOURCE)
    assert words(page, "[data-side=row]") == list(made_traces.WRITTEN)
    for kind, name in NAMES.items():
        page.click(f"#kinds >> text={name}")
        watched.settle(page)
        source = {"enc-self": made_traces.SOURCE, "cross": made_traces.SOURCE, "dec-self": made_traces.TARGET}[kind]
        assert words(page, "[data-side=column]") == list(source)
    for layer in ("0", "1", "2"):
        page.click(f"#layers [data-value='{layer}']")
        watched.settle(page)
        assert pressed(page, "#layers") == [layer]
    page.click("#heads [data-value='2']", modifiers=[])
    watched.settle(page)
    page.dblclick("#heads [data-value='1']")
    watched.settle(page)
    assert pressed(page, "#heads") == ["1"]
    page.click("#heads [data-value='4']", modifiers=["Shift"])
    watched.settle(page)
    assert pressed(page, "#heads") == ["1", "2", "3", "4"]
    page.click("#heads >> text=all")
    watched.settle(page)
    assert pressed(page, "#heads") == ["0", "1", "2", "3", "4"]


def test_keys(watched, written):
    page = watched.open(written(made_traces.made()), "#kind=cross&layer=0&heads=0")
    watched.press(page, "ArrowRight", "ArrowDown", "ArrowDown")
    assert (pressed(page, "#layers"), pressed(page, "#heads")) == (["1"], ["2"])
    watched.press(page, "ArrowLeft", "ArrowLeft", "ArrowUp", "4")
    assert (pressed(page, "#layers"), pressed(page, "#heads")) == (["2"], ["3"])
    watched.press(page, "0", "a")
    assert (len(pressed(page, "#heads")), pressed(page, "#kinds")) == (5, [NAMES["dec-self"]])
    watched.press(page, "d")
    assert page.locator("#stage .tokens").first.get_attribute("data-side") == "row"
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_the_matrix_tells_the_weights_that_were_recorded(watched, written):
    trace = made_traces.made()
    page = watched.open(written(trace), "#view=matrix&kind=cross&layer=1&heads=0.1.2.3.4")
    weights_HTS = made_traces.drawn("cross", 1, heads=5, shape=(5, 7))
    box = page.locator("#cells").bounding_box()
    for row, column in ((0, 0), (2, 3), (4, 6)):
        page.mouse.move(box["x"] + box["width"] * (column + 0.5) / 7, box["y"] + box["height"] * (row + 0.5) / 5)
        told = [float(text) for text in page.locator("#readout [data-weight]").all_text_contents()]
        off = np.abs(np.sqrt(told) - np.sqrt(weights_HTS[:, row, column]))
        assert off.max() < 0.5 / 255 + 1e-3  # the bytes' bound, and four digits on the page
        assert words(page, "#readout") == [made_traces.WRITTEN[row], made_traces.SOURCE[column]]


def test_a_token_in_hand_shows_whom_it_looks_at(watched, written):
    trace = made_traces.made()
    page = watched.open(written(trace), "#kind=cross&layer=2&heads=3")
    page.hover("[data-side=row] .token >> nth=1")
    weights_S = expand(unpack(trace.find("cross", 2), shape=(5, 7)))[3, 1]
    best = np.argsort(-weights_S)[:5]
    assert words(page, "#readout") == ["dog", *(made_traces.SOURCE[place] for place in best)]
    assert words(page, "#readout .weight") == [made_traces.SOURCE[place] for place in best]
    told = [float(found) for found in re.findall(r"0\.\d+", page.locator("#readout").text_content())]
    assert told == pytest.approx(weights_S[best], abs=1e-4)
    page.click("[data-side=row] .token >> nth=1")
    page.mouse.move(5, 5)
    watched.settle(page)
    assert words(page, "#readout")[0] == "dog"  # kept
    watched.press(page, "Escape")
    assert not words(page, "#readout")


def test_decoding_step_by_step(watched, written):
    trace = made_traces.made()
    page = watched.open(written(trace), "#view=replay&kind=cross&layer=0&heads=0&step=0")
    for place, step in enumerate(trace.steps):
        assert page.locator("#count").text_content() == f"step {place + 1} of 5"
        assert words(page, "#known .coming") == [step.chosen.token.text]
        assert words(page, "#next .chosen") == [step.chosen.token.text]
        seen = page.locator("#known .token:not(.unwritten)").count()
        assert seen == place + 2  # the begin mark, what is written, and the word to come
        total = sum(one.chosen.log_prob for one in trace.steps[: place + 1])
        assert f"log-probability so far {total:.3f}" in page.locator("#readout").text_content()
        weights_S = trace.weights("cross", 0)[0, place]
        told = [float(page.locator("#read .token").nth(at).get_attribute("data-weight")) for at in range(7)]
        assert told == pytest.approx(weights_S, abs=1e-4)
        own_T = trace.weights("dec-self", 0)[0, place]
        told = [float(page.locator("#known .token").nth(at).get_attribute("data-weight")) for at in range(place + 1)]
        assert told == pytest.approx(own_T[: place + 1], abs=1e-4)
        if place < 4:
            page.click("#on")
            watched.settle(page)
    assert page.locator("#on").is_disabled()
    watched.press(page, "Space")  # plays from the beginning
    assert page.locator("#count").text_content() == "step 1 of 5"
    page.wait_for_selector("#count:text('step 2 of 5')")
    watched.press(page, "Space")
    assert words(page, "#answers") == ["The dog sees the", "A dog sees"]


def test_of_models_that_only_read_or_only_write(watched, written):
    """A classifier has no steps to replay; a language model has no source, and its replay shows what it wrote."""
    whole = made_traces.made()
    maps = {kind: tuple(one for one in whole.maps if one.kind == kind) for kind in NAMES}
    reader = replace(whole, target=(), steps=(), maps=maps["enc-self"])
    page = watched.open(written(reader), "#view=replay")
    assert pressed(page, "#views") == ["Picture"] and page.locator("#views button").count() == 2
    assert words(page, "[data-side=row]") == list(made_traces.SOURCE)
    writer = replace(whole, source=(), maps=maps["dec-self"])
    page = watched.open(written(writer), "#view=replay&kind=dec-self&layer=2&heads=1&step=2")
    assert page.locator("#count").text_content() == "step 3 of 5" and page.locator("#read").count() == 0
    assert words(page, "#known .coming") == [writer.steps[2].chosen.token.text]
    own_T = writer.weights("dec-self", 2)[page_head(page), 2]
    told = [float(page.locator("#known .token").nth(at).get_attribute("data-weight")) for at in range(3)]
    assert told == pytest.approx(own_T[:3], abs=1e-4)


def page_head(page) -> int:
    return int(pressed(page, "#heads")[0])


def test_the_address_holds_the_view(watched, written):
    page = watched.open(written(made_traces.made(), made_traces.made(text="Zwei", seed=1)))
    page.select_option("#sentences", "1")
    watched.settle(page)
    watched.press(page, "v", "a", "3", "ArrowRight")
    before = (
        page.url,
        pressed(page, "#heads"),
        pressed(page, "#layers"),
        pressed(page, "#kinds"),
        page.locator("#source-text").text_content(),
    )
    assert before[-1] == "Zwei"
    page.reload()
    page.wait_for_selector("body[data-ready]")
    after = (
        page.url,
        pressed(page, "#heads"),
        pressed(page, "#layers"),
        pressed(page, "#kinds"),
        page.locator("#source-text").text_content(),
    )
    assert after == before


def test_an_address_may_say_anything(watched, written):
    file = written(made_traces.made())
    for hash in (
        "#kind=nonsense&layer=99&heads=77.x",
        "#view=constructor&kind=cross",
        "#sentence=12&lock=row9999&kind=cross&step=4444",
        "#%F0%28",
    ):
        page = watched.open(file, hash)
        assert page.locator("#stage").is_visible() and pressed(page, "#heads")


def test_a_model_s_own_numbers_reach_the_page(watched, written, trained):
    import torch

    import regard
    from regard.nn.tap import record

    model = regard.load(trained, device="cpu")
    trace = model.look("Die Katze sieht das Haus.")
    with record(model.model, "decoder.0.cross.weights") as seen, torch.inference_mode():
        target = [token.id for token in trace.target]
        model.score(["Die Katze sieht das Haus."], [model.target.decode(target[1:])])
    exact_HTS = seen["decoder.0.cross.weights"][0][0, :, : len(target), : len(trace.source)].numpy()
    page = watched.open(written(trace), "#view=matrix&kind=cross&layer=0&heads=0.1")
    box = page.locator("#cells").bounding_box()
    T, S = exact_HTS.shape[1:]
    for row in range(T):
        for column in range(0, S, 2):
            page.mouse.move(box["x"] + box["width"] * (column + 0.5) / S, box["y"] + box["height"] * (row + 0.5) / T)
            told = [float(text) for text in page.locator("#readout [data-weight]").all_text_contents()]
            assert np.abs(np.sqrt(told) - np.sqrt(exact_HTS[:, row, column])).max() < 1 / 255
