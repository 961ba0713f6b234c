"""The local server: only this machine, only who has the key, only what there is; and errors that are never pages."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from hostile import HOSTILE
from regard.errors import UsageError
from regard.serve.app import MOST, Request, Server, json_answer, page_answer


def echo(request: Request):
    if request.body == "fail":
        raise UsageError("no", do="yes")
    if request.body == "break":
        raise ZeroDivisionError("<b>zero</b>")
    return json_answer({"body": request.body, "query": dict(request.query)})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    routes = {("GET", ""): lambda request: page_answer("<p>here", "default-src 'none'"), ("POST", "echo"): echo}
    with Server(routes) as running:
        running.begin()
        yield running
        running.shutdown()


def ask(server: Server, method: str, path: str, body: bytes | None = None, **headers: str):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    given = {"Host": f"127.0.0.1:{server.server_port}", "Content-Type": "application/json"}
    connection.request(method, path, body, {**given, **{name.replace("_", "-"): value for name, value in headers.items()}})
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def test_the_page_comes_with_its_policy_to_who_has_the_key(server: Server):
    status, headers, body = ask(server, "GET", f"/{server.token}/")
    assert (status, body) == (200, b"<p>here")
    assert headers["Content-Security-Policy"] == "default-src 'none'" and headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert len(server.token) >= 32 and server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"


def test_json_goes_in_and_comes_out(server: Server):
    status, _, body = ask(server, "POST", f"/{server.token}/echo?a=1", b'{"b": "\\u00fc"}')
    assert (status, json.loads(body)) == (200, {"body": {"b": "ü"}, "query": {"a": "1"}})


def test_it_listens_on_this_machine_only(server: Server):
    assert server.server_address[0] == "127.0.0.1"
    with Server({}) as other, pytest.raises(UsageError, match="cannot listen"):
        Server({}, port=other.server_port)


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/", None, {}, 403),
        ("GET", "/wrong/", None, {}, 403),
        ("GET", "/KEY/nothing", None, {}, 404),
        ("GET", "/KEY/../KEY/", None, {}, 404),
        ("GET", "/KEY/", None, {"Host": "rebound.example"}, 421),
        ("GET", "/KEY/", None, {"Host": "127.0.0.1"}, 421),
        ("POST", "/KEY/echo", b"1", {"Origin": "http://other.example"}, 403),
        ("POST", "/KEY/echo", b"1", {"Origin": "null"}, 403),
        ("POST", "/KEY/echo", b"1", {"Content_Type": "text/plain"}, 415),
        ("POST", "/KEY/echo", b"{", {}, 400),
        ("POST", "/KEY/echo", b"\xff", {}, 400),
        ("POST", "/KEY/echo", b"1", {"Content_Length": "-1"}, 413),
        ("POST", "/KEY/echo", b"1", {"Content_Length": str(MOST + 1)}, 413),
        ("POST", "/KEY/echo", b'"fail"', {}, 400),
        ("POST", "/KEY/echo", b'"break"', {}, 500),
        ("DELETE", "/KEY/", None, {}, 501),
    ],
)
def test_all_else_is_refused(server: Server, method: str, path: str, body: bytes | None, headers: dict, status: int):
    found, sent, said = ask(server, method, path.replace("KEY", server.token), body, **headers)
    assert found == status and server.token.encode() not in said
    assert sent["Content-Type"] == "application/json" and json.loads(said)["error"]
    assert sent["Content-Security-Policy"] == "default-src 'none'"


def test_hostile_paths_come_back_as_nothing(server: Server):
    from urllib.parse import quote

    for text in HOSTILE:
        path = quote(text[:2000], errors="replace", safe="/")
        for before in ("/", f"/{server.token}/"):
            status, sent, said = ask(server, "GET", before + path.lstrip("/"))
            assert status in (200, 403, 404) and b"pwned" not in said
            assert (sent["Content-Type"] == "application/json") == (status != 200)


def test_nonsense_does_not_end_it(server: Server):
    for raw in (b"\r\n\r\n", b"GET\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as raw_socket:
            raw_socket.sendall(raw)
    assert ask(server, "GET", f"/{server.token}/")[0] == 200
