"""A head that is known: what it takes for the same again is what a parser would have read, to the byte."""

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.model.known_head import HEAD_BYTES, LESSONS, KnownHead

FIRST = (
    b"POST /v1/a2a/call HTTP/1.1\r\nHost: hub:8000\r\nX-Request-ID: req-1\r\nAuthorization: Bearer ap_1_2\r\n"
    b"Content-Length: 2\r\nTraceparent: 00-aa-bb-01\r\nContent-Type: application/json\r\n\r\n{}"
)


class Parsed:
    """What a parser calls, kept."""

    def __init__(self, data: bytes) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body, self.messages = b"", 0
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        assert name.lower() not in self.headers
        self.headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.messages += 1


def known(message: bytes) -> KnownHead:
    head = KnownHead()
    head.learn(message, Parsed(message).headers)
    return head


def test_the_same_again_with_other_ids_and_another_body() -> None:
    again = FIRST.replace(b": 2\r", b": 11\r").replace(b"req-1", b"req_2.f").replace(b"{}", b'{"a":"b c"}')
    assert known(FIRST).again(again) == (Parsed(again).headers, b'{"a":"b c"}')


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (b"POST", b"PUT"),
        (b"/call", b"/calls"),
        (b"1.1\r\n", b"1.0\r\n"),
        (b"Host: hub:8000", b"Host: other:80"),
        (b"ap_1_2", b"ap_1_3"),
        (b"application/json", b"text/plain"),
        (b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        (b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"),
        (b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (b"Content-Length: 2", b"Content-Length: 3"),
        (b"Content-Length: 2", b"Content-Length: 1"),
        (b"Content-Length: 2", b"Content-Length: +2"),
        (b"Content-Length: 2", b"Content-Length: 2, 2"),
        (b"Content-Length: 2", b"Content-Length: 2a"),
        (b"Content-Length: 2", b"Content-Length:  2"),
        (b"Content-Length: 2", b"Content-Length: "),
        (b"Content-Length: 2", b"Content-Length: 2\r\n 3"),
        (b"X-Request-ID: req-1", b"X-Request-ID: req 1"),
        (b"X-Request-ID: req-1", b"X-Request-ID: req-1\nX-Other: 1"),
        (b"X-Request-ID: req-1", b"X-Request-ID: req-1\r\nX-Other: 1"),
        (b"X-Request-ID: req-1", "X-Request-ID: é".encode()),
        (b"X-Request-ID: req-1", b"X-Request-ID: " + b"1" * 300),
        (b"{}", b"{}POST / HTTP/1.1\r\n\r\n"),
        (b"{}", b"{"),
    ],
)
def test_anything_else_is_for_the_parser(part: bytes, other: bytes) -> None:
    changed = FIRST.replace(part, other)
    assert changed != FIRST
    assert known(FIRST).again(changed) is None


values = st.one_of(
    st.from_regex(rb"\A[0-9A-Za-z_.-]{1,40}\Z"),
    st.binary(max_size=12),
    st.sampled_from([b" 1", b"1 ", b"", b"\t", b"0"]),
)


@given(request_id=values, trace=values, length=values, body=st.binary(max_size=40), honest=st.booleans())
@example(request_id=b"a\r\nContent-Length: 0", trace=b"1", length=b"0", body=b"", honest=False)
@example(request_id=b"a", trace=b"b\r\n\r\n", length=b"0", body=b"", honest=False)
@example(request_id=b"a", trace=b"b", length=b"00", body=b"", honest=False)
def test_what_is_taken_is_what_a_parser_reads(
    request_id: bytes, trace: bytes, length: bytes, body: bytes, honest: bool
) -> None:
    length = b"%d" % len(body) if honest else length
    lines = (b"X-Request-ID: " + request_id, b"Content-Length: " + length, b"X-Trace-ID: " + trace)
    message = b"POST / HTTP/1.1\r\nHost: a\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body
    first = b"POST / HTTP/1.1\r\nHost: a\r\nX-Request-ID: 1\r\nContent-Length: 1\r\nX-Trace-ID: 2\r\n\r\nx"
    taken = known(first).again(message)
    if taken is not None:
        parsed = Parsed(message)
        assert taken == (parsed.headers, parsed.body)
        assert parsed.messages == 1


@pytest.mark.parametrize(
    "message",
    [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 02\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX-Long: %b\r\n\r\n{}" % (b"x" * HEAD_BYTES),
    ],
)
def test_an_odd_head_is_not_learnt(message: bytes) -> None:
    assert known(message).again(message) is None


def test_a_piece_of_a_message_is_not_learnt() -> None:
    head = KnownHead()
    head.learn(FIRST[:-1], Parsed(FIRST).headers)
    assert head.again(FIRST) is None


def test_what_is_forgotten_does_not_come_again() -> None:
    head = known(FIRST)
    assert head.again(FIRST) is not None
    head.forget()
    assert head.again(FIRST) is None


def test_a_head_that_comes_again_now_and_then_is_learnt_for_ever_and_others_only_so_often() -> None:
    head, others = KnownHead(), [FIRST.replace(b"ap_1_2", b"ap_1_%d" % number) for number in range(3 * LESSONS)]
    for message in others:
        head.learn(message, Parsed(message).headers)
        assert head.again(message) is not None
    for message in others[:LESSONS]:
        head.learn(message, Parsed(message).headers)
    head.learn(FIRST, Parsed(FIRST).headers)
    assert head.again(FIRST) is None
