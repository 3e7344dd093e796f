"""How each line of the table is asked: its path and body, with real ids in the places where they stand."""

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from tests.security.expected import AGENT, CONFIG, EXPECTED, Line
from tests.support.reach import Reached, framed

VERSION = "A2A-Version: 1.0"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request, ready to be sent."""

    method: str
    path: str
    body: bytes
    lines: tuple[str, ...] = ()


def listed(reached: Iterable[Reached]) -> tuple[Reached, ...]:
    """What the table has a line for; that it has one for everything is a test of its own."""
    return tuple(each for each in reached if each.key in EXPECTED)


def line_of(reached: Reached) -> Line:
    """What is expected of it. A thing without a line is a failure of the test that asks."""
    assert reached.key in EXPECTED, f"{reached}: not in tests/security/expected.py"
    return EXPECTED[reached.key]


def request_for(reached: Reached, *, id: str, agent: str, sender: str = "", uuid: str = "") -> Request:
    """The request that asks it of this id; `agent` is whose place it is asked at, `uuid` its other name."""
    line = line_of(reached)
    at = id if line.names == AGENT else agent
    named = {"agent": at, "config": CONFIG, "org": "tests", "uuid": uuid or at}
    path = re.sub(r"\{(\w+)\}", lambda found: named.get(found[1], id), reached.path)
    query = f"?{_filled(line.query, id, at, sender)}" if line.query else ""
    body: Any = framed(reached.rpc, line.body or {}) if reached.rpc else line.body
    said = b"" if body is None else _filled(json.dumps(body), id, at, sender).encode()
    lines = (VERSION,) if reached.dialect == "a2a-1.0" else ()
    return Request(method=reached.method, path=path + query, body=said, lines=lines)


def _filled(text: str, id: str, agent: str, sender: str) -> str:
    return re.sub(r"\bID\b", id, text).replace("AGENT", agent).replace("SENDER", sender)
