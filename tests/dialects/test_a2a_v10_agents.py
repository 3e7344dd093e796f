"""A2A 1.0 towards agents: what the hub asks, in both framings, and what their answers mean, strict or not."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.dialects.a2a_v10 import DIALECT
from dragoman.dialects.dialect import Heard, Verb
from dragoman.model.agent import Binding
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import BadAgentReply
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, Usage
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.lifecycle import artifacts_of, fold, output_of
from dragoman.model.operations import SendTask, Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.task import Task
from tests.dialects.a2a_v10_samples import outgoing, read, rest, rpc
from tests.dialects.goldens import AT, LATER, task_of

ASKED = task_of({"id": "task-1", "remote": {"task_id": "remote:1/é", "context_id": "remote-ctx"}})


def _asked(request: HttpRequest | None) -> Any:
    assert request is not None
    return json.loads(request.body)


def _heard(body: Any, status: int = 200, task: Task | None = None, **headers: str) -> Heard:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return DIALECT.hear(
        outgoing(Verb.SEND, task or task_of({})), HttpReply(status=status, headers=given, body=raw), LATER
    )


def _last(heard: Heard) -> StatusChanged:
    last = heard.events[-1]
    assert isinstance(last, StatusChanged)
    return last


def test_every_request_says_its_version_and_what_it_takes() -> None:
    for verb in Verb:
        for binding in (Binding.JSONRPC, Binding.HTTP):
            request = DIALECT.ask(outgoing(verb, ASKED, binding=binding))
            assert request is not None
            assert request.headers[b"a2a-version"] == b"1.0"
            assert request.headers[b"accept"] == b"application/json, text/event-stream"
            assert request.headers.get(b"content-type") == (b"application/json" if request.body else None)


def test_both_framings_send_the_same_request() -> None:
    by_rpc = DIALECT.ask(outgoing(Verb.SEND, ASKED))
    by_path = DIALECT.ask(outgoing(Verb.SEND, ASKED, binding=Binding.HTTP))
    assert by_rpc is not None
    assert by_path is not None
    assert _asked(by_rpc)["params"] == _asked(by_path)
    assert (by_rpc.method, by_rpc.url) == ("POST", "http://agent.test/a2a/")
    assert (by_path.method, by_path.url) == ("POST", "http://agent.test/a2a/message:send")
    assert by_rpc.headers[b"idempotency-key"] == by_path.headers[b"idempotency-key"] == b"task-1"


def test_a_task_is_named_in_the_path_with_every_character_escaped() -> None:
    get = DIALECT.ask(outgoing(Verb.GET, ASKED, binding=Binding.HTTP))
    cancel = DIALECT.ask(outgoing(Verb.CANCEL, ASKED, binding=Binding.HTTP))
    assert get is not None
    assert cancel is not None
    assert (get.method, get.url, get.body) == ("GET", "http://agent.test/a2a/tasks/remote%3A1%2F%C3%A9", b"")
    assert (cancel.method, cancel.url) == ("POST", "http://agent.test/a2a/tasks/remote%3A1%2F%C3%A9:cancel")
    assert cancel.body == b"{}"


def test_a_tenant_goes_where_the_framing_has_it() -> None:
    for url in ("http://agent.test/pre/fix", "http://agent.test/pre/fix/"):
        by_path = DIALECT.ask(outgoing(Verb.SEND, ASKED, binding=Binding.HTTP, url=url, tenant="a b"))
        assert by_path is not None
        assert by_path.url == "http://agent.test/pre/fix/a%20b/message:send"
        assert "tenant" not in _asked(by_path)
    for verb in Verb:
        assert _asked(DIALECT.ask(outgoing(verb, ASKED, tenant="a b")))["params"]["tenant"] == "a b"
    query = DIALECT.ask(outgoing(Verb.GET, ASKED, binding=Binding.HTTP, url="http://agent.test/?assistant=1"))
    assert query is not None
    assert query.url == "http://agent.test/tasks/remote%3A1%2F%C3%A9?assistant=1"


def test_what_the_agent_never_named_cannot_be_asked_for() -> None:
    for binding in (Binding.JSONRPC, Binding.HTTP):
        assert DIALECT.ask(outgoing(Verb.GET, task_of({}), binding=binding)) is None
        assert DIALECT.ask(outgoing(Verb.CANCEL, task_of({}), binding=binding)) is None


def test_metadata_of_the_request_and_of_the_message_stay_apart() -> None:
    task = task_of({"asked": {"metadata": {"a": 1}}})
    message = msgspec.structs.replace(task.asked.message, metadata={"b": 2})
    asked = msgspec.structs.replace(task.asked, message=message)
    params = _asked(DIALECT.ask(outgoing(Verb.SEND, task, asked=asked)))["params"]
    assert params["metadata"] == {"a": 1}
    assert params["message"]["metadata"]["b"] == 2
    assert set(params["message"]["metadata"]) == {"b", "dragoman"}
    assert params["message"]["metadata"]["dragoman"]["skill"] == "search"


def test_a_call_that_nobody_waits_for_returns_at_once() -> None:
    task = task_of({"asked": {"wait": "none"}})
    assert _asked(DIALECT.ask(outgoing(Verb.SEND, task)))["params"]["configuration"] == {"returnImmediately": True}
    assert "configuration" not in _asked(DIALECT.ask(outgoing(Verb.SEND, task_of({}))))["params"]


def test_a_message_that_continues_goes_into_the_agents_own_task() -> None:
    further = Message(id="m2", role=Role.USER, parts=(Text(text="Berlin"),))
    asked = SendTask(message=further, continues="task-1")
    request = DIALECT.ask(outgoing(Verb.SEND, ASKED, asked=asked))
    shown = _asked(request)["params"]["message"]
    assert (shown["taskId"], shown["contextId"], shown["messageId"]) == ("remote:1/é", "remote-ctx", "m2")
    assert request is not None
    assert request.headers[b"idempotency-key"] == b"m2"


TEXTS = st.text(max_size=8)
WORDS = st.text(min_size=1, max_size=8)
FREE = st.dictionaries(TEXTS.map("x_{}".format), st.integers() | TEXTS, min_size=1, max_size=2)
ABOUT = {
    "media_type": st.none() | WORDS,
    "filename": st.none() | WORDS,
    "metadata": st.none() | FREE,
}
JSON = st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, lambda each: st.lists(each, max_size=2) | FREE)
PART: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=TEXTS, **ABOUT),
    st.builds(Data, value=JSON, **ABOUT),
    st.builds(Blob, raw=st.binary(max_size=8), **ABOUT),
    st.builds(Link, url=WORDS, **ABOUT),
)
PARTS = st.lists(PART, min_size=1, max_size=3).map(tuple)
MESSAGE = st.builds(
    Message,
    id=WORDS,
    role=st.sampled_from(Role),
    parts=PARTS,
    references=st.lists(WORDS, max_size=2).map(tuple),
    extensions=st.lists(WORDS, max_size=2).map(tuple),
    metadata=st.none() | FREE,
)
ARTIFACT = st.builds(
    Artifact,
    id=WORDS,
    parts=PARTS,
    name=st.none() | WORDS,
    description=st.none() | WORDS,
    kind=st.none() | WORDS,
    extensions=st.lists(WORDS, max_size=2).map(tuple),
    metadata=st.none() | FREE,
)


@settings(deadline=None)
@given(
    message=MESSAGE,
    metadata=st.none() | FREE,
    accepts=st.lists(WORDS, max_size=2).map(tuple),
    wait=st.sampled_from([Wait.END, Wait.NONE]),
    framing=st.sampled_from([Binding.JSONRPC, Binding.HTTP]),
)
def test_what_the_hub_asks_is_read_back_as_what_was_asked(
    message: Message, metadata: dict[str, Any] | None, accepts: tuple[str, ...], wait: Wait, framing: Binding
) -> None:
    asked = SendTask(message=message, metadata=metadata, accepts=accepts, wait=wait)
    request = DIALECT.ask(outgoing(Verb.SEND, task_of({}), asked=asked, binding=framing))
    assert request is not None
    route, url = ("rpc", "/") if framing is Binding.JSONRPC else ("send", "/message:send")
    arrived = HttpRequest(method="POST", url=url, headers=request.headers, body=request.body, route=route)
    again = read(arrived).operation
    assert isinstance(again, SendTask), again
    assert (again.message, again.metadata, again.accepts, again.wait) == (message, metadata, accepts, wait)
    assert (again.context_id, again.skill, again.timeout_s) == ("conv_1", "search", 20.0)


@settings(deadline=None)
@given(
    state=st.sampled_from(sorted(FINAL | INTERRUPTED)),
    artifacts=st.lists(ARTIFACT, max_size=2, unique_by=lambda each: each.id),
    said=st.lists(MESSAGE.filter(lambda each: each.role is not Role.USER), max_size=2, unique_by=lambda each: each.id),
    status=st.none() | MESSAGE.filter(lambda each: each.role is not Role.USER),
    progress=st.none() | st.floats(0, 1),
    used=st.none() | st.builds(Usage, tokens=st.none() | st.integers(0, 10**9), cost_usd=st.none() | st.floats(0, 99)),
    route=st.sampled_from(["rpc", "get"]),
)
def test_what_the_hub_shows_is_heard_as_what_it_was(
    state: TaskState,
    artifacts: list[Artifact],
    said: list[Message],
    status: Message | None,
    progress: float | None,
    used: Usage | None,
    route: str,
) -> None:
    task = msgspec.structs.replace(
        task_of({}),
        state=state,
        artifacts=tuple(artifacts),
        messages=tuple(said),
        status_message=status,
        progress=progress,
        usage=used,
    )
    request = rpc("GetTask", {"id": "x"}) if route == "rpc" else rest("GET", "/tasks/x", "get", task="x")
    heard = DIALECT.hear(outgoing(Verb.GET, ASKED), read(request).reply(task), AT)
    again = fold(task_of({}), list(heard.events))
    assert heard.settled
    assert heard.remote is not None
    assert (heard.remote.task_id, heard.remote.context_id) == (task.id, task.context_id)
    assert again.state is state
    assert again.artifacts == artifacts_of(task)
    assert [msgspec.structs.replace(each, at=None) for each in again.messages] == said
    assert (again.status_message and msgspec.structs.replace(again.status_message, at=None)) == status
    assert (again.progress, again.usage or Usage()) == (progress, used or Usage())
    assert output_of(again) == output_of(task)


def test_a_direct_message_is_heard_as_one() -> None:
    direct = task_of(
        {
            "state": "completed",
            "direct": True,
            "messages": [{"id": "m", "role": "agent", "parts": [{"type": "text", "text": "hi"}]}],
        }
    )
    reply = read(rpc("SendMessage", {"message": {"messageId": "m", "role": 1, "parts": [{"text": "x"}]}})).reply(direct)
    heard = DIALECT.hear(outgoing(Verb.SEND, task_of({})), reply, AT)
    first = heard.events[0]
    assert isinstance(first, MessageAdded)
    assert (first.direct, first.message.parts) == (True, (Text(text="hi"),))


TASK = {"id": "T", "contextId": "C", "status": {"state": "TASK_STATE_COMPLETED"}}
SAID = {"messageId": "s", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}
ECHO = {"messageId": "u", "role": "ROLE_USER", "parts": [{"text": "hi"}]}


@pytest.mark.parametrize(
    "result",
    [
        {"task": {**TASK, "artifacts": [{"artifactId": "a", "parts": [{"text": "hello"}]}]}},
        {"task": {**TASK, "status": {"state": 3}, "artifacts": [{"parts": [{"text": "hello"}]}]}},
        {**TASK, "artifacts": [{"artifact_id": "a", "parts": [{"kind": "text", "text": "hello"}]}]},
        {"task": {**TASK, "status": {"state": "TASK_STATE_COMPLETED", "message": SAID}}},
        {"task": {**TASK, "history": [ECHO, SAID]}},
        {
            "task": {
                **TASK,
                "status": {"state": "completed", "timestamp": "2026-11-15T18:44:47"},
                "history": [ECHO, SAID],
            }
        },
        {"kind": "task", **TASK, "artifacts": [{"artifactId": "a", "parts": [{"type": "text", "text": "hello"}]}]},
        {"message": SAID},
        {"kind": "message", "message_id": "s", "role": "assistant", "content": [{"text": "hello"}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("framed", [True, False])
def test_the_answer_is_found_wherever_an_agent_puts_it(result: dict[str, Any], framed: bool) -> None:
    heard = _heard({"jsonrpc": "2.0", "id": "x", "result": result, "error": None} if framed else result)
    assert heard.settled
    assert output_of(fold(task_of({}), list(heard.events))) == (Text(text="hello"),)


def test_older_words_are_no_answer_to_what_was_asked_since() -> None:
    heard = _heard({"task": {**TASK, "history": [ECHO, SAID, {**ECHO, "messageId": "u2"}]}})
    assert output_of(fold(task_of({}), list(heard.events))) == ()


def test_what_is_known_already_is_not_said_again() -> None:
    known = task_of({"messages": [{"id": "s", "role": "agent", "parts": [{"type": "text", "text": "hello"}]}]})
    more = {**SAID, "messageId": "s2"}
    heard = _heard({"task": {**TASK, "history": [ECHO, SAID, ECHO, more]}}, task=known)
    assert [event.message.id for event in heard.events if isinstance(event, MessageAdded)] == ["s2"]


def test_a_task_that_goes_on_is_no_answer_yet() -> None:
    for state in ("TASK_STATE_SUBMITTED", "working", "", "TASK_STATE_UNSPECIFIED", 2):
        heard = _heard({"task": {**TASK, "status": {"state": state}}})
        assert not heard.settled
        assert heard.remote is not None


def test_whole_doubles_are_the_integers_they_were() -> None:
    artifacts = '"artifacts":[{"artifactId":"a","parts":[{"data":{"n":1.0,"x":1.5}}]}]'
    body = f'{{"task":{{"id":"T","status":{{"state":"TASK_STATE_COMPLETED"}},{artifacts}}}}}'.encode()
    first = _heard(body).events[0]
    assert isinstance(first, ArtifactChunk)
    part = first.artifact.parts[0]
    assert isinstance(part, Data)
    assert (part.value, type(part.value["n"])) == ({"n": 1, "x": 1.5}, int)


def _rest_error(status: int, word: str, reason: str) -> dict[str, Any]:
    return {"error": {"code": status, "status": word, "message": "no", "details": [{"@type": "x", "reason": reason}]}}


@pytest.mark.parametrize(
    ("status", "body", "code", "reason"),
    [
        (200, {"error": {"code": -32602, "message": "no"}}, "VALIDATION_ERROR", None),
        (200, {"error": {"code": -32005, "message": "no", "data": None}}, "CONTENT_NOT_SUPPORTED", None),
        (
            200,
            {"error": {"code": -32001, "message": "no", "data": [{"reason": "TASK_NOT_FOUND"}]}},
            "AGENT_ERROR",
            "TASK_NOT_FOUND",
        ),
        (500, {"error": {"code": -32603, "message": "no"}, "result": None}, "AGENT_ERROR", None),
        (400, _rest_error(400, "INVALID_ARGUMENT", "INVALID_PARAMS"), "VALIDATION_ERROR", "INVALID_PARAMS"),
        (
            400,
            _rest_error(400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            "CONTENT_NOT_SUPPORTED",
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (
            415,
            _rest_error(415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            "CONTENT_NOT_SUPPORTED",
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (404, _rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND"), "AGENT_ERROR", "TASK_NOT_FOUND"),
        (401, {"error": {"code": -32000, "message": "no"}}, "AGENT_ERROR", None),
        (429, {"error": {"code": 429, "message": "no"}}, "RATE_LIMITED", None),
        (503, b"down", "AGENT_UNAVAILABLE", None),
    ],
)
def test_an_agents_error_keeps_its_meaning(status: int, body: Any, code: str, reason: str | None) -> None:
    heard = _heard(body, status)
    failure = _last(heard).failure
    assert heard.settled
    assert failure is not None
    assert failure.code == code
    assert (failure.details or {}).get("agent_reason") == reason
    if status == 401:
        assert (failure.details or {})["reason"] == "agent_refused_hub"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, {"result": None}),
        (200, {"result": {"nothing": 1}}),
        (200, {"error": "broken"}),
        (404, {"detail": "Not Found"}),
        (500, b"Internal Server Error"),
        (200, {"result": {"message": ECHO}}),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_agent(status: int, body: Any) -> None:
    with pytest.raises(BadAgentReply):
        _heard(body, status)
