"""Server-Sent Events, read in pieces of any size, as every kind of server writes them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.sse import EVENT_BYTES, SseEvent, SseParser, frame, is_stream, last_seen
from dragoman.model.errors import BadAgentReply

STREAM = (
    b"\xef\xbb\xbf: a comment\r\n"
    b'event: progress\r\ndata: {"progress": 0.5}\r\nid: 4\r\n\r\n'
    b"data: one\ndata:two\n\n"
    b"retry: 1000\rdata: caf\xc3\xa9\r\r"
    b"event: without data\n\n"
    b"id: 9\nunknown: x\ndata\n\n"
    b"data: never ended"
)
EVENTS = [
    SseEvent("progress", b'{"progress": 0.5}', "4"),
    SseEvent("", b"one\ntwo", "4"),
    SseEvent("", "café".encode(), "4"),
    SseEvent("", b"", "9"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_the_same_events_wherever_the_pieces_end(cuts: list[int]) -> None:
    parser = SseParser()
    edges = [0, *sorted(cuts), len(STREAM)]
    found = [event for start, end in pairwise(edges) for event in parser.feed(STREAM[start:end])]
    assert found == EVENTS


def test_byte_by_byte() -> None:
    parser = SseParser()
    assert [event for byte in STREAM for event in parser.feed(bytes([byte]))] == EVENTS


def test_an_event_has_a_bound() -> None:
    with pytest.raises(BadAgentReply):
        SseParser().feed(b"data: " + b"x" * (EVENT_BYTES + 1))
    parser = SseParser()
    with pytest.raises(BadAgentReply):
        for _ in range(EVENT_BYTES // 1000 + 2):
            parser.feed(b"data: " + b"x" * 1000 + b"\n")


def test_what_is_written_is_read_back() -> None:
    written = frame(b"{}", name="done", seq=7) + frame(b'{"a":1}') + b":\n\n"
    assert SseParser().feed(written) == [SseEvent("done", b"{}", "7"), SseEvent("", b'{"a":1}', "7")]


@pytest.mark.parametrize(
    ("said", "number"), [(b"12", 12), (b" 3 ", 3), (b"", None), (b"x", None), (b"-1", None), (b"9" * 11, None)]
)
def test_where_a_reader_goes_on(said: bytes, number: int | None) -> None:
    assert last_seen({b"last-event-id": said}) == number


def test_what_is_a_stream() -> None:
    assert is_stream({b"content-type": b"Text/Event-Stream; charset=utf-8"})
    assert not is_stream({b"content-type": b"application/json"})
    assert not is_stream({})
