"""Golden files: an input, a line of dashes, and what a dialect makes of it.

The first word of a file's name says what is done with the input:

    read-…    an HTTP request becomes an operation
    ask-…     a verb and a task (JSON) become an HTTP request to an agent
    hear-…    an agent's HTTP reply becomes events
    answer-…  a finished task (JSON) becomes an HTTP reply to the caller
    card-…    a card becomes the canonical card, and is served again

Ids and times are fixed, so every byte of the outcome is known. `python -m tests.dialects.goldens` writes what has
changed into the files and names them: read the difference before you keep it.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import RPC, Dialect, Outgoing, Place, Verb
from dragoman.model.agent import Agent, AgentCard, Endpoint
from dragoman.model.content import Message
from dragoman.model.errors import DragomanError
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, is_array, is_object
from dragoman.model.operations import Unreadable
from dragoman.model.task import Task
from tests.support.urls import arrived, found_at, url_table

FOLDER: Final = Path(__file__).with_name("golden")
DASHES: Final = "-" * 20
AT: Final = datetime(2026, 1, 12, 10, 0, 0, tzinfo=UTC)
LATER: Final = datetime(2026, 1, 12, 10, 0, 2, 500_000, tzinfo=UTC)
HUB: Final = "http://localhost:8700"
HUB_ID: Final = "1d6b2c3e-4f50-4a6b-8c7d-8e9fa0b1c2d3"
UUID: Final = "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02"
BASE: Final[dict[str, Any]] = {
    "id": "a2a_call_1",
    "tenant": "default",
    "caller_id": "agt_caller",
    "agent_id": "agt_target",
    "agent_version": "1.0.0",
    "dialect": "platform",
    "context_id": "conv_1",
    "asked": {"message": {"id": "msg_1", "role": "user", "parts": [{"type": "data", "value": {"q": 1}}]}},
    "trace": {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"},
    "created_at": "2026-01-12T10:00:00Z",
    "updated_at": "2026-01-12T10:00:00Z",
    "skill": "search",
    "last_seq": 1,
}
ANSWERED: Final = {"call": "a2a_call_1", "task": "a2a_call_1"}  # what paths name that show one task


def golden_files() -> list[Path]:
    """Every golden file."""
    return sorted(FOLDER.glob("*/*.txt"))


def parted(path: Path) -> tuple[str, str]:
    """A file's input and what is expected of it."""
    given, _, expected = path.read_text().partition(f"\n{DASHES}\n")
    return given, expected.rstrip("\n")


def outcome(path: Path, given: str) -> str:
    """What the dialect of a file makes of an input."""
    dialect = next(each for each in DIALECTS.values() if each.name == path.parent.name)
    kind = path.stem.partition("-")[0]
    return {"read": _read, "ask": _ask, "hear": _hear, "answer": _answer, "card": _card}[kind](dialect, given)


def task_of(changes: dict[str, Any]) -> Task:
    """A task with fixed ids and times, changed where a file says so."""
    asked = {**BASE["asked"], **changes.pop("asked", {})}
    return msgspec.convert({**BASE, **changes, "asked": asked}, Task)


def outgoing(verb: Verb, task: Task, endpoint: Endpoint, message: Message | None = None) -> Outgoing:
    """A request to an agent, before it is put into words."""
    sent = (message or task.asked.message) if verb in (Verb.SEND, Verb.STREAM) else None
    return Outgoing(
        verb=verb,
        task=task,
        asked=task.asked,
        endpoint=endpoint,
        at=AT,
        message=sent,
        caller="agt_caller",
        timeout_ms=29950 if verb is not Verb.CANCEL else 0,
        reason="timeout" if verb is Verb.CANCEL else "",
        hub_url=HUB,
        hub_id=HUB_ID,
    )


def agent_of(card: AgentCard) -> Agent:
    """An agent with this card, registered at a fixed time under a fixed UUID."""
    return Agent(card=card, uuid=UUID, tenant="default", owner_id="key_owner", registered_at=AT, updated_at=AT)


def place_of(card: AgentCard) -> Place:
    """Where the hub serves an agent's card, to a stranger."""
    return Place(hub_url=HUB, base_url=f"{HUB}/agents/{card.id}/")


