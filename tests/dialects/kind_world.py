"""What the tests of A2A 0.3 and of dotted share: requests, outgoing calls, replies, and content of every sort."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from dragoman.dialects.dialect import RPC, Dialect, Exchange, Heard, Outgoing, Verb
from dragoman.model.agent import Endpoint
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json
from dragoman.model.operations import SendTask, Unreadable
from dragoman.model.task import Task
from tests.dialects.goldens import AT, HUB, LATER, task_of

TEXT = {"kind": "text", "text": "hello"}


def rpc_body(method: str, params: Any = None, request_id: Any = "req-1") -> bytes:
    """One JSON-RPC request."""
    framed: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(framed if params is None else {**framed, "params": params}).encode()


def posted(body: bytes, *, agent: str | None = "agt_x", url: str = "/agents/agt_x", **headers: str) -> HttpRequest:
    """A request as it arrives at an agent's base, or (without an agent) at the hub's root."""
    given = {"content_type": "application/json", **headers}
    return HttpRequest(
        method="POST",
        url=url,
        headers={name.replace("_", "-").encode(): value.encode() for name, value in given.items() if value},
        body=body,
        id="0123456789abcdef",
        at=AT,
        route=RPC,
        params={} if agent is None else {"agent": agent},
        hub=HUB,
    )


def read(dialect: Dialect, request: HttpRequest) -> Exchange:
    """The exchange of a request."""
    assert dialect.read is not None
    return dialect.read(request)


def sent(dialect: Dialect, method: str, params: Any, **more: Any) -> SendTask:
    """What a request to send asks for."""
    operation = read(dialect, posted(rpc_body(method, params), **more)).operation
    assert isinstance(operation, SendTask), operation
    return operation


def refusal(dialect: Dialect, request: HttpRequest) -> tuple[int, Json]:
    """How a request that makes no sense is refused: the HTTP status, and the whole answer."""
    exchange = read(dialect, request)
    assert isinstance(exchange.operation, Unreadable), exchange.operation
    reply = exchange.refuse(exchange.operation.error)
    return reply.status, json.loads(reply.body)


def answer(dialect: Dialect, method: str, params: Any, task: Task) -> Json:
    """The result that a request gets once the hub has a task for it."""
    reply = read(dialect, posted(rpc_body(method, params))).reply(task)
    assert reply.status == 200
    body = json.loads(reply.body)
    assert set(body) == {"jsonrpc", "id", "result"}
    return body["result"]


def outgoing(
    dialect: Dialect, verb: Verb, task: Task, *, message: Message | None = None, version: str | None = None, **more: Any
) -> Outgoing:
    """A request to an agent, before it is put into words."""
    return Outgoing(
        verb=verb,
        task=task,
        asked=more.pop("asked", task.asked),
        endpoint=Endpoint(dialect=dialect.slug, url="http://agent.test/", version=version),
        at=AT,
        message=(message or task.asked.message) if verb in (Verb.SEND, Verb.STREAM) else None,
        timeout_ms=29950,
        **more,
    )


def asked(dialect: Dialect, call: Outgoing) -> tuple[HttpRequest, Json]:
    """The request, and its body."""
    request = dialect.ask(call)
    assert request is not None
    return request, json.loads(request.body)


def heard(dialect: Dialect, body: Any, *, status: int = 200, version: str | None = None, **headers: str) -> Heard:
    """What an agent's answer to a send says."""
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    reply = HttpReply(status=status, headers=given, body=said)
    return dialect.hear(outgoing(dialect, Verb.SEND, task_of({}), version=version), reply, LATER)


def result(value: Any) -> dict[str, Any]:
    """An answer with a result."""
    return {"jsonrpc": "2.0", "id": "a2a_call_1", "result": value}


def failure(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    """An answer with an error."""
    return {"jsonrpc": "2.0", "id": "a2a_call_1", "error": {"code": code, "message": message, **more}}


def refused_as(dialect: Dialect, error: DragomanError) -> tuple[int, Json]:
    """An error of the hub's in a dialect's words: the HTTP status, and the error member."""
    reply = read(dialect, posted(rpc_body("message/send", {"message": {"role": "user", "parts": [TEXT]}}))).refuse(
        error
    )
    return reply.status, json.loads(reply.body)["error"]


# -- content of every sort

_WORD = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
_JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | _WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORD, inner, max_size=3),
    max_leaves=6,
)
_METADATA = st.none() | st.dictionaries(st.sampled_from(["note", "x"]), _JSON, min_size=1, max_size=2)


def _about() -> dict[str, st.SearchStrategy[Any]]:
    return {"media_type": st.none() | st.just("text/x-y"), "filename": st.none() | _WORD, "metadata": _METADATA}


PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=st.text(st.characters(exclude_categories=("Cs",)), max_size=20), **_about()),
    st.builds(Data, value=_JSON, **_about()),
    st.builds(Blob, raw=st.binary(max_size=20), **_about()),
    st.builds(Link, url=_WORD, **_about()),
)
MESSAGES: st.SearchStrategy[Message] = st.builds(
    Message,
    id=_WORD,
    role=st.sampled_from(Role),
    parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple),
    references=st.lists(_WORD, max_size=2).map(tuple),
    extensions=st.lists(_WORD, max_size=2).map(tuple),
    metadata=_METADATA,
)
ARTIFACTS: st.SearchStrategy[Artifact] = st.builds(
    Artifact,
    id=_WORD,
    parts=st.lists(PARTS, max_size=3).map(tuple),
    name=st.none() | _WORD,
    description=st.none() | _WORD,
    extensions=st.lists(_WORD, max_size=2).map(tuple),
    metadata=_METADATA,
)


def with_asked(task: Task, **changes: Any) -> Task:
    """A task that was asked for in another way."""
    return msgspec.structs.replace(task, asked=msgspec.structs.replace(task.asked, **changes))
