"""What the client makes of answers, good and malformed; each over a real socket."""

import asyncio
import itertools

import pytest

from dragoman.model.http import HttpRequest
from dragoman.net import Reach
from tests.unit.net.servers import OK, Line, Run, Script, always, client_of, failure, get, once, post, serving, soon

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: 1\r\n\r\n"
)
COUNTED = b"HTTP/1.1 201 Created\r\nContent-Length: 7\r\nX-A: b\r\n\r\nabcdefg"
TO_THE_END = b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nabcdefg"
PRECEDED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + COUNTED


def cut_where_the_path_says(answer: bytes, *, rest: bool) -> Script:
    """Send the answer in two writes, or only the first of them and then close."""

    async def script(line: Line) -> None:
        while request := await line.request():
            cut = int(request.split(b" ")[1][1:])
            line.answer(answer[:cut])
            # Turns of the loop part the writes, so that the client reads twice.
            for _ in range(3):
                await asyncio.sleep(0)
            if rest:
                line.answer(answer[cut:])
            if answer is TO_THE_END or not rest:
                line.writer.write_eof()

    return script


@pytest.mark.parametrize("answer", [CHUNKED, COUNTED, TO_THE_END, PRECEDED])
def test_an_answer_split_at_any_byte_is_read_the_same(run: Run, answer: bytes) -> None:
    async def scenario() -> None:
        async with serving(cut_where_the_path_says(answer, rest=True)) as server, client_of() as client:
            for cut in range(len(answer) + 1):
                reply = await client.send(get(f"{server.url}{cut}"), deadline=soon())
                assert reply.body == b"abcdefg"
                assert reply.headers[b"x-a"] == b"b"
                assert b"t" not in reply.headers
                assert b"link" not in reply.headers
            assert server.accepted == (len(answer) + 1 if answer is TO_THE_END else 1)

    run(scenario())


@pytest.mark.parametrize("answer", [CHUNKED, COUNTED, PRECEDED])
def test_an_answer_cut_off_at_any_byte_is_an_error(run: Run, answer: bytes) -> None:
    async def scenario() -> None:
        async with serving(cut_where_the_path_says(answer, rest=False)) as server, client_of() as client:
            for cut in range(len(answer)):
                error = await failure(client.send(get(f"{server.url}{cut}"), deadline=soon()))
                assert (error.kind, error.sent) == (Reach.RESET, True)
            assert client.figures()[server.url[:-1]].open == 0

    run(scenario())


def lines(count: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(count - 1)) + b"\r\n"


