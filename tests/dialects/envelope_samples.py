"""What the tests of the envelope dialect share: messages, tasks, agents and answers with fixed ids and times."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.dialects.dialect import Exchange, Notice, Outgoing, Verb
from dragoman.dialects.envelope import DIALECT, make_dialect
from dragoman.model.agent import Agent, AgentCard, Endpoint, Skill
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Data, Message, Role
from dragoman.model.events import Happened, StatusChanged, TaskEvent
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import Operation, SendTask, Unreadable
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task, Trace

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "envelope"
AT: Final = datetime(2026, 1, 12, 10, 0, 0, tzinfo=UTC)
LATER: Final = AT + timedelta(seconds=2.5)
HUB: Final = "http://localhost:8700"
HUB_ID: Final = "1d6b2c3e-4f50-4a6b-8c7d-8e9fa0b1c2d3"
ONE: Final = "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b01"
TWO: Final = "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02"
MESSAGE_ID: Final = "2f9c4d6e-7b1a-4c3d-8e5f-6a7b8c9d0123"
LENIENT: Final = make_dialect(lenient_ids=True)


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def message_of(kind: str = "ping", payload: object = None, **changes: Any) -> dict[str, Any]:
    """A message that is in order, changed where a test says so; a member that is ... is left out."""
    whole = {
        "version": "1.0.0",
        "message_id": MESSAGE_ID,
        "timestamp": "2024-02-05T15:30:00Z",
        "from": ONE,
        "to": TWO,
        "type": kind,
        "payload": {"nonce": "n"} if payload is None else payload,
        **{name.rstrip("_"): value for name, value in changes.items()},
    }
    return {name: value for name, value in whole.items() if value is not ...}


def assignment(**changes: Any) -> dict[str, Any]:
    """The payload of an assignment that is in order."""
    whole = {
        "task_id": "task-456",
        "task_type": "research",
        "title": "Look",
        "description": "Look closely",
        "payload": {"q": 1},
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not ...}


def exchange_of(
    body: object, route: str = "messages", agent: str = "", lenient: bool = False, url: str = "", **headers: str
) -> Exchange:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    read = (LENIENT if lenient else DIALECT).read
    assert read is not None
    return read(
        HttpRequest(
            method="POST",
            url=url or "/a2a/messages",
            headers={name.encode(): value.encode() for name, value in sent.items() if value},
            body=body if isinstance(body, bytes) else json.dumps(body).encode(),
            id="1",
            at=AT,
            route=route,
            params={"agent": agent} if agent else {},
            hub=HUB,
        )
    )


def operation_of(body: object, **how: Any) -> Operation:
    return exchange_of(body, **how).operation


def refusal_of(body: object, **how: Any) -> dict[str, Any]:
    """The answer to what could not be read, with its HTTP status."""
    exchange = exchange_of(body, **how)
    assert isinstance(exchange.operation, Unreadable), exchange.operation
    return shown(exchange.refuse(exchange.operation.error))


def shown(reply: HttpReply) -> dict[str, Any]:
    assert reply.headers[b"content-type"] == b"application/json"
    return {"http": reply.status, **json.loads(reply.body)}


def named(refusal: dict[str, Any]) -> list[str]:
    """The fields that a refusal names."""
    return [error["path"] for error in refusal["payload"]["details"]["errors"]]


def task_of(state: TaskState = TaskState.WORKING, **changes: Any) -> Task:
    asked = SendTask(
        message=Message(id=MESSAGE_ID, role=Role.USER, parts=(Data(value={"q": 1}),)),
        alias="task-456",
        skill="research",
        sender=ONE,
    )
    whole: dict[str, Any] = {
        "id": "env-1",
        "tenant": "default",
        "caller_id": "operator",
        "agent_id": "analyst",
        "agent_version": "1.0.0",
        "dialect": "envelope",
        "context_id": "ctx-1",
        "asked": asked,
        "trace": Trace(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331"),
        "created_at": AT,
        "updated_at": AT,
        "ended_at": LATER if state in FINAL else None,
        "started_at": AT,
        "state": state,
        "skill": "research",
        **changes,
    }
    return Task(**whole)


def outgoing_of(verb: Verb = Verb.SEND, task: Task | None = None, **changes: Any) -> Outgoing:
    task = task or task_of(TaskState.SUBMITTED)
    whole: dict[str, Any] = {
        "verb": verb,
        "task": task,
        "asked": task.asked,
        "endpoint": Endpoint(dialect="envelope", url="http://agent.test", tenant=TWO),
        "at": LATER,
        "message": task.asked.message if verb is Verb.SEND else None,
        "timeout_ms": 30_000,
        "hub_url": HUB,
        "hub_id": HUB_ID,
        **changes,
    }
    return Outgoing(**whole)


def asked_of(outgoing: Outgoing) -> tuple[HttpRequest, dict[str, Any]]:
    request = DIALECT.ask(outgoing)
    assert request is not None
    return request, json.loads(request.body)


def notice_of(event: TaskEvent, task: Task, url: str = "http://caller.test", seq: int = 3) -> Notice:
    return Notice(
        callback=Callback(id="cb_1", dialect="envelope", agent_id=ONE, tells=Tells.STATES),
        task=task,
        happened=Happened(seq=seq, event=event),
        url=url,
        recipient=ONE,
        hub_url=HUB,
        hub_id=HUB_ID,
        at=LATER,
    )


def told_of(task: Task, **event: Any) -> dict[str, Any]:
    """What the task's giver is told of its present state."""
    assert DIALECT.notify is not None
    request = DIALECT.notify(notice_of(StatusChanged(at=LATER, state=task.state, **event), task))
    assert request is not None
    body: dict[str, Any] = json.loads(request.body)
    return body


def agent_of(card: AgentCard | None = None, **changes: Any) -> Agent:
    card = card or AgentCard(
        id="analyst", name="Analyst", skills=(Skill(id="research", name="research"),), labels=("research",)
    )
    kept: dict[str, Any] = {"card": card, "uuid": TWO, "tenant": "default", "owner_id": "operator"}
    agent = Agent(**kept, registered_at=AT, updated_at=LATER)
    return msgspec.structs.replace(agent, **changes)
