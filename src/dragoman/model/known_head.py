"""The same head once more: who keeps a connection sends one message like the other.

    learn(message, headers) ─▶ again(next message) ─▶ its headers and body, or None: parse it, and forget

A parser has accepted the head before, byte for byte, save the values of a few headers that differ from one message to
the next. Those are taken only if they are plain words, which no parser reads otherwise; whatever else differs is not
this head. What is known is always of the message that was parsed last: whoever parses one has the one before forgotten.
"""

from collections.abc import Mapping
from typing import Final, final

HEAD_BYTES: Final = 8 * 1024
LESSONS: Final = 8  # heads in a row that are learnt and do not come again, before no more are
_VALUE_BYTES: Final = 256
_LENGTH: Final = b"content-length"
_END: Final = b"\r\n\r\n"
_IN_IDS: Final = b"-_."  # what stands in ids besides letters and digits
_VARYING: Final = (
    _LENGTH,
    b"idempotency-key",
    b"traceparent",
    b"x-parent-span-id",
    b"x-request-id",
    b"x-span-id",
    b"x-trace-id",
)


@final
class KnownHead:
    """What one connection has learnt."""

    __slots__ = ("_begin", "_first", "_headers", "_lessons", "_varying")

    def __init__(self) -> None:
        self._first = b""  # the text up to the first value that may differ; empty while nothing is known
        self._begin = 0  # how long that is
        self._varying: list[tuple[bytes, bytes, int]] = []  # of each such value: name, text up to the next, its length
        self._headers: dict[bytes, bytes] = {}
        self._lessons = LESSONS

    def again(self, message: bytes) -> tuple[dict[bytes, bytes], bytes] | None:
        """Headers and body, if this is exactly one message with the head that is known."""
        first = self._first
        if not first or not message.startswith(first):
            return None
        headers, begin = self._headers.copy(), self._begin
        for name, after, size in self._varying:
            end = message.find(b"\r", begin, begin + _VALUE_BYTES)
            value = message[begin:end]
            if not message.startswith(after, end) or not value.translate(None, _IN_IDS).isalnum():
                return None
            headers[name] = value
            begin = end + size
        length = headers[_LENGTH]
        if not length.isdigit() or int(length) != len(message) - begin:
            return None
        self._lessons = LESSONS
        return headers, message[begin:]

    def forget(self) -> None:
        """Another message was parsed."""
        self._first = b""

    def learn(self, message: bytes, headers: Mapping[bytes, bytes]) -> None:
        """A parser took this whole message, with these headers. Heads that are long or odd are not learnt."""
        end = message.find(_END, 0, HEAD_BYTES) + len(_END)
        if not self._lessons or end < len(_END) or headers.get(_LENGTH) != b"%d" % (len(message) - end):
            return
        self._lessons -= 1
        small = message[:end].lower()
        spots: list[tuple[int, int, bytes]] = []
        for name in _VARYING:
            if name not in headers:
                continue
            line = b"\r\n%b: " % name
            begin = small.find(line) + len(line)
            value = headers[name]
            if small.count(line[:-1]) != 1 or not message.startswith(value + b"\r\n", begin):
                return
            spots.append((begin, begin + len(value), name))
        spots.sort()
        nexts = [begin for begin, _, _ in spots[1:]] + [end]
        self._varying = [
            (name, message[past:following], following - past)
            for (_, past, name), following in zip(spots, nexts, strict=True)
        ]
        self._begin = spots[0][0]
        self._first = message[: self._begin]
        self._headers = dict(headers)