MALFORMED = {
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
    "chunk too long": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n",
    "chunk size overflow": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\nok",
    "LF in a chunk extension": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a\nb\r\nok\r\n0\r\n\r\n",
    "unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "two codings": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "signed length": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
    "space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
    "NUL in a header": b"HTTP/1.1 200 OK\r\nA: \x00\r\nContent-Length: 2\r\n\r\nok",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "folded header": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok",
    "upgrade": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "second answer": OK + OK,
    "start of a second answer": OK + b"H",
    "more than the length": OK + b"more",
    "body of a 204": b"HTTP/1.1 204 No Content\r\n\r\nok",
    "101 header lines": lines(101),
    "one large header": b"HTTP/1.1 200 OK\r\nA: " + b"x" * 40_000 + b"\r\nContent-Length: 2\r\n\r\nok",
    "large headers": b"HTTP/1.1 200 OK\r\n" + b"a: bcdefghij\r\n" * 99 + b"x: " + b"y" * 32_000 + b"\r\n\r\n",
    "repeated header lines": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100 + b"Content-Length: 0\r\n\r\n",
    "endless chunk extension": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 80_000,
    "endless trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nT: " + b"x" * 800_000,
    "endless 100s": b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_answer_is_a_protocol_error_and_ends_its_connection(run: Run, case: str) -> None:
    async def scenario() -> None:
        async with serving(once(MALFORMED[case], close=False)) as server, client_of() as client:
            error = await failure(client.send(get(server.url), deadline=soon()))
            assert (error.kind, error.sent) == (Reach.PROTOCOL, True)
            figures = client.figures()[server.url[:-1]]
            assert (figures.open, figures.failed) == (0, {Reach.PROTOCOL: 1})

    run(scenario())


def test_a_hundred_header_lines_and_repeated_ones_are_read(run: Run) -> None:
    async def scenario() -> None:
        repeated = b"HTTP/1.1 200 OK\r\nVary: a\r\nvary: b\r\nContent-Length: 0\r\n\r\n"
        for answer, name, value in ((lines(100), b"a98", b"b"), (repeated, b"vary", b"a, b")):
            async with serving(always(answer)) as server, client_of() as client:
                reply = await client.send(get(server.url), deadline=soon())
                assert reply.headers[name] == value

    run(scenario())


@pytest.mark.parametrize("coding", [b"gzip", b"br", b"deflate", b"GZIP", b"identity, gzip"])
def test_a_compressed_answer_is_refused(run: Run, coding: bytes) -> None:
    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + b"\r\nContent-Length: 2\r\n\r\nok"
        async with serving(always(answer)) as server, client_of() as client:
            error = await failure(client.send(get(server.url), deadline=soon()))
            assert error.kind is Reach.COMPRESSED
            assert client.figures()[server.url[:-1]].open == 0

    run(scenario())


def test_identity_is_no_compression(run: Run) -> None:
    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\nok"
        async with serving(always(answer)) as server, client_of() as client:
            assert (await client.send(get(server.url), deadline=soon())).body == b"ok"

    run(scenario())


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_an_answer_larger_than_allowed_is_cut_off(run: Run, head: bytes) -> None:
    async def scenario() -> None:
        async with serving(once(head + b"x" * 1001, close=False)) as server, client_of() as client:
            error = await failure(client.send(get(server.url), deadline=soon(), max_body=1000))
            assert error.kind is Reach.TOO_LARGE
            assert client.figures()[server.url[:-1]].open == 0

    run(scenario())


def test_an_announced_length_beyond_the_allowed_is_not_waited_for(run: Run) -> None:
    async def scenario() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"
        async with serving(once(head, close=False)) as server, client_of() as client:
            error = await failure(client.send(get(server.url), deadline=soon(), max_body=1000))
            assert error.kind is Reach.TOO_LARGE

    run(scenario())


def test_an_answer_just_as_large_as_allowed_passes(run: Run) -> None:
    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000
        async with serving(always(answer)) as server, client_of() as client:
            for _ in range(3):
                reply = await client.send(get(server.url), deadline=soon(), max_body=300_000)
                assert len(reply.body) == 300_000
            assert server.accepted == 1

    run(scenario())


def test_answers_without_a_body_keep_the_connection(run: Run) -> None:
    async def scenario() -> None:
        async def script(line: Line) -> None:
            while await line.request():
                line.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
                await line.request()
                line.answer(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n")

        async with serving(script) as server, client_of() as client:
            for status in (204, 304, 204):
                reply = await client.send(get(server.url), deadline=soon())
                assert (reply.status, reply.body) == (status, b"")
            assert server.accepted == 1

    run(scenario())


def test_the_answer_to_head_has_a_length_and_no_body(run: Run) -> None:
    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
        async with serving(always(answer)) as server, client_of() as client:
            for _ in range(2):
                reply = await client.send(HttpRequest(method="HEAD", url=server.url), deadline=soon())
                assert (reply.headers[b"content-length"], reply.body) == (b"99", b"")

    run(scenario())


def test_an_early_answer_to_a_large_request_arrives(run: Run) -> None:
    async def scenario() -> None:
        async def script(line: Line) -> None:
            await line.reader.readuntil(b"\r\n\r\n")
            line.answer(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await line.closed()

        async with serving(script) as server, client_of() as client:
            reply = await client.send(post(server.url, b"x" * 20_000_000), deadline=soon())
            assert reply.status == 413

    run(scenario())


ALIKE = b"HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: %d\r\nX-Request-ID: %b\r\n\r\n%b"


@pytest.mark.parametrize("cut", [0, 20])
@pytest.mark.parametrize(
    ("other", "status", "body"),
    [
        (COUNTED, 201, b"abcdefg"),
        (CHUNKED, 200, b"abcdefg"),
        (PRECEDED, 201, b"abcdefg"),
        (b"HTTP/1.1 500 Broken\r\nServer: a\r\nContent-Length: 1\r\nX-Request-ID: 9\r\n\r\nx", 500, b"x"),
    ],
)
def test_behind_answers_alike_any_other_is_read_for_itself(
    run: Run, other: bytes, status: int, body: bytes, cut: int
) -> None:
    async def script(line: Line) -> None:
        for number in range(5):
            await line.request()
            line.answer(ALIKE % (number, b"id-%d" % number, b"x" * number))
        await line.request()
        line.answer(other[:cut])
        for _ in range(3):
            await asyncio.sleep(0)
        line.answer(other[cut:])
        for number in range(3):
            await line.request()
            line.answer(ALIKE % (1, b"later", b"%d" % number))
        await line.closed()

    async def scenario() -> None:
        async with serving(script) as server, client_of() as client:
            for number in range(5):
                reply = await client.send(post(server.url), deadline=soon())
                assert (reply.status, reply.body) == (200, b"x" * number)
                named = {b"server": b"a", b"content-length": b"%d" % number, b"x-request-id": b"id-%d" % number}
                assert reply.headers == named
            reply = await client.send(post(server.url), deadline=soon())
            assert (reply.status, reply.body) == (status, body)
            for number in range(3):
                reply = await client.send(post(server.url), deadline=soon())
                assert (reply.status, reply.body) == (200, b"%d" % number)
            assert server.accepted == 1

    run(scenario())


def fourth(answer: bytes) -> Script:
    """Give another answer to the fourth request of a connection than to the rest."""

    async def script(line: Line) -> None:
        for number in itertools.count(1):
            if not await line.request():
                return
            line.answer(answer if number == 4 else OK)

    return script


def test_an_answer_that_was_streamed_meanwhile_leaves_nothing_behind(run: Run) -> None:
    async def scenario() -> None:
        broken = b"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno"
        async with serving(fourth(broken)) as server, client_of() as client:
            for _ in range(3):
                assert (await client.send(post(server.url), deadline=soon())).status == 200
            async with client.stream(post(server.url), deadline=soon()) as streamed:
                assert streamed.status == 500
                assert b"".join([piece async for piece in streamed.chunks]) == b"no"
            for _ in range(3):
                assert (await client.send(post(server.url), deadline=soon())).status == 200
            assert server.accepted == 1

    run(scenario())


def test_an_answer_like_the_last_is_cut_at_any_byte_and_still_whole(run: Run) -> None:
    answer = ALIKE % (4, b"1", b"abcd")

    async def script(line: Line) -> None:
        for cut in range(len(answer)):
            for _ in range(2):
                await line.request()
                line.answer(answer)
            await line.request()
            line.answer(answer[:cut])
            for _ in range(3):
                await asyncio.sleep(0)
            line.answer(answer[cut:])
        await line.closed()

    async def scenario() -> None:
        async with serving(script) as server, client_of() as client:
            for _ in range(3 * len(answer)):
                assert (await client.send(post(server.url), deadline=soon())).body == b"abcd"
            assert server.accepted == 1

    run(scenario())


def test_an_answer_like_the_last_is_bounded_like_any(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always(ALIKE % (6, b"1", b"abcdef"))) as server, client_of() as client:
            for _ in range(4):
                assert (await client.send(post(server.url), deadline=soon())).body == b"abcdef"
            error = await failure(client.send(post(server.url), deadline=soon(), max_body=5))
            assert error.kind is Reach.TOO_LARGE

    run(scenario())


def test_two_answers_to_one_request_are_an_error_even_if_known(run: Run) -> None:
    async def scenario() -> None:
        async with serving(fourth(OK + OK)) as server, client_of() as client:
            for _ in range(3):
                assert (await client.send(post(server.url), deadline=soon())).body == b"ok"
            assert (await failure(client.send(post(server.url), deadline=soon()))).kind is Reach.PROTOCOL

    run(scenario())
