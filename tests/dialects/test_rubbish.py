"""Whatever arrives, a dialect reads it or says that it cannot; it never falls over."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.dialects import DIALECTS
from dragoman.dialects.a2a_v10.strict import hear_strict
from dragoman.dialects.dialect import Dialect, Heard, Verb
from dragoman.dialects.jsonrpc import RpcError, read_reply
from dragoman.dialects.shapes import read_task, unwrapped
from dragoman.model.agent import AgentCard, Endpoint
from dragoman.model.errors import BadAgentReply, BadParams
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject, is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import Operation, Unreadable
from tests.dialects.goldens import LATER, outgoing, task_of

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
        *("flows", "provider", "organization", "extensions", "examples", "default"),
    ]
)
WORDS = st.sampled_from(
    [
        *("TASK_STATE_COMPLETED", "TASK_STATE_WORKING", "completed", "failed", "cancelled", "running", "ROLE_AGENT"),
        *("ROLE_USER", "agent", "task", "message", "1.0", "JSONRPC", "http://agent.test/", "AP9i", "VALIDATION_ERROR"),
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
READERS = pytest.mark.parametrize(
    "dialect", [each for each in DIALECTS.values() if each.read], ids=lambda dialect: dialect.slug
)


def _with_interfaces(card: JsonObject, interfaces: list[JsonObject]) -> JsonObject:
    return {**card, "supportedInterfaces": interfaces}


def _joined(one: JsonObject, other: JsonObject) -> JsonObject:
    return {**one, **other}


def _read(dialect: Dialect, body: bytes, query: str = "", **headers: bytes) -> list[Operation]:
    """What each route makes of a request; what is unreadable can be refused."""
    assert dialect.read is not None
    found: list[Operation] = []
    for route in dialect.routes:
        request = HttpRequest(
            method=route.method,
            url=f"/path?{query}",
            headers={name.replace("_", "-").encode(): value for name, value in headers.items()},
            body=body,
            id="1",
            at=LATER,
            route=route.name,
            params={"agent": "x", "call": "x"},
        )
        exchange = dialect.read(request)
        if isinstance(exchange.operation, Unreadable):
            assert 400 <= exchange.refuse(exchange.operation.error).status < 500
        found.append(exchange.operation)
    return found


def _hear(dialect: Dialect, reply: HttpReply) -> Heard | None:
    sent = outgoing(Verb.SEND, task_of({}), Endpoint(dialect=dialect.slug, url="http://agent.test/"))
    try:
        heard = dialect.hear(sent, reply, LATER)
    except BadAgentReply as error:
        msgspec.json.encode(error.details)
        return None
    return heard


@READERS
@given(body=st.binary(max_size=200), kind=TYPES, key=st.binary(max_size=20))
@example(body=b"\xff", kind=b"application/json", key=b"\xff")
def test_any_bytes_are_read_or_refused(dialect: Dialect, body: bytes, kind: bytes, key: bytes) -> None:
    _read(dialect, body, content_type=kind, idempotency_key=key, x_request_id=key)


@READERS
@given(value=JSON | NEARLY | OBJECTS)
def test_any_json_is_read_or_refused(dialect: Dialect, value: Any) -> None:
    for operation in _read(dialect, msgspec.json.encode(value), content_type=b"application/json"):
        assert isinstance(operation, msgspec.Struct)


@READERS
@given(
    query=st.text(max_size=60) | st.builds("max_p95_ms={}".format, st.integers() | st.text("0123456789", max_size=30))
)
@example(query="max_p95_ms=" + "0" * 12 + "9" * 5000)
@example(query="limit=²")
@example(query="min_rating=1e999&cursor=%ff")
def test_any_query_is_read_or_refused(dialect: Dialect, query: str) -> None:
    _read(dialect, b"", query)


@EVERY
@settings(max_examples=200)
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
@example(
    value={"result": {"message": {"role": "agent", "parts": [], "timestamp": "0001-01-01T00:00:00+23:59"}}},
    status=200,
    after=b"",
)
def test_any_json_answer_is_heard_or_a_bad_reply(dialect: Dialect, value: Any, status: int, after: bytes) -> None:
    heard = _hear(dialect, HttpReply(status=status, headers={b"retry-after": after}, body=msgspec.json.encode(value)))
    if heard is None:
        return
    assert heard.events
    # What was heard can be taken into the task, and told to the caller.
    task = task_of({})
    folded = fold(task, legal(task.state, heard.events))
    platform = DIALECTS["platform"]
    assert platform.read is not None
    asked = HttpRequest(method="POST", url="/", id="1", at=LATER, route="status", params={"call": "x"})
    if folded.ended:
        shown = platform.read(asked).reply(folded)
        assert shown.status in (200, 400, 404, 429, 502, 503, 504)
        msgspec.json.decode(shown.body)


@EVERY
@given(body=st.binary(max_size=100), status=st.sampled_from([200, 404, 500]))
@example(body=b"[" * 5000, status=200)
@example(body=b'{"result":' * 5000, status=200)
def test_any_bytes_of_an_agent_are_heard_or_a_bad_reply(dialect: Dialect, body: bytes, status: int) -> None:
    _hear(dialect, HttpReply(status=status, body=body))


@EVERY
@settings(max_examples=200)
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


@settings(max_examples=300)
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
