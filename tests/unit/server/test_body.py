import time
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.errors import NotJson, TooLarge
from dragoman.server.body import ClientGone, Receive, check_depth, read_body
from tests.support.run import run

GONE: Mapping[str, object] = {"type": "http.disconnect"}


def _receive(*messages: Mapping[str, object]) -> Receive:
    left = list(messages)

    async def receive() -> Mapping[str, object]:
        return left.pop(0)

    return receive


def _piece(body: bytes, *, more: bool) -> Mapping[str, object]:
    return {"type": "http.request", "body": body, "more_body": more}


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.integers(min_value=0, max_value=200))
def test_a_body_is_read_whole_or_refused_at_its_limit(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)
    messages = [_piece(piece, more=number < len(pieces) - 1) for number, piece in enumerate(pieces)]
    if len(whole) <= limit:
        assert run(read_body(_receive(*messages), limit)) == whole
    else:
        with pytest.raises(TooLarge) as refused:
            run(read_body(_receive(*messages), limit))
        assert refused.value.details == {"limit": limit}


def test_nothing_is_read_beyond_the_limit() -> None:
    with pytest.raises(TooLarge):
        run(read_body(_receive(_piece(b"abc", more=True), _piece(b"de", more=True)), 4))


@pytest.mark.parametrize("messages", [[GONE], [_piece(b"abc", more=True), GONE]])
def test_a_client_that_leaves_is_no_request(messages: list[Mapping[str, object]]) -> None:
    with pytest.raises(ClientGone):
        run(read_body(_receive(*messages), 100))


def _depth(body: bytes) -> int:
    """The deepest level a decoder would go down to: byte by byte, strings skipped, as far as the text holds."""
    depth = deepest = 0
    in_string = escaped = False
    for byte in body:
        if in_string:
            in_string = escaped or byte != ord('"')
            escaped = not escaped and byte == ord("\\")
        elif byte == ord('"'):
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _refused(body: bytes, limit: int) -> bool:
    try:
        check_depth(body, limit)
    except NotJson:
        return True
    return False


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='[]{}"\\ax\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=30,
)


@given(json_values, st.integers(min_value=0, max_value=8))
def test_json_is_refused_exactly_when_it_nests_too_deeply(value: object, limit: int) -> None:
    body = msgspec.json.encode(value)
    assert _refused(body, limit) == (_depth(body) > limit)


@given(st.text(alphabet='[]{}"\\a,:', max_size=60), st.integers(min_value=0, max_value=8))
def test_rubbish_is_refused_exactly_when_a_decoder_could_follow_it_too_deep(text: str, limit: int) -> None:
    body = text.encode()
    assert _refused(body, limit) == (_depth(body) > limit)


def test_the_message_names_the_limit() -> None:
    with pytest.raises(NotJson, match="deeper than 64 levels") as refused:
        check_depth(b"[" * 65 + b"]" * 65)
    assert refused.value.details == {"limit": 64}
    check_depth(b"[" * 64 + b"]" * 64)


@pytest.mark.parametrize(
    "piece",
    [b"[", b"[]", b"[],", b'"', b'"[', b'"\\"[', b"\\", b'"\\', b'{"a":"[[["},'],
    ids=lambda piece: piece.decode(),
)
def test_a_mebibyte_of_anything_is_judged_in_no_time(piece: bytes) -> None:
    whole, part = (min(_timed(_of(piece, size)) for _ in range(3)) for size in (1024 * 1024, 128 * 1024))
    # Where the machine is slow, at least in proportion to its size: eight times as much takes no 24 times as long.
    assert whole < max(0.1, 24 * part)


def _of(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece)) + b"[" * 65


def _timed(body: bytes) -> float:
    started = time.process_time()
    _refused(body, 64)
    return time.process_time() - started
