"""Whatever arrives, a dialect reads it or says that it cannot; it never falls over."""

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.dialects import DIALECTS
from dragoman.dialects.a2a_v10.strict import hear_strict
from dragoman.dialects.dialect import Dialect, Exchange, Heard, StreamExchange, Verb, wire_error
from dragoman.dialects.hints import HINTS
from dragoman.dialects.jsonrpc import RPC_ERRORS, RpcError, read_reply
from dragoman.dialects.shapes import read_task, unwrapped
from dragoman.dialects.sse import SseEvent, SseParser
from dragoman.model.agent import AgentCard, Endpoint
from dragoman.model.errors import BadAgentReply, BadParams, DragomanError, TooLarge
from dragoman.model.events import Remote
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject, is_array, is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import Operation, SendTask, Unreadable
from dragoman.server.rpc import Asked, Batch, Unclaimed
from tests.dialects.goldens import HUB, LATER, outgoing, task_of
from tests.dialects.loops import EVERY_WIRE, WIRES, Wire, arriving, outgoing_of, replied, sent_and_read
from tests.dialects.loss_samples import CALL
from tests.dialects.stream_world import items_of
from tests.support.urls import served_urls

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
# Words that mean something: rubbish that is nearly right finds more than rubbish that is not.
NAMES = st.sampled_from(
    [
        *("status", "state", "result", "error", "code", "message", "details", "task", "kind", "id", "taskId", "data"),
        *(
            "contextId",
            "artifacts",
            "artifactId",
            "parts",
            "text",
            "raw",
            "url",
            "file",
            "bytes",
            "uri",
            "role",
            "name",
        ),
        *("history", "timestamp", "usage", "tokens", "cost_usd", "retryable", "retry_after", "self", "metadata"),
        *("skill", "input", "options", "timeout_ms", "context", "callback", "headers", "target_agent_id", "priority"),
        *("agent_card", "endpoint", "skills", "version", "description", "input_schema", "capabilities", "tags"),
        *("supportedInterfaces", "protocolVersion", "protocolBinding", "securitySchemes", "oauth2SecurityScheme"),
        *("flows", "provider", "organization", "extensions", "examples", "default", "jsonrpc", "method", "params"),
        *("messageId", "message_id", "taskId", "task_id", "role", "content", "configuration", "blocking", "filename"),
        *("type", "payload", "from", "to", "timestamp", "task_type", "title", "deadline", "nonce", "echo", "progress"),
        *("agentId", "action", "sender", "capabilities", "timeoutMs", "output", "reason", "webhookUrl", "card_data"),
        *("humanReadableId", "authSchemes", "supported_tasks", "tenant", "historyLength", "pageSize", "mediaType"),
    ]
)
WORDS = st.sampled_from(
    [
        *("TASK_STATE_COMPLETED", "TASK_STATE_WORKING", "completed", "failed", "cancelled", "running", "ROLE_AGENT"),
        *("ROLE_USER", "agent", "task", "message", "1.0", "JSONRPC", "http://agent.test/", "AP9i", "VALIDATION_ERROR"),
        *("2.0", "message/send", "message.send", "SendMessage", "tasks/send", "tasks/get", "a2a/task", "a2a/register"),
        *("task_assignment", "ping", "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02", "user", "text", "data", "file", "1.0.0"),
        *("RATE_LIMITED", "2026-01-12T10:00:00Z", "0001-01-01T00:00:00+23:59", -32602, 10**30, 1.5, True, None, ""),
    ]
)
NEARLY = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(NAMES, NEARLY, max_size=8)
TYPES = st.sampled_from([b"application/json", b"application/json; charset=utf-8", b"text/plain", b""])
EVERY = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)
LISTENING = pytest.mark.parametrize(
    "dialect", [each for each in DIALECTS.values() if each.listen is not None], ids=lambda dialect: dialect.slug
)
KINDS = ["task", "message", "statusUpdate", "artifactUpdate", "status-update", "artifact-update"]


PLACEHOLDER = re.compile(r"\{(\w+)\}")
CALLERS = [(wire, sent_and_read(wire, CALL)) for wire in WIRES]


def _readers() -> list[StreamExchange]:
    """One who asks for a stream, in every framing that has them."""
    found: list[StreamExchange] = []
    task = msgspec.structs.replace(task_of({}), remote=Remote(task_id="task-1"))
    for wire in WIRES:
        for feature, verb in ((Feature.STREAM, Verb.STREAM), (Feature.SUBSCRIBE, Verb.SUBSCRIBE)):
            if wire.dialect.listen is None or feature not in wire.features:
                continue
            request = wire.dialect.ask(outgoing_of(wire, CALL, verb, task))
            exchange = None if request is None else arriving(wire, request)
            if isinstance(exchange, StreamExchange):
                found.append(exchange)
    return found


READERS = _readers()
URLS = {slug: served_urls([dialect]) for slug, dialect in DIALECTS.items()}


def _with_interfaces(card: JsonObject, interfaces: list[JsonObject]) -> JsonObject:
    return {**card, "supportedInterfaces": interfaces}


