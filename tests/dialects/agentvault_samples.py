"""What the tests of AgentVault's halves share: requests, tasks, agents, and the examples' files."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from dragoman.dialects.agentvault.inbound import read
from dragoman.dialects.agentvault.outbound import hear
from dragoman.dialects.dialect import RPC, Exchange, Heard, Outgoing, Place, Verb
from dragoman.model.agent import Agent, AgentCard, Endpoint
from dragoman.model.content import Data, Link, Message, Part, Role, Text
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import (
    SendTask,
    Unreadable,
    Wait,
)
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "agentvault"
AT: Final = datetime(2026, 1, 12, 10, 0, 0, tzinfo=UTC)
LATER: Final = AT + timedelta(milliseconds=300)
HUB: Final = "http://localhost:8700"
UUID: Final = "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02"
JSON: Final = {b"content-type": b"application/json"}
HI: Final = Message(id="msg-1", role=Role.USER, parts=(Text(text="echo:hi"),))


def published(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def rpc(body: object, headers: dict[bytes, bytes] | None = None, **params: str) -> Exchange:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {**JSON, **(headers or {})}
    return read(HttpRequest(method="POST", url="/", headers=sent, body=raw, id="1", at=AT, route=RPC, params=params))


def request_of(method: str, params: object, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params, **more}


def sending(message: object, **params: Any) -> Exchange:
    return rpc(request_of("tasks/send", {"message": message, **params}))


def sent_by(exchange: Exchange) -> SendTask:
    assert isinstance(exchange.operation, SendTask), exchange.operation
    return exchange.operation


def refusal_of(exchange: Exchange) -> dict[str, Any]:
    assert isinstance(exchange.operation, Unreadable), exchange.operation
    body = body_of(exchange.refuse(exchange.operation.error))
    assert "result" not in body
    return body


def body_of(reply: HttpReply) -> Any:
    return json.loads(reply.body)


def task_of(state: TaskState = TaskState.SUBMITTED, **more: Any) -> Task:
    asked = more.pop("asked", SendTask(message=HI, wait=Wait.NONE))
    plain: dict[str, Any] = {
        "id": "av-1",
        "tenant": "default",
        "caller_id": "me",
        "agent_id": "echo",
        "agent_version": "1",
        "dialect": "agentvault",
        "context_id": "ctx-1",
        "trace": Trace(trace_id="t", span_id="s"),
        "created_at": AT,
        "updated_at": LATER,
    }
    plain |= {"asked": asked, "state": state, **more}
    return Task(**plain)


def agent_said(text: str) -> Message:
    return Message(id="m2", role=Role.AGENT, parts=(Text(text=text),))


def outgoing(verb: Verb, task: Task, **more: Any) -> Outgoing:
    plain: dict[str, Any] = {
        "asked": task.asked,
        "endpoint": Endpoint(dialect="agentvault", url="http://agent.test/a2a/"),
        "message": task.asked.message if verb is Verb.SEND else None,
        "timeout_ms": 5000,
    }
    return Outgoing(verb=verb, task=task, at=AT, **{**plain, **more})


def heard_from(verb: Verb, body: object, status: int = 200, task: Task | None = None, **more: Any) -> Heard:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return hear(outgoing(verb, task or task_of(), **more), HttpReply(status=status, body=raw), LATER)


def result_of(result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "av-1", "result": result}


def folded(heard: Heard, task: Task | None = None) -> Task:
    task = task or task_of()
    return fold(task, legal(task.state, heard.events))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
URLS = st.sampled_from(["https://a.test/f", "http://localhost:1/x?y=z", "gs://b/x"])
WORDS = st.none() | st.sampled_from(["x", "image/png"])
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=st.text(max_size=9)),
    st.builds(Data, value=JSON_VALUES),
    st.builds(
        Data,
        value=st.lists(
            st.sampled_from([{"type": "text", "content": "x"}, {"type": "data", "content": {}}, 1]), max_size=3
        ),
    ),
    st.builds(Link, url=URLS, media_type=WORDS, filename=WORDS),
)


def agent_of(card: AgentCard, **more: Any) -> Agent:
    plain: dict[str, Any] = {"tenant": "default", "owner_id": "key_7", "registered_at": AT, "updated_at": AT}
    return Agent(card=card, uuid=UUID, **{**plain, **more})


def place_of(agent: Agent, hub: str = HUB, **more: Any) -> Place:
    return Place(hub_url=hub, base_url=f"{hub}/agents/{agent.id}/", **more)