def _read(dialect: Dialect, given: str) -> str:
    assert dialect.read is not None
    head, _, body = given.partition("\n\n")
    first, *lines = head.split("\n")
    route, method, url = first.split(" ")
    found = found_at(url_table([dialect]), method, url)
    assert found.target.name == route
    request = arrived(found, method, url, headers=_headers(lines), body=body.encode(), at=AT, hub=HUB)
    exchange = dialect.read(request)
    if isinstance(exchange.operation, Unreadable):
        return _reply(exchange.refuse(exchange.operation.error))
    return f"{type(exchange.operation).__name__} {_pretty(exchange.operation)}"


def _ask(dialect: Dialect, given: str) -> str:
    verb, _, body = given.partition("\n")
    changes = json.loads(body)
    endpoint = msgspec.convert({"dialect": dialect.slug, **changes.pop("endpoint")}, Endpoint)
    request = dialect.ask(outgoing(Verb(verb), task_of(changes), endpoint))
    if request is None:
        return "nothing to ask"
    headers = [f"{name.decode()}: {value.decode()}" for name, value in request.headers.items()]
    return "\n".join((f"{request.method} {request.url}", *headers, "", _laid_out(json.loads(request.body), 0)))


def _hear(dialect: Dialect, given: str) -> str:
    head, _, body = given.partition("\n\n")
    first, *lines = head.split("\n")
    reply = HttpReply(status=int(first), headers=_headers(lines), body=body.encode())
    sent = outgoing(Verb.SEND, task_of({}), Endpoint(dialect=dialect.slug, url="http://agent.test/"))
    try:
        heard = dialect.hear(sent, reply, LATER)
    except DragomanError as error:
        return f"{type(error).__name__}: {error.message}\n{_pretty(error.details)}"
    return _pretty(heard)


def _answer(dialect: Dialect, given: str) -> str:
    assert dialect.read is not None
    method, _, body = given.partition("\n")
    speaks_rpc = bool(dialect.methods or dialect.methods_begin)
    route = RPC if speaks_rpc and method == "POST" else next(r.name for r in dialect.routes if r.method == method)
    asked = HttpRequest(method=method, url="/", id="1", at=AT, route=route, params=ANSWERED, hub=HUB)
    return _reply(dialect.read(asked).reply(task_of(json.loads(body))))


def _card(dialect: Dialect, given: str) -> str:
    try:
        card = dialect.read_card(json.loads(given))
    except DragomanError as error:
        return f"{type(error).__name__}: {error.message}"
    shown = _pretty(msgspec.structs.replace(card, original=None))
    assert dialect.write_card is not None
    return f"{shown}\n{_laid_out(dialect.write_card(agent_of(card), place_of(card)), 0)}"


def _headers(lines: list[str]) -> Headers:
    pairs = (line.partition(": ") for line in lines)
    return {name.lower().encode(): value.encode() for name, _, value in pairs}


def _reply(reply: HttpReply) -> str:
    headers = [f"{name.decode()}: {value.decode()}" for name, value in reply.headers.items()]
    return "\n".join((str(reply.status), *headers, "", _laid_out(json.loads(reply.body), 0)))


def _pretty(value: object) -> str:
    """One of our own structs; a set has no order of its own."""
    return _laid_out(msgspec.to_builtins(value, order="deterministic", str_keys=True), 0)


def _laid_out(value: Json, depth: int) -> str:
    """JSON for people: what is short stays on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    pad, end = "  " * (depth + 1), "  " * depth
    if len(flat) + 2 * depth <= 100:
        return flat
    if is_object(value):
        inner = [f"{pad}{json.dumps(name)}: {_laid_out(each, depth + 1)}" for name, each in value.items()]
        return "{\n" + ",\n".join(inner) + f"\n{end}}}"
    if is_array(value):
        return "[\n" + ",\n".join(pad + _laid_out(each, depth + 1) for each in value) + f"\n{end}]"
    return flat


def rewrite() -> None:
    """Put the present outcome into every file that has another."""
    for path in golden_files():
        given, expected = parted(path)
        found = outcome(path, given)
        if found != expected:
            path.write_text(f"{given}\n{DASHES}\n{found}\n")
            sys.stdout.write(f"{path.relative_to(FOLDER)}\n")


if __name__ == "__main__":
    rewrite()
