"""What the tests of the directory's dialect share: requests, tasks, agents and answers with fixed ids and times."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.directory import DIALECT
from dragoman.dialects.directory.inbound import DirectoryExchange, read
from dragoman.model.agent import Agent, Endpoint
from dragoman.model.content import Artifact, Data, Message, Part, Role, Text
from dragoman.model.events import ArtifactChunk, StatusChanged
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import (
    SendTask,
    Unreadable,
)
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task, Trace

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "directory"
AT: Final = datetime(2026, 1, 12, 10, 0, 0, tzinfo=UTC)
HUB: Final = "http://localhost:8700"
CARD: Final[dict[str, Any]] = {
    "agentId": "research-agent",
    "name": "Research Agent",
    "capabilities": ["research", "search"],
    "endpoint": "http://localhost:9001",
}
TASK: Final[dict[str, Any]] = {"taskId": "task-123", "action": "search", "sender": "my-agent", "input": {"q": 1}}
QUESTION: Final = Message(id="q", role=Role.AGENT, parts=(Text(text="Which one?"),))


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def request_of(body: object, route: str = "rpc", agent: str | None = None, **headers: str) -> HttpRequest:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return HttpRequest(
        method="POST",
        url="/a2a",
        headers={name.encode(): value.encode() for name, value in sent.items() if value},
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        id="1",
        at=AT,
        route=route,
        params={} if agent is None else {"agent": agent},
        hub=HUB,
    )


def rpc(method: str, params: object, request_id: object = "r-1") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def exchange_of(body: object, route: str = "rpc", agent: str | None = None, **headers: str) -> DirectoryExchange:
    return read(request_of(body, route, agent, **headers))


def refusal_of(exchange: DirectoryExchange) -> dict[str, Any]:
    """The answer to what could not be read."""
    assert isinstance(exchange.operation, Unreadable), exchange.operation
    reply = exchange.refuse(exchange.operation.error)
    return {"http": reply.status, **json.loads(reply.body)}


def task_of(state: TaskState = TaskState.COMPLETED, parts: tuple[Part, ...] = (), **changes: Any) -> Task:
    asked = SendTask(message=Message(id="m", role=Role.USER, parts=(Data(value={"q": 1}),)), alias="task-123")
    artifacts = (Artifact(id="result", parts=parts),) if parts else ()
    return Task(
        id="dir-1",
        tenant="default",
        caller_id="operator",
        agent_id="research-agent",
        agent_version="1.0.0",
        dialect="directory",
        context_id="ctx-1",
        asked=asked,
        trace=Trace(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331"),
        created_at=AT,
        updated_at=AT,
        ended_at=AT if state in FINAL else None,
        state=state,
        skill="search",
        artifacts=artifacts,
        **changes,
    )


def agent_of(card: dict[str, Any], **changes: Any) -> Agent:
    read_card = msgspec.structs.replace(DIALECT.read_card(card), **changes)
    return Agent(card=read_card, uuid="u", tenant="default", owner_id="o", registered_at=AT, updated_at=AT)


def outgoing_of(verb: Verb, parts: tuple[Part, ...] = (), **changes: Any) -> Outgoing:
    task = task_of(TaskState.WORKING)
    message = Message(id="m", role=Role.USER, parts=parts) if verb in (Verb.SEND, Verb.STREAM) else None
    endpoint = Endpoint(dialect="directory", url="http://agent.test/a2a?x=1")
    given: dict[str, Any] = {"caller": "agt_caller", "timeout_ms": 29950} | changes
    return Outgoing(verb=verb, task=task, asked=task.asked, endpoint=endpoint, at=AT, message=message, **given)


def heard_of(body: object, status: int = 200, **headers: str) -> Heard:
    sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    return DIALECT.hear(outgoing_of(Verb.SEND), HttpReply(status=status, headers=sent, body=said), AT)


def end_of(heard: Heard) -> StatusChanged:
    assert heard.settled
    last = heard.events[-1]
    assert isinstance(last, StatusChanged)
    return last


def answer_of(heard: Heard) -> tuple[Part, ...]:
    assert end_of(heard).state is TaskState.COMPLETED
    (chunk,) = [event for event in heard.events if isinstance(event, ArtifactChunk)]
    return chunk.artifact.parts