def _wrapped(kind: str, inner: JsonObject) -> JsonObject:
    return {kind: inner}


def _of_kind(kind: str, inner: JsonObject) -> JsonObject:
    return {"result": {**inner, "kind": kind}}


def _joined(one: JsonObject, other: JsonObject) -> JsonObject:
    return {**one, **other}


def _read(dialect: Dialect, body: bytes, query: str = "", **headers: bytes) -> list[Operation]:
    """What each URL of a dialect makes of a request; whatever that is, it can be refused."""
    found: list[Operation] = []
    for method, path, served in URLS[dialect.slug]:
        url = PLACEHOLDER.sub("x", path)
        request = HttpRequest(
            method=method,
            url=f"{url}?{query}",
            headers={name.replace("_", "-").encode(): value for name, value in headers.items()},
            body=body,
            id="1",
            at=LATER,
            route=served.name,
            params=dict.fromkeys(PLACEHOLDER.findall(path), "x"),
            hub=HUB,
        )
        for exchange in _exchanges(served.read(request)):
            _refused(dialect, exchange)
            found.append(exchange.operation)
    return found


def _exchanges(read: Exchange | Asked | Batch) -> list[Exchange]:
    if isinstance(read, Batch):
        return [member.exchange for member in read.members]
    return [read.exchange] if isinstance(read, Asked) else [read]


def _refused(dialect: Dialect, exchange: Exchange) -> None:
    error = exchange.operation.error if isinstance(exchange.operation, Unreadable) else TooLarge()
    reply = exchange.refuse(error)
    assert reply.status < 500
    if reply.status == 204:
        return  # To a notification there is no answer.
    body = msgspec.json.decode(reply.body)
    if reply.status < 400:
        # Over JSON-RPC what is wrong stands in the frame.
        table = RPC_ERRORS if isinstance(exchange, Unclaimed) else dialect.errors
        assert (body["jsonrpc"], wire_error(table, error)[1]) == ("2.0", reply.status)
        assert body["error"]["code"] and "result" not in body
    else:
        assert "error" in body or "detail" in body


def _hear(dialect: Dialect, reply: HttpReply) -> Heard | None:
    sent = outgoing(Verb.SEND, task_of({}), Endpoint(dialect=dialect.slug, url="http://agent.test/"))
    try:
        heard = dialect.hear(sent, reply, LATER)
    except BadAgentReply as error:
        msgspec.json.encode(error.details)
        return None
    return heard


@EVERY
@given(body=st.binary(max_size=200), kind=TYPES, key=st.binary(max_size=20))
@example(body=b"\xff", kind=b"application/json", key=b"\xff")
def test_any_bytes_are_read_or_refused(dialect: Dialect, body: bytes, kind: bytes, key: bytes) -> None:
    _read(dialect, body, content_type=kind, idempotency_key=key, x_request_id=key)


@EVERY
@given(value=JSON | NEARLY | OBJECTS)
def test_any_json_is_read_or_refused(dialect: Dialect, value: Any) -> None:
    for operation in _read(dialect, msgspec.json.encode(value), content_type=b"application/json"):
        assert isinstance(operation, msgspec.Struct)


@EVERY
@given(
    query=st.text(max_size=60) | st.builds("max_p95_ms={}".format, st.integers() | st.text("0123456789", max_size=30))
)
@example(query="max_p95_ms=" + "0" * 12 + "9" * 5000)
@example(query="limit=²")
@example(query="min_rating=1e999&cursor=%ff")
def test_any_query_is_read_or_refused(dialect: Dialect, query: str) -> None:
    _read(dialect, b"", query)


@EVERY_WIRE
@given(
    name=st.sampled_from(["role", "skill", "agent", "parent", "title", "priority", "timeout_ms"]), value=JSON | NEARLY
)
@example(name="role", value=[])
@example(name="timeout_ms", value=True)
@example(name="priority", value={})
def test_a_hint_of_any_shape_is_read_or_counts_as_unsaid(wire: Wire, name: str, value: Any) -> None:
    request = wire.dialect.ask(outgoing_of(wire, CALL))
    assert request is not None
    body = msgspec.json.decode(request.body)
    for block in _blocks(body):
        block[name] = value
    sent = msgspec.structs.replace(request, body=msgspec.json.encode(body))
    assert isinstance(arriving(wire, sent).operation, SendTask)


def _blocks(value: Any) -> list[JsonObject]:
    """Every block of hints in a body."""
    if is_object(value):
        own = [value[HINTS]] if is_object(value.get(HINTS)) else []
        return own + [block for item in value.values() for block in _blocks(item)]
    return [block for item in value for block in _blocks(item)] if is_array(value) else []


