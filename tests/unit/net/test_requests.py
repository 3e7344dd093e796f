"""What the client writes: one request in one piece, and nothing that could break it apart."""

import os

import pytest

from dragoman.model.http import HttpRequest
from dragoman.net import NetError, Reach, parse
from dragoman.net.requests import OWN_HEADERS, after_verb, compose
from tests.unit.net.servers import Line, Run, always, client_of, failure, get, serving, soon

WORDS = after_verb(parse("http://name.example:8000/path"))


def written(request: HttpRequest) -> bytes:
    return compose(request, WORDS)


def test_a_request_is_written_to_the_letter() -> None:
    request = HttpRequest(method="POST", url="", headers={b"content-type": b"text/plain", b"x-a": b"b\tc"}, body=b"hi")
    assert written(request) == (
        b"POST /path HTTP/1.1\r\nhost: name.example:8000\r\naccept-encoding: identity\r\n"
        b"content-type: text/plain\r\nx-a: b\tc\r\ncontent-length: 2\r\n\r\nhi"
    )
    assert b"\r\nx-100%b: 5%d\r\n" in written(HttpRequest(method="GET", url="", headers={b"x-100%b": b"5%d"}))
    assert written(HttpRequest(method="GET", url="")).endswith(b"identity\r\n\r\n")
    assert written(HttpRequest(method="POST", url="")).endswith(b"content-length: 0\r\n\r\n")


INJECTED = [
    {b"x-a": b"b\r\nx-c: d"},
    {b"x-a": b"b\n"},
    {b"x-a": b"b\rc"},
    {b"x-a": b"b\x00"},
    {b"x-a": b"\x7f"},
    {b"x-a\r\nx-b": b"c"},
    {b"x-a:": b"b"},
    {b"x a": b"b"},
    {b"": b"b"},
    {"x-ä".encode(): b"b"},
]


@pytest.mark.parametrize("headers", INJECTED)
def test_a_header_that_could_end_its_line_is_refused(headers: dict[bytes, bytes]) -> None:
    with pytest.raises(NetError) as raised:
        written(HttpRequest(method="GET", url="", headers=headers))
    assert (raised.value.kind, raised.value.sent) == (Reach.PROTOCOL, False)


@pytest.mark.parametrize("name", sorted(OWN_HEADERS))
def test_framing_headers_belong_to_the_client(name: bytes) -> None:
    for spelled in (name, name.upper()):
        with pytest.raises(NetError):
            written(HttpRequest(method="GET", url="", headers={spelled: b"x"}))


@pytest.mark.parametrize("method", ["", "GET /x", "GET\r\n", "CONNECT", "connect", "GÉT", "A" * 300])
def test_a_method_that_is_no_word_is_refused(method: str) -> None:
    with pytest.raises(NetError):
        written(HttpRequest(method=method, url=""))


def test_nothing_of_a_refused_request_is_sent(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always()) as server, client_of() as client:
            for headers in INJECTED:
                request = HttpRequest(method="GET", url=server.url, headers=headers)
                assert (await failure(client.send(request, deadline=soon()))).kind is Reach.PROTOCOL
            assert (await failure(client.send(get(server.url + "\r\nx: y"), deadline=soon()))).kind is Reach.FORBIDDEN
            assert server.accepted == 0

    run(scenario())


def test_the_name_stays_in_host_while_the_judged_address_is_dialled(run: Run) -> None:
    heard: list[bytes] = []

    async def script(line: Line) -> None:
        while request := await line.request():
            heard.append(request)
            line.answer()

    async def resolve(_: str) -> list[str]:
        return ["127.0.0.1"]

    async def scenario() -> None:
        async with serving(script) as server, client_of(resolve=resolve) as client:
            await client.send(get(f"http://name.example:{server.port}/a/b?c=d"), deadline=soon())
            assert heard[0].startswith(b"GET /a/b?c=d HTTP/1.1\r\nhost: name.example:%d\r\n" % server.port)
            assert heard[0].count(b"accept-encoding: identity\r\n") == 1

    run(scenario())


def test_proxies_of_the_environment_are_ignored(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(always()) as proxy, serving(always()) as server, client_of() as client:
            for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url)
            assert os.environ["http_proxy"] == proxy.url
            await client.send(get(server.url), deadline=soon())
            assert (proxy.accepted, server.accepted) == (0, 1)

    run(scenario())
