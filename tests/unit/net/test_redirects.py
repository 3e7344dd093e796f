"""Redirects are answers like any other, but for the one that moves a final slash."""

import pytest

from tests.unit.net.servers import Line, Run, Script, client_of, get, post, serving, soon


def moved(status: int, place: bytes) -> bytes:
    return b"HTTP/1.1 %d Moved\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, place)


def redirecting(heard: list[bytes], status: int, place: bytes) -> Script:
    """Answer /x with a redirect, every other path with 200."""

    async def script(line: Line) -> None:
        while request := await line.request():
            path = request.split(b" ")[1]
            heard.append(path)
            line.answer(moved(status, place)) if path.partition(b"?")[0] == b"/x" else line.answer()

    return script


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_returned_not_followed(run: Run, status: int) -> None:
    async def scenario() -> None:
        heard: list[bytes] = []
        async with serving(redirecting(heard, status, b"/x/")) as server, client_of() as client:
            reply = await client.send(get(server.url + "x"), deadline=soon())
            assert (reply.status, heard) == (status, [b"/x"])

    run(scenario())


@pytest.mark.parametrize("status", [307, 308])
def test_an_added_slash_is_followed_once_and_remembered(run: Run, status: int) -> None:
    async def scenario() -> None:
        heard: list[bytes] = []
        async with serving(redirecting(heard, status, b"/x/?q=1")) as server, client_of() as client:
            for _ in range(2):
                request = post(server.url + "x?q=1", b"body")
                assert (await client.send(request, deadline=soon(), follow_slash=True)).body == b"ok"
            assert heard == [b"/x?q=1", b"/x/?q=1", b"/x/?q=1"]

    run(scenario())


def test_an_absolute_place_of_the_same_origin_is_followed(run: Run) -> None:
    async def scenario() -> None:
        heard: list[bytes] = []
        place = bytearray()

        async def script(line: Line) -> None:
            while request := await line.request():
                heard.append(request.split(b" ")[1])
                line.answer(moved(307, bytes(place))) if heard[-1] == b"/x/" else line.answer()

        async with serving(script) as server, client_of() as client:
            place += server.url.encode() + b"x"
            reply = await client.send(get(server.url + "x/"), deadline=soon(), follow_slash=True)
            assert (reply.status, heard) == (200, [b"/x/", b"/x"])

    run(scenario())


@pytest.mark.parametrize(
    ("status", "place"),
    [
        (302, b"/x/"),
        (301, b"/x/"),
        (307, b"/y/"),
        (307, b"/x//"),
        (307, b"/x/?a=b"),
        (307, b"//127.0.0.1/x/"),
        (307, b"http://127.0.0.1:1/x/"),
        (307, b"http://localhost/x/"),
        (307, b"https://127.0.0.1/x/"),
        (307, b"http://u@127.0.0.1/x/"),
        (307, b"x/"),
        (307, b""),
        (307, b"/x/#f"),
        (307, b"\\\\evil/x/"),
    ],
)
def test_any_other_place_is_not_followed(run: Run, status: int, place: bytes) -> None:
    async def scenario() -> None:
        heard: list[bytes] = []
        async with serving(redirecting(heard, status, place)) as server, client_of() as client:
            reply = await client.send(get(server.url + "x"), deadline=soon(), follow_slash=True)
            assert (reply.status, heard) == (status, [b"/x"])

    run(scenario())


def test_two_slashes_that_point_at_each_other_end(run: Run) -> None:
    async def scenario() -> None:
        heard: list[bytes] = []

        async def script(line: Line) -> None:
            while request := await line.request():
                heard.append(request.split(b" ")[1])
                line.answer(moved(307, b"/x" if heard[-1] == b"/x/" else b"/x/"))

        async with serving(script) as server, client_of() as client:
            for _ in range(2):
                reply = await client.send(get(server.url + "x"), deadline=soon(), follow_slash=True)
                assert reply.status == 307
            assert heard == [b"/x", b"/x/", b"/x/", b"/x"]

    run(scenario())