@EVERY
@given(
    value=JSON
    | NEARLY
    | OBJECTS
    | OBJECTS.map(lambda inner: {"result": inner})
    | OBJECTS.map(lambda i: {"result": {"task": i}}),
    status=st.sampled_from([200, 200, 200, 201, 204, 301, 400, 401, 404, 429, 500, 503, 504]),
    after=st.sampled_from([b"", b"7", b"-1", b"99999999", b"\xb2", b"soon"]),
)
@example(value={"error": {"details": {"self": 1, "message": 2}}}, status=500, after=b"")
@example(value={"error": {"code": {}, "message": "no"}}, status=400, after=b"")
@example(
    value={"result": {"message": {"role": "agent", "parts": [], "timestamp": "0001-01-01T00:00:00+23:59"}}},
    status=200,
    after=b"",
)
def test_any_json_answer_is_heard_or_a_bad_reply(dialect: Dialect, value: Any, status: int, after: bytes) -> None:
    heard = _hear(dialect, HttpReply(status=status, headers={b"retry-after": after}, body=msgspec.json.encode(value)))
    if heard is None:
        return
    if not heard.events:
        assert not heard.settled
        return
    # What was heard can be taken into the task, and told to a caller of any dialect.
    task = task_of({})
    folded = fold(task, legal(task.state, heard.events))
    for wire, exchange in CALLERS:
        shown = replied(wire, exchange, folded)
        assert shown.status in (200, 400, 404, 429, 502, 503, 504)
        msgspec.json.decode(shown.body)


@EVERY
@given(body=st.binary(max_size=100), status=st.sampled_from([200, 404, 500]))
@example(body=b"[" * 5000, status=200)
@example(body=b'{"result":' * 5000, status=200)
def test_any_bytes_of_an_agent_are_heard_or_a_bad_reply(dialect: Dialect, body: bytes, status: int) -> None:
    _hear(dialect, HttpReply(status=status, body=body))


@LISTENING
@given(
    values=st.lists(
        NEARLY
        | OBJECTS
        | OBJECTS.map(lambda inner: {"result": inner})
        | st.builds(_wrapped, st.sampled_from(KINDS), OBJECTS)
        | st.builds(_of_kind, st.sampled_from(KINDS), OBJECTS),
        max_size=5,
    ),
    name=st.sampled_from(["", "message", "error", "chunk", "complete", "task_status", "task_message"]),
)
@example(values=[{"error": {"code": None, "message": [], "data": [1]}}], name="")
@example(values=[{"error": {"code": [], "message": "no", "data": None}}], name="")
def test_any_stream_of_an_agent_is_heard_or_refused(dialect: Dialect, values: list[Any], name: str) -> None:
    assert dialect.listen is not None
    task = task_of({})
    listener = dialect.listen(
        outgoing(Verb.STREAM, task, Endpoint(dialect=dialect.slug, url="http://agent.test/", features=dialect.features))
    )
    told: list[Any] = []
    for value in values:
        try:
            heard = listener.hear(SseEvent(name, msgspec.json.encode(value)), LATER)
        except DragomanError as error:
            msgspec.json.encode(error.details)
            break
        told += heard.events
        if heard.settled:
            break
    # What was heard can be taken into the task, and told to a caller of any dialect.
    items = items_of(task, told)
    for exchange in READERS:
        frames = exchange.stream("task-1", "ctx-1").frames
        SseParser().feed(b"".join([frames(item) for item in items]))


@EVERY
@given(value=OBJECTS | st.builds(_with_interfaces, OBJECTS, st.lists(OBJECTS, max_size=3)))
def test_any_card_is_read_or_refused(dialect: Dialect, value: Any) -> None:
    dialect.owns_card(value)
    try:
        card = dialect.read_card(value)
    except BadParams as error:
        assert error.details["errors"]
        return
    assert isinstance(card, AgentCard)
    msgspec.json.encode(card)


STRICT: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {"id": st.sampled_from(["T", ""]), "status": st.just({"state": "TASK_STATE_COMPLETED"})},
    optional={
        "contextId": st.sampled_from(["C", "", None]),
        "artifacts": st.lists(
            st.fixed_dictionaries(
                {
                    "artifactId": st.sampled_from(["A", "B", ""]),
                    "parts": st.lists(OBJECTS | st.just({"text": "x"}), max_size=2),
                },
                optional={"name": st.sampled_from(["n", "", None]), "metadata": st.sampled_from([{}, {"a": 1}, None])},
            ),
            max_size=2,
        ),
        "history": st.lists(st.fixed_dictionaries({"role": st.sampled_from(["ROLE_USER", "ROLE_AGENT"])}), max_size=2),
        "metadata": OBJECTS,
    },
)


@given(task=STRICT | st.builds(_joined, STRICT, OBJECTS))
def test_the_short_cut_for_strict_answers_hears_what_the_long_way_hears(task: Any) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": "1", "result": {"task": task}})
    short = hear_strict(body, at)
    if short is None:
        return
    result = read_reply(HttpReply(status=200, body=body))
    assert not isinstance(result, RpcError)
    assert is_object(result)
    kind, value = unwrapped(result)
    assert kind == "task"
    events, _, remote = read_task(value, at)
    assert (short.events, short.remote) == (events, remote)
