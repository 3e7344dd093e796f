"""What the fuzzer begins with: every example of every dialect, every golden request, and every request that the hub
itself would send. Each as it would arrive: method, URL, headers, body."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from dragoman.dialects.dialect import Verb
from dragoman.model.content import Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.events import Remote
from dragoman.model.operations import Priority, SendTask
from tests.dialects.goldens import HUB, golden_files, parted
from tests.dialects.loops import WIRES, opened, outgoing_of

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
JSON: Final = (b"content-type", b"application/json")
# Where the bodies of a dialect's examples may be posted, beside the URLs that all share.
PLACES: Final = {
    "agentvault": ("/a2a", "/agents/agt_x/agentvault", "/api/v1/agent-cards", "/api/v1/utils/validate-card"),
    "directory": ("/a2a", "/a2a/task", "/a2a/register", "/a2a/discover", "/agents/agt_x/directory"),
    "dotted": ("/agents/agt_x/dotted", "/agents/agt_x"),
    "envelope": ("/a2a/messages", "/agents/agt_x/a2a/messages"),
    "platform": ("/v1/a2a/call", "/v1/a2a/call/async", "/v1/a2a/registry", "/v1/agents/agt_x/a2a"),
}
SHARED: Final = ("/", "/agents/agt_x", "/v1/agents/agt_x/a2a")
FILE: Final = Blob(raw=b"\x00\xff", filename="f.bin", media_type="x/y")
CONTENTS: Final[tuple[tuple[Part, ...], ...]] = (
    (Text(text="hello, wörld ✓"), Data(value={"q": 2**70}), FILE, Link(url="https://example.com/f", metadata={"m": 1})),
    (Text(text="hello"),),
    (Data(value={"q": "ü", "n": 1, "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}}),),
    (Data(value={"only": {}}, metadata={"m": [1]}), Data(value={"more": [[]]})),
    (FILE, Text(text="", metadata={"m": {}})),
)


class Seed(msgspec.Struct, frozen=True):
    """One request; `wire`: whose words it is in, by the dialect's folder or the framing's name."""

    wire: str
    method: str
    url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def seeds() -> list[Seed]:
    """Every one of them, in the same order each time."""
    return [*_examples(), *_goldens(), *_own()]


def _examples() -> Iterator[Seed]:
    for path in sorted(EXAMPLES.glob("*/*.json")):
        body = json.dumps(json.loads(path.read_text()), ensure_ascii=False).encode()
        for url in (*PLACES[path.parent.name], *SHARED):
            yield Seed(path.parent.name, "POST", url, (JSON,), body)


def _goldens() -> Iterator[Seed]:
    for path in golden_files():
        if not path.stem.startswith("read-"):
            continue
        head, _, body = parted(path)[0].partition("\n\n")
        first, *lines = head.split("\n")
        _, method, url = first.split(" ")
        pairs = (line.partition(": ") for line in lines)
        headers = tuple((name.lower().encode(), value.encode()) for name, _, value in pairs)
        yield Seed(path.parent.name, method, url, headers, body.encode())


def _own() -> Iterator[Seed]:
    for wire in WIRES:
        for parts in CONTENTS:
            # A role, a title and a parent: what some wires have no member for stands in the hints.
            role = Role.SYSTEM if len(parts) == 1 else Role.USER
            message = Message(id="m-1", role=role, parts=parts, references=("task-1",), metadata={"note": 1})
            asked = SendTask(
                message=message,
                skill="s",
                priority=Priority.HIGH,
                context_id="ctx-1",
                parent_id="p",
                title="t",
                metadata={"a": 1},
            )
            task = msgspec.structs.replace(opened(asked), remote=Remote(task_id="task-7", context_id="ctx-7"))
            for verb in Verb if parts is CONTENTS[0] else (Verb.SEND,):
                request = wire.dialect.ask(outgoing_of(wire, asked, verb, task))
                if request is not None:
                    headers = tuple(sorted(request.headers.items()))
                    yield Seed(wire.name, request.method, request.url.removeprefix(HUB), headers, request.body)
