"""Changes to a request that leave it nearly right: one member gone or twice there, another type, another depth.

First the JSON, as a value; then its bytes; then what surrounds it. Everything is drawn from the random numbers it is
handed, so that the same numbers give the same request.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Final

import msgspec

from dragoman.model.json import Json, is_array, is_object

DEEPEST: Final = 64  # what the server lets pass; it refuses deeper bodies before anybody reads them
_LONG: Final = "x" * 300
ODD: Final[tuple[Json, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**40, 0.5, -0.0, 1e308, 5e-324),
    *("", " ", "\x00", "\u202e", "\ufeff", "ü", "🜁", _LONG, "x" * 5000, "null", "{}", "..", "/etc/passwd", "%00", "'"),
    *("http://169.254.169.254/latest/meta-data", "http://[::1]:0/", "javascript:x", "data:,x", "AP9i", "===", "Zg=="),
    *("2026-01-12T10:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "24:00", "-32602", "1e999"),
    *("TASK_STATE_COMPLETED", "input-required", "COMPLETED", "cancelled", "ROLE_USER", "assistant", "user", "urgent"),
    *("av-1", "task-1", "a2a_call_1", "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02", "message/send", "SendMessage", "2.0"),
    *([], {}, [[]], [{}], [None], {"": {}}, {"text": 1}, {"kind": []}, [[[[[1]]]]]),
)
NAMES: Final = (
    *("jsonrpc", "method", "params", "id", "message", "messageId", "parts", "role", "kind", "text", "data", "file"),
    *("taskId", "task_id", "contextId", "metadata", "dragoman", "skill", "agent", "input", "options", "timeout_ms"),
    *("type", "payload", "from", "to", "content", "url", "raw", "bytes", "uri", "configuration", "error", "result"),
    *("tenant", "historyLength", "status", "state", "sender", "action", "capabilities", "callback", "headers", ""),
)
BROKEN: Final = (
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\\ud800",
)
TYPES: Final = (
    *(b"application/json; charset=utf-8", b"application/JSON", b"application/a2a+json", b"text/plain", b"", b"\xff"),
    *(b"application/json, text/plain", b"multipart/form-data; boundary=x", b";", b"application/json;" + b"x" * 300),
)
HEADERS: Final = (
    *((b"a2a-version", value) for value in (b"", b"1.0", b"0.3", b"1.0.1", b"9.9", b"\xff", b"1." + b"9" * 300)),
    *((b"idempotency-key", value) for value in (b"", b"k", b"\xff", b"k" * 257, b"\x01", b"a\tb")),
    *((b"x-request-id", value) for value in (b"", b"r", b"\xff\xfe", b"r" * 300)),
    *((b"a2a-extensions", value) for value in (b"", b",,,", b"urn:x, urn:y", b"\xff" * 50, b"u," * 200)),
    *((b"x-a2a-extensions", value) for value in (b"urn:x", b"\xff")),
    *((b"accept", value) for value in (b"", b"text/html", b"application/a2a+json", b"\xff", b"*/*;q=x")),
    *((b"if-none-match", value) for value in (b"*", b'W/"x"', b"\xff", b",")),
    *((b"user-agent", value) for value in (b"python-httpx/0.28", b"\xff")),
    (b"last-event-id", b"-1"),
)
QUERIES: Final = (
    *(
        "",
        "?",
        "limit=5",
        "limit=0",
        "limit=²",
        "limit=1e9",
        "cursor=%ff",
        "cursor=eyJvZmZzZXQiOjF9",
        "skill=",
        "tag=a&tag=b",
    ),
    *(
        "min_rating=nan",
        "min_rating=inf",
        "max_p95_ms=" + "9" * 40,
        "after=-1",
        "after=1&wait=99",
        "wait=nan",
        "agent=x",
    ),
    *("pageSize=1000000", "pageToken=x.y", "status=TASK_STATE_WORKING", "statusTimestampAfter=x", "A2A-Version=1.0"),
    *(
        "hri=a/b",
        "offset=10&skip=-1",
        "has_tee=maybe",
        "a=%00&b=%zz",
        "&&&=",
        "historyLength=-1",
        "include_artifacts=true",
    ),
)
IDS: Final = (
    "agt_x",
    "x",
    "..",
    "%2e%2e",
    "%00",
    "%ff",
    "a%2Fb",
    "agt_x@1.0",
    "ü",
    "x" * 300,
    ":",
    "task-1:cancel",
    "av-1",
)

Place = tuple[Json, str | int]  # an object or an array, and where in it
Change = Callable[[Random, Place, Json], None]


def mutated(random: Random, body: bytes, other: bytes) -> bytes:
    """A body with one to four changes; sometimes pieces of another in it, sometimes no JSON any more."""
    try:
        value: Json = [json.loads(body)]
        spare: Json = json.loads(other)
    except ValueError:
        return _broken(random, body)
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3, 4))):
        places = _places(value)
        # Rather deep than high: what stands high is checked first, and hides what is below it.
        place = places[max(random.randrange(len(places)), random.randrange(len(places)))]
        random.choice(CHANGES)(random, place, spare)
        if not value:
            value = [None]
    changed = value if len(value) > 1 or random.random() < 0.02 else value[0]
    said = _encoded(random, changed)
    return _broken(random, said) if random.random() < 0.08 else said


def mutated_headers(random: Random, headers: tuple[tuple[bytes, bytes], ...]) -> dict[bytes, bytes]:
    """Headers, with one odd thing in every sixth request."""
    changed = dict(headers)
    if random.random() < 0.04:
        changed[b"content-type"] = random.choice(TYPES)
    if random.random() < 0.12:
        name, value = random.choice(HEADERS)
        changed[name] = value
    if random.random() < 0.03 and changed:
        del changed[random.choice(sorted(changed))]
    return changed


def filled(random: Random, path: str) -> str:
    """A path with something in place of each `{name}`, most often something that might be there."""
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + (IDS[0] if random.random() < 0.7 else random.choice(IDS)) + rest.partition("}")[2]
    return path


def queried(random: Random, url: str) -> str:
    """A URL with, now and then, another query."""
    return f"{url.partition('?')[0]}?{random.choice(QUERIES)}" if random.random() < 0.15 else url


# -- changes of a value, in place


def _drop(random: Random, place: Place, spare: Json) -> None:
    holder, at = place
    del holder[at]


def _retype(random: Random, place: Place, spare: Json) -> None:
    _put(place, _odd(random))


def _duplicate(random: Random, place: Place, spare: Json) -> None:
    holder, at = place
    if is_object(holder):
        name = str(at)
        holder[random.choice((name.upper(), name.title(), f"{name} ", f"_{name}", _snake(name)))] = holder[name]
    else:
        holder.extend([holder[at]] * random.choice((1, 2, 60)))


def _rename(random: Random, place: Place, spare: Json) -> None:
    holder, at = place
    if is_object(holder):
        holder[random.choice(NAMES)] = holder.pop(str(at))
    else:
        holder[at] = {random.choice(NAMES): holder[at]}


def _nest(random: Random, place: Place, spare: Json) -> None:
    value = _get(place)
    for _ in range(random.choice((1, 1, 2, DEEPEST // 2, DEEPEST - 4))):
        value = [value] if random.random() < 0.5 else {random.choice(NAMES): value}
    _put(place, value)


def _unnest(random: Random, place: Place, spare: Json) -> None:
    value = _get(place)
    if is_object(value) and value:
        _put(place, random.choice(list(value.values())))
    elif is_array(value) and value:
        _put(place, random.choice(value))


def _swap(random: Random, place: Place, spare: Json) -> None:
    holder, at = place
    others = list(holder) if is_object(holder) else list(range(len(holder)))
    other: Place = (holder, random.choice(others))
    mine, theirs = _get((holder, at)), _get(other)
    _put((holder, at), theirs)
    _put(other, mine)


def _splice(random: Random, place: Place, spare: Json) -> None:
    """A piece of another request, or all of it."""
    piece = spare
    if random.random() < 0.7:
        places = _places([spare])
        piece = _get(places[random.randrange(len(places))])
    _put(place, msgspec.json.decode(msgspec.json.encode(piece)))


def _add(random: Random, place: Place, spare: Json) -> None:
    value = _get(place)
    if is_object(value):
        value[random.choice(NAMES)] = _odd(random)
    elif is_array(value):
        value.insert(0, _odd(random))


CHANGES: Final[tuple[Change, ...]] = (
    *(_retype, _retype, _retype, _drop, _drop, _rename, _duplicate, _nest, _unnest, _swap, _splice, _add, _add),
)


def _places(value: Json) -> list[Place]:
    """Every place in a value where something stands, the deeper the later."""
    found: list[Place] = []
    layer: list[Json] = [value]
    while layer:
        below: list[Json] = []
        for holder in layer:
            if is_object(holder):
                found += [(holder, name) for name in holder]
                below += holder.values()
            elif is_array(holder):
                found += [(holder, index) for index in range(len(holder))]
                below += holder
        layer = below
    return found or [([None], 0)]


def _get(place: Place) -> Json:
    holder, at = place
    return holder[at]


def _put(place: Place, value: Json) -> None:
    holder, at = place
    holder[at] = value


def _odd(random: Random) -> Json:
    """One of the odd values; a copy, for the next change may be inside it."""
    return deepcopy(random.choice(ODD))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# -- changes of bytes


def _encoded(random: Random, value: Json) -> bytes:
    try:
        said = msgspec.json.encode(value)
    except (RecursionError, ValueError):
        return b"[" * DEEPEST
    if random.random() < 0.05 and said.startswith(b"{") and len(said) > 2:
        # The same member twice: the last one counts.
        said = said[:-1] + b"," + said[1:]
    if random.random() < 0.05:
        said = said.replace(b":", b" :\t", 3).replace(b",", b"\n,", 3)
    if random.random() < 0.03:
        said = said.replace(b"1", b"1e400", 1) if random.random() < 0.5 else said.replace(b"1", b"9" * 400, 1)
    return b"\n " + said if random.random() < 0.02 else said


def _broken(random: Random, said: bytes) -> bytes:
    """The bytes cut, torn, or with one that belongs to no text."""
    if not said:
        return random.choice((b"", b"{", b"[", b'"', b"nul", b"{}", b"[]"))
    at = random.randrange(len(said))
    what = random.randrange(5)
    if what == 0:
        return said[:at]
    if what == 1:
        return said[:at] + random.choice(BROKEN) + said[at:]
    if what == 2:
        return said[:at] + random.choice(BROKEN) + said[at + 1 :]
    if what == 3:
        return said + said[at:]
    flipped = bytearray(said)
    for _ in range(random.randint(1, 4)):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)
