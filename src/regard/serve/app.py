"""A small server for one's own browser: this machine only, behind an address that nobody can guess, with the headers that keep a page in.

Answers are functions of a request, by method and path; the explorer and the lessons bring theirs.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from regard.errors import RegardError, UsageError

HERE = "127.0.0.1"
MOST = 1 << 20  # bytes of a request's body
WAIT = 30.0  # seconds for a request to arrive


@dataclass(frozen=True)
class Request:
    """What was asked."""

    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    "What the JSON of the body says; None without one."


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    body: bytes
    kind: str
    policy: str = "default-src 'none'"
    "What the browser may do with it."
    status: HTTPStatus = HTTPStatus.OK


Route = Callable[[Request], Answer]
Routes = Mapping[tuple[str, str], Route]  # ("GET", "") is the page itself, ("POST", "trace") lies beside it


def page_answer(text: str, policy: str) -> Answer:
    return Answer(text.encode("utf-8"), "text/html; charset=utf-8", policy)


def json_answer(value: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(json.dumps(value, allow_nan=False).encode("ascii"), "application/json", status=status)


def refusal(what: str, status: HTTPStatus) -> Answer:
    """Every error is JSON, never a page: nothing of what was asked can become markup."""
    return json_answer({"error": what}, status)


class Server(ThreadingHTTPServer):
    """Listens on this machine's own address; `url` is where the page is."""

    daemon_threads = True

    def __init__(self, routes: Routes, *, port: int = 0):
        self.routes, self.token = routes, secrets.token_urlsafe(24)
        try:
            super().__init__((HERE, port), _Handler)
        except OSError as error:
            raise UsageError(f"cannot listen ({error.strerror})", where=f"{HERE}:{port}", do="leave --port out, or take another") from None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which a browser may call: a foreign name that was made to point here is refused."""
        return tuple(f"{name}:{self.server_port}" for name in (HERE, "localhost"))

    @property
    def url(self) -> str:
        return f"http://{HERE}:{self.server_port}/{self.token}/"

    def begin(self) -> threading.Thread:
        """Answer from now on, beside what else is done."""
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        return thread

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: Server  # type: ignore[assignment]
    server_version, sys_version = "regard", ""
    timeout = WAIT

    def do_GET(self) -> None:
        self._send(self._answer("GET"))

    def do_POST(self) -> None:
        self._send(self._answer("POST"))

    def _answer(self, method: str) -> Answer:
        if self.headers.get("Host") not in self.server.hosts:
            return refusal("this name is not served here", HTTPStatus.MISDIRECTED_REQUEST)
        parts = urlsplit(self.path)
        first, _, rest = parts.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(first.encode("utf-8", "replace"), self.server.token.encode()):
            return refusal("the address lacks its key; open the one that was printed", HTTPStatus.FORBIDDEN)
        route = self.server.routes.get((method, rest))
        if route is None:
            return refusal("there is nothing here", HTTPStatus.NOT_FOUND)
        body = None
        if method == "POST":
            origin = self.headers.get("Origin")
            if origin and origin.removeprefix("http://") not in self.server.hosts:
                return refusal("another page asks", HTTPStatus.FORBIDDEN)
            if self.headers.get_content_type() != "application/json":
                return refusal("the body must be JSON", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            length = self.headers.get("Content-Length", "")
            if not length.isascii() or not length.isdigit() or int(length) > MOST:
                return refusal(f"the body's length must be stated, and at most {MOST} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            try:
                body = json.loads(self.rfile.read(int(length)).decode("utf-8"))
            except (ValueError, RecursionError):
                return refusal("the body is not JSON", HTTPStatus.BAD_REQUEST)
        try:
            return route(Request(dict(parse_qsl(parts.query)), body))
        except RegardError as error:
            return refusal(str(error), HTTPStatus.BAD_REQUEST)
        except Exception as error:
            return refusal(f"a fault of regard itself: {type(error).__name__}: {error}", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = {
            "Content-Type": answer.kind,
            "Content-Length": str(len(answer.body)),
            "Content-Security-Policy": answer.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",  # the address is the key
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What Python's server refuses by itself, refused in our way."""
        self.close_connection = True
        self._send(refusal(HTTPStatus(code).phrase, HTTPStatus(code)))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the address is the key, and logs are read by others."""
