"""A real browser with nothing in it, and pages that must ask no network for anything and complain of nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Debian's Chromium, driven by playwright, in a new profile of its own."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.skip(f"there is no browser here (looked for {', '.join(NAMES)}); as root: apt install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (it is in the extra dev)")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield running
        running.close()


class Watched:
    """Pages under watch: what they asked of a network, what they wrote to the console, which errors they threw."""

    def __init__(self, context):
        self.context, self.complaints, self.asked = context, [], []
        self.home = ""  # the address that may be asked: the server of the test
        context.route("**/*", self._asked)

    def open(self, where: str | Path, hash: str = "", *, ready: bool = True):
        """A page from a file or an address, once it is drawn."""
        page = self.context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        url = where.as_uri() if isinstance(where, Path) else where
        if url.startswith("http"):
            self.home = "{0.scheme}://{0.netloc}/".format(urlsplit(url))
        page.goto(url + hash)
        if ready:
            page.wait_for_selector("body[data-ready]")
        return page

    @staticmethod
    def press(page, *keys: str) -> None:
        """Real keys, each drawn before the next."""
        for key in keys:
            page.keyboard.press(key)
            Watched.settle(page)

    @staticmethod
    def settle(page) -> None:
        """Wait until what the address says is what is drawn."""
        for _ in range(400):
            if page.locator("body").get_attribute("data-ready") == urlsplit(page.url).fragment:
                return
            page.wait_for_timeout(5)
        raise AssertionError(f"not drawn: {page.url}")

    def _asked(self, route) -> None:
        url = route.request.url
        if url.startswith("file:") or (self.home and url.startswith(self.home)):
            route.continue_()
        else:
            self.asked.append(url)
            route.abort()


@pytest.fixture
def watched(browser) -> Iterator[Watched]:
    """Opens pages; at the end none of them may have asked a network or complained."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(10_000)
    pages = Watched(context)
    yield pages
    context.close()
    assert not pages.asked, "the page asked a network"
    assert not pages.complaints, "the page complained"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Traces as a page in a file."""
    from regard.look.page import write_page

    def write(*traces, name: str = "look.html") -> Path:
        write_page(tmp_path / name, traces)
        return tmp_path / name

    return write
