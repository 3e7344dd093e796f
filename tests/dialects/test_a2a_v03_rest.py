"""A2A 0.3 over HTTP+JSON, without a wire: what its requests mean, how they are answered, and both ways for agents."""

import json
from base64 import b64encode
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.dialects.a2a_v03.rest_in import ROUTES, RestExchange, read_rest
from dragoman.dialects.a2a_v03.rest_out import answers_rest_probe, ask_rest, hear_rest, probe_rest
from dragoman.dialects.dialect import Heard, Level, Outgoing, Verb
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.answers import Accepted
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import (
    BY_CODE,
    AgentError,
    AgentNotFound,
    AgentUnavailable,
    BadAgentReply,
    BadFrame,
    BadParams,
    ContentRefused,
    DragomanError,
    ExtensionRequired,
    InputRefused,
    NoExtendedCard,
    NotAuthenticated,
    NotAuthorized,
    NotJson,
    NotSupported,
    Overloaded,
    RateLimited,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
    TooLarge,
    VersionNotSupported,
    WrongMediaType,
)
from dragoman.model.events import Remote, StatusChanged
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.lifecycle import fold, legal, output_of
from dragoman.model.operations import CancelTask, GetCard, GetTask, SendTask, Unreadable, Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.dialects.goldens import AT, HUB, LATER, task_of
from tests.support.quirks.protos import V03, strange_members

PYTHON: Final = {b"user-agent": b"python-httpx/0.28.1"}
RAW: Final = b"\x00\xffb"
ONCE: Final = b64encode(RAW).decode()
TWICE: Final = b64encode(ONCE.encode()).decode()
PARTS: Final[tuple[Part, ...]] = (
    Text(text="hi", media_type="text/markdown", filename="a.md", metadata={"x": 1}),
    Data(value={"n": 2**60, "inner_name": {"a_b": 1}}),
    Data(value=[1, "two", None], metadata={"y": True}),
    Blob(raw=RAW, media_type="application/octet-stream", filename="b.bin"),
    Link(url="https://files.test/c", media_type="image/png", filename="c.png", metadata={"z": [1]}),
)


def _request(route: str, body: Any = None, **more: Any) -> HttpRequest:
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    headers = {b"content-type": b"application/json", **more.pop("headers", {})}
    params = {"task": "task-1", "agent": "agt_x", "config": "c-1"}
    method = more.pop("method", "GET" if route in ("rest_get", "rest_card") else "POST")
    url = more.pop("url", "/agents/agt_x/v1/x")
    return HttpRequest(
        method=method, url=url, headers=headers, body=raw, id="1", at=AT, route=route, params=params, hub=HUB
    )


def _sent(message: Any, *, headers: dict[bytes, bytes] | None = None, **more: Any) -> RestExchange:
    return read_rest(_request("rest_send", {"message": message, **more}, headers=headers or {}))


def _message(*content: Any, **more: Any) -> dict[str, Any]:
    return {"messageId": "m-1", "role": "ROLE_USER", "content": list(content) or [{"text": "hi"}], **more}


def _operation(exchange: RestExchange) -> SendTask:
    operation = exchange.operation
    assert isinstance(operation, SendTask), operation
    return operation


def _refusal(exchange: RestExchange) -> tuple[int, dict[str, Any]]:
    operation = exchange.operation
    assert isinstance(operation, Unreadable), operation
    reply = exchange.refuse(operation.error)
    return reply.status, json.loads(reply.body)


def _outgoing(verb: Verb, task: Task, asked: SendTask | None = None, message: Message | None = None) -> Outgoing:
    endpoint = Endpoint(dialect="a2a-0.3", binding=Binding.HTTP, url="http://agent.test/base/")
    asked = asked or task.asked
    sent = (message or asked.message) if verb is Verb.SEND else None
    return Outgoing(verb=verb, task=task, asked=asked, endpoint=endpoint, at=AT, message=sent, timeout_ms=29950)


def _asked(verb: Verb, task: Task, asked: SendTask | None = None) -> HttpRequest:
    request = ask_rest(_outgoing(verb, task, asked))
    assert request is not None
    return request


def _heard(body: Any, status: int = 200, verb: Verb = Verb.SEND) -> Heard:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return hear_rest(_outgoing(verb, task_of({})), HttpReply(status=status, body=raw), LATER)


def _failure(heard: Heard) -> Any:
    (event,) = heard.events
    assert isinstance(event, StatusChanged)
    assert event.state is TaskState.FAILED
    return event.failure


# -- reading


def test_every_route_stands_below_an_agents_base_and_has_a_reader() -> None:
    assert all(route.level is Level.BASE and route.path.startswith("/v1/") for route in ROUTES)
    for route in ROUTES:
        body = {"message": _message(), "pushNotificationConfig": {"url": "https://x.test/"}}
        exchange = read_rest(_request(route.name, body, method=route.method))
        assert not isinstance(exchange.operation, Unreadable), route


@pytest.mark.req("O-45")
def test_a_message_in_the_protobufs_json_is_read_whole() -> None:
    exchange = _sent(
        _message(
            {"text": "hi", "metadata": {"mediaType": "text/markdown", "k": 1}},
            {"data": {"data": {"a_b": 2**60}}},
            {"file": {"fileWithUri": "https://files.test/c", "mimeType": "image/png", "name": "c.png"}},
            {"file": {"fileWithBytes": ONCE}},
            contextId="ctx-1",
            taskId="task-7",
            metadata={"skill": "search", "dragoman": {"timeout_ms": 5000}},
            extensions=["urn:x"],
        ),
        configuration={"acceptedOutputModes": ["text/plain"], "historyLength": 3, "blocking": True},
        metadata={"m": 1},
        headers={b"x-a2a-extensions": b"urn:x, urn:y", b"idempotency-key": b"key-1"},
    )
    asked = _operation(exchange)
    assert asked.message == Message(
        id="m-1",
        role=Role.USER,
        parts=(
            Text(text="hi", media_type="text/markdown", metadata={"k": 1}),
            Data(value={"a_b": 2**60}),
            Link(url="https://files.test/c", media_type="image/png", filename="c.png"),
            Blob(raw=RAW),
        ),
        extensions=("urn:x",),
        metadata={"skill": "search"},
    )
    assert (asked.agent, asked.skill, asked.context_id, asked.continues) == ("agt_x", "search", "ctx-1", "task-7")
    assert (asked.wait, asked.timeout_s, asked.accepts) == (Wait.END, 5.0, ("text/plain",))
    assert (asked.extensions, asked.idempotency_key, asked.metadata) == (("urn:x", "urn:y"), "key-1", {"m": 1})
    assert exchange.asked.history_length == 3


@pytest.mark.req("O-45")
@pytest.mark.parametrize(
    ("configuration", "wait"),
    [
        ({}, Wait.NONE),
        ({"blocking": None}, Wait.NONE),
        ({"blocking": False}, Wait.NONE),
        ({"blocking": True}, Wait.END),
    ],
)
def test_who_does_not_say_blocking_does_not_wait(configuration: dict[str, Any], wait: Wait) -> None:
    assert _operation(_sent(_message(), configuration=configuration)).wait is wait
    assert _operation(_sent(_message())).wait is Wait.NONE


def test_the_names_of_the_protocols_own_file_are_taken_too() -> None:
    body = {
        "request": {
            "message_id": "m-1",
            "context_id": "ctx-1",
            "role": "ROLE_USER",
            "content": [{"file": {"file_with_bytes": ONCE, "mime_type": "a/b"}}, {"data": {"data": {"a_b": 1}}}],
        },
        "configuration": {"accepted_output_modes": ["text/plain"], "history_length": "2", "blocking": True},
    }
    exchange = read_rest(_request("rest_send", body))
    asked = _operation(exchange)
    assert (asked.message.id, asked.context_id, asked.accepts) == ("m-1", "ctx-1", ("text/plain",))
    assert asked.message.parts == (Blob(raw=RAW, media_type="a/b"), Data(value={"a_b": 1}))
    assert exchange.asked.history_length == 2


def test_the_shapes_of_json_rpc_and_unknown_members_are_taken_too() -> None:
    message = {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "hi"}], "unheard": {"of": 1}}
    asked = _operation(_sent(message, more=[1]))
    assert asked.message.parts == (Text(text="hi"),)
    assert _operation(_sent({"role": 1, "content": [{"text": "hi"}]})).message.role is Role.USER


def test_k09_a_lone_value_without_its_flag_stays_the_object_it_came_as() -> None:
    assert _operation(_sent(_message({"data": {"data": {"value": 7}}}))).message.parts == (Data(value={"value": 7}),)
    flagged = {"data": {"data": {"value": 7}}, "metadata": {"data_part_compat": True}}
    assert _operation(_sent(_message(flagged))).message.parts == (Data(value=7),)


def test_q31_whole_doubles_of_protobuf_clients_are_the_integers_they_were() -> None:
    part = {"data": {"data": {"n": 1.0, "x": 1.5, "list": [2.0, 3]}}}
    asked = _operation(_sent(_message(part), configuration={"historyLength": 2.0, "blocking": True}))
    (data,) = asked.message.parts
    assert isinstance(data, Data)
    assert json.dumps(data.value) == '{"n": 1, "x": 1.5, "list": [2, 3]}'


@pytest.mark.parametrize(
    ("agent", "encoded", "raw", "twice"),
    [
        (PYTHON, TWICE, RAW, True),
        (PYTHON, ONCE, RAW, False),  # not base64 of base64: this caller encodes once
        ({b"user-agent": b"node"}, TWICE, ONCE.encode(), False),
        ({}, ONCE, RAW, False),
        ({}, ONCE.rstrip("=").replace("/", "_"), RAW, False),
    ],
)
def test_q30_files_of_pythons_sdks_are_decoded_twice_and_answered_alike(
    agent: dict[bytes, bytes], encoded: str, raw: bytes, twice: bool
) -> None:
    exchange = _sent(_message({"file": {"fileWithBytes": encoded}}), headers=agent)
    assert _operation(exchange).message.parts == (Blob(raw=raw),)
    task = task_of({"state": "completed", "artifacts": [{"id": "a", "parts": [msgspec.to_builtins(PARTS[3])]}]})
    shown = json.loads(exchange.reply(task).body)["task"]["artifacts"][0]["parts"][0]["file"]["fileWithBytes"]
    assert shown == (TWICE if twice else ONCE)


def test_q30_who_only_looks_is_answered_by_what_it_is() -> None:
    task = task_of({"state": "completed", "artifacts": [{"id": "a", "parts": [msgspec.to_builtins(PARTS[3])]}]})
    for headers, expected in ((PYTHON, TWICE), ({}, ONCE)):
        shown = json.loads(read_rest(_request("rest_get", headers=headers)).reply(task).body)
        assert shown["artifacts"][0]["parts"][0]["file"]["fileWithBytes"] == expected


@pytest.mark.parametrize("body", [b"", b"{}", b'{"name":"tasks/task-1"}'])
def test_k08_a_cancel_may_come_without_a_body(body: bytes) -> None:
    operation = read_rest(_request("rest_cancel", body)).operation
    assert operation == CancelTask(task_id="task-1", agent="agt_x")


def test_a_look_names_its_task_and_how_many_turns_it_wants() -> None:
    exchange = read_rest(_request("rest_get", url="/v1/tasks/task-1?historyLength=2"))
    assert exchange.operation == GetTask(task_id="task-1", agent="agt_x")
    assert exchange.asked.history_length == 2
    wrong = read_rest(_request("rest_get", url="/v1/tasks/task-1?historyLength=-1"))
    status, body = _refusal(wrong)
    assert (status, body["code"]) == (400, -32602)
    assert read_rest(_request("rest_card")).operation == GetCard(agent="agt_x", public=True)


WRONG: Final[list[tuple[Any, int, str | None]]] = [
    (b"{", -32700, None),
    (b"[]", -32600, None),
    ({}, -32602, "message"),
    ({"message": "hi"}, -32602, "message"),
    ({"message": {"role": "ROLE_USER"}}, -32602, "message.content"),
    ({"message": {"role": "ROLE_USER", "content": []}}, -32602, "message.content"),
    ({"message": {"content": [{"text": "x"}]}}, -32602, "message.role"),
    ({"message": {"role": "ROLE_KING", "content": [{"text": "x"}]}}, -32602, "message.role"),
    ({"message": {"role": {}, "content": [{"text": "x"}]}}, -32602, "message.role"),
    ({"message": {"role": True, "content": [{"text": "x"}]}}, -32602, "message.role"),
    ({"message": {"role": "ROLE_USER", "content": [{}]}}, -32602, "message.content[0]"),
    ({"message": {"role": "ROLE_USER", "content": [{"text": 1}]}}, -32602, "message.content[0].text"),
    ({"message": {"role": "ROLE_USER", "content": [{"file": {}}]}}, -32602, "message.content[0].file"),
    ({"message": {"role": "ROLE_USER", "content": [{"file": {"fileWithBytes": "?"}}]}}, -32602, "message.content"),
    ({"message": {"role": "ROLE_USER", "content": [{"file": {"fileWithBytes": 1}}]}}, -32602, "message.content"),
    ({"message": {"role": "ROLE_USER", "content": [{"data": 1}]}}, -32602, "message.content[0].data"),
    ({"message": _message(), "configuration": {"historyLength": -1}}, -32602, "configuration.historyLength"),
    ({"message": _message(), "configuration": {"blocking": "yes"}}, -32602, "configuration.blocking"),
    (
        {"message": _message(), "configuration": {"pushNotification": {"token": "t"}}},
        -32602,
        "configuration.pushNotification.url",
    ),
]


@pytest.mark.parametrize(("body", "code", "field"), WRONG)
def test_what_makes_no_sense_is_refused_by_the_name_the_caller_used(body: Any, code: int, field: str | None) -> None:
    status, shown = _refusal(read_rest(_request("rest_send", body)))
    assert (status, shown["code"]) == (400, code)
    if field is not None:
        violations = shown["error"]["details"][1]["fieldViolations"]
        assert violations[0]["field"].startswith(field)


def test_an_empty_push_config_is_none() -> None:
    assert _operation(_sent(_message(), configuration={"pushNotification": {}})).callback is None


@pytest.mark.parametrize(
    ("headers", "url", "code"),
    [
        ({b"content-type": b"text/plain"}, "/v1/message:send", -32005),
        ({b"a2a-version": b"1.0"}, "/v1/message:send", -32009),
        ({}, "/v1/message:send?A2A-Version=1.0", -32009),
    ],
)
def test_a_wrong_media_type_or_version_is_refused_before_the_body_is_read(
    headers: dict[bytes, bytes], url: str, code: int
) -> None:
    status, shown = _refusal(read_rest(_request("rest_send", b"{", headers=headers, url=url)))
    assert (status, shown["code"]) == (415 if code == -32005 else 400, code)


@pytest.mark.parametrize("kind", [b"application/json", b"application/a2a+json; charset=utf-8", b""])
@pytest.mark.parametrize("version", [b"", b"0.3", b"0.3.7"])
def test_three_media_types_and_every_spelling_of_the_version_are_taken(kind: bytes, version: bytes) -> None:
    exchange = _sent(_message(), headers={b"content-type": kind, b"a2a-version": version})
    assert isinstance(exchange.operation, SendTask)


# -- answering


def _everything(state: str = "completed") -> Task:
    message = {"id": "m-2", "role": "agent", "parts": [{"type": "text", "text": "so"}], "references": ["task-0"]}
    return task_of(
        {
            "id": "task-1",
            "state": state,
            "artifacts": [
                {
                    "id": "a-1",
                    "name": "n",
                    "description": "d",
                    "kind": "report",
                    "parts": msgspec.to_builtins(PARTS),
                    "extensions": ["urn:x"],
                    "metadata": {"q": 1},
                }
            ],
            "messages": [{**message, "extensions": ["urn:y"], "metadata": {"p": 1}}],
            "status_message": {"id": "m-3", "role": "agent", "parts": [{"type": "text", "text": "done"}]},
            "progress": 0.5,
            "usage": {"tokens": 3},
        }
    )


@pytest.mark.req("O-45")
def test_k07_an_answer_has_no_member_that_the_protobuf_lacks() -> None:
    for state in TaskState:
        sent = json.loads(_sent(_message()).reply(_everything(state.value)).body)
        assert strange_members(sent, "SendMessageResponse", V03) == []
        assert strange_members(json.loads(read_rest(_request("rest_get")).reply(_everything()).body), "Task", V03) == []
    failed = task_of({"state": "failed", "failure": {"code": "AGENT_TIMEOUT", "message": "too late"}})
    shown = json.loads(_sent(_message()).reply(Accepted(task=failed)).body)
    assert strange_members(shown, "SendMessageResponse", V03) == []
    assert shown["task"]["status"]["message"]["content"] == [{"text": "too late"}]


@pytest.mark.req("O-45")
def test_a_send_is_answered_by_a_wrapped_task_and_all_else_by_a_bare_one() -> None:
    task = _everything()
    sent = json.loads(_sent(_message()).reply(task).body)
    assert list(sent) == ["task"]
    for route in ("rest_get", "rest_cancel"):
        assert json.loads(read_rest(_request(route)).reply(task).body) == sent["task"]
    shown = sent["task"]
    assert shown["status"] == {
        "state": "TASK_STATE_COMPLETED",
        "timestamp": "2026-01-12T10:00:00.000Z",
        "message": {
            "messageId": "m-3",
            "contextId": "conv_1",
            "taskId": "task-1",
            "role": "ROLE_AGENT",
            "content": [{"text": "done"}],
        },
    }
    assert [turn["role"] for turn in shown["history"]] == ["ROLE_USER", "ROLE_AGENT"]
    assert shown["artifacts"][0]["parts"][1] == {"data": {"data": {"n": 2**60, "inner_name": {"a_b": 1}}}}


@pytest.mark.parametrize("state", list(TaskState))
def test_every_state_has_the_protobufs_name(state: TaskState) -> None:
    shown = json.loads(read_rest(_request("rest_get")).reply(_everything(state.value)).body)
    name = "CANCELLED" if state is TaskState.CANCELED else state.name
    assert shown["status"]["state"] == f"TASK_STATE_{name}"


def test_of_the_history_only_so_much_is_shown_as_was_asked_for() -> None:
    def turns(url: str) -> int:
        shown = json.loads(read_rest(_request("rest_get", url=url)).reply(_everything()).body)
        return len(shown.get("history", []))

    assert [turns(f"/v1/tasks/x{query}") for query in ("", "?historyLength=0", "?historyLength=1")] == [2, 2, 1]


@pytest.mark.req("O-45")
@pytest.mark.parametrize(
    ("error", "code", "status", "kind", "reason"),
    [
        (TaskNotFound(), -32001, 404, "TaskNotFoundError", "TASK_NOT_FOUND"),
        (TaskNotCancelable(), -32002, 400, "TaskNotCancelableError", "TASK_NOT_CANCELABLE"),
        (TaskFinished(), -32004, 400, "UnsupportedOperationError", "UNSUPPORTED_OPERATION"),
        (NotSupported(), -32004, 400, "UnsupportedOperationError", "UNSUPPORTED_OPERATION"),
        (ContentRefused(), -32005, 400, "ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED"),
        (WrongMediaType(), -32005, 415, "ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED"),
        (BadAgentReply(), -32006, 500, "InvalidAgentResponseError", "INVALID_AGENT_RESPONSE"),
        (NoExtendedCard(), -32007, 400, "AuthenticatedExtendedCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT"),
        (ExtensionRequired(), -32008, 400, "ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED"),
        (VersionNotSupported(), -32009, 400, "VersionNotSupportedError", "VERSION_NOT_SUPPORTED"),
        (NotJson(), -32700, 400, "JSONParseError", "PARSE_ERROR"),
        (BadFrame(), -32600, 400, "InvalidRequestError", "INVALID_REQUEST"),
        (BadParams(), -32602, 400, "InvalidParamsError", "INVALID_PARAMS"),
        (TooLarge(), -32600, 413, "InvalidRequestError", "INVALID_REQUEST"),
        (NotAuthenticated(), -32000, 401, None, "AUTHORIZATION_ERROR"),
        (NotAuthorized(), -32000, 403, None, "AUTHORIZATION_ERROR"),
        (AgentNotFound(), -32000, 404, None, "AGENT_NOT_FOUND"),
        (RateLimited(), -32000, 429, None, "RATE_LIMITED"),
        (AgentUnavailable(), -32603, 503, "InternalError", "INTERNAL_ERROR"),
        (Overloaded(), -32603, 503, "InternalError", "INTERNAL_ERROR"),
        (AgentError(), -32603, 500, "InternalError", "INTERNAL_ERROR"),
    ],
)
def test_an_error_says_it_in_the_words_of_every_client(
    error: DragomanError, code: int, status: int, kind: str | None, reason: str
) -> None:
    reply = _sent(_message()).refuse(error)
    shown = json.loads(reply.body)
    assert (reply.status, shown["code"], shown.get("type"), shown["message"]) == (status, code, kind, error.message)
    assert shown["error"]["code"] == status
    assert shown["error"]["message"] == error.message
    assert shown["error"]["details"][0]["reason"].startswith(reason)
    assert (b"retry-after" in reply.headers) is (status in (429, 503))
    assert (b"www-authenticate" in reply.headers) is (status == 401)


def test_every_error_of_the_hub_has_words() -> None:
    for error_class in BY_CODE.values():
        reply = _sent(_message()).refuse(error_class("so", fact={"a": 1}))
        assert reply.status >= 400
        assert json.loads(reply.body)["error"]["details"][0]["metadata"]["fact"] == '{"a":1}'


# -- calling agents


def test_a_message_is_sent_in_the_protobufs_json_and_nothing_else() -> None:
    request = _asked(Verb.SEND, task_of({"id": "task-1"}))
    assert (request.method, request.url) == ("POST", "http://agent.test/base/v1/message:send")
    assert request.headers[b"a2a-version"] == b"0.3"
    assert request.headers[b"idempotency-key"] == b"task-1"
    body = json.loads(request.body)
    assert strange_members(body.pop("message"), "Message", V03) == []
    assert body == {"configuration": {"blocking": True}}


@pytest.mark.parametrize("task_id", ["thread:run", "a/b", "ä c"])
def test_q22_an_agents_task_id_stays_one_segment_of_the_path(task_id: str) -> None:
    task = task_of({"remote": {"task_id": task_id}})
    got, cancelled = _asked(Verb.GET, task), _asked(Verb.CANCEL, task)
    segment = got.url.removeprefix("http://agent.test/base/v1/tasks/")
    assert segment.isascii()
    assert not set("/: ") & set(segment)
    assert (got.method, got.body, b"content-type" in got.headers) == ("GET", b"", False)
    assert (cancelled.method, cancelled.url, cancelled.body) == ("POST", f"{got.url}:cancel", b"{}")


@pytest.mark.parametrize("verb", [Verb.GET, Verb.CANCEL])
def test_without_the_agents_task_id_there_is_nothing_to_ask(verb: Verb) -> None:
    assert ask_rest(_outgoing(verb, task_of({}))) is None


def test_a_message_reads_the_same_at_the_other_end() -> None:
    message = Message(
        id="m-1",
        role=Role.USER,
        parts=PARTS,
        references=("task-0",),
        extensions=("urn:x",),
        metadata={"own": {"a_b": 1}},
    )
    asked = SendTask(
        message=message, continues="task-1", accepts=("text/plain",), extensions=("urn:x",), metadata={"m_n": 1}
    )
    task = task_of({"remote": {"task_id": "theirs", "context_id": "ctx-9"}})
    request = _asked(Verb.SEND, task, asked)
    read = _operation(read_rest(msgspec.structs.replace(request, route="rest_send", id="2", at=AT)))
    assert read.message == message
    assert (read.continues, read.context_id, read.wait) == ("theirs", "ctx-9", Wait.END)
    assert (read.accepts, read.extensions, read.metadata) == (asked.accepts, asked.extensions, asked.metadata)
    later = _asked(Verb.SEND, task, msgspec.structs.replace(asked, wait=Wait.NONE))
    assert _operation(read_rest(msgspec.structs.replace(later, route="rest_send"))).wait is Wait.NONE


def test_a_task_is_heard_as_it_was_answered() -> None:
    told = msgspec.structs.replace(_everything(), messages=())
    heard = _heard(_sent(_message()).reply(told).body)
    task = fold(task_of({}), heard.events)
    (artifact,) = task.artifacts
    assert artifact.parts == PARTS
    assert (artifact.id, artifact.name, artifact.description, artifact.extensions) == ("a-1", "n", "d", ("urn:x",))
    assert artifact.metadata is not None
    assert artifact.metadata["q"] == 1
    assert (task.state, heard.settled) == (TaskState.COMPLETED, True)
    assert heard.remote == Remote(task_id="task-1", context_id="conv_1")
    assert task.status_message is not None
    assert task.status_message.parts == (Text(text="done"),)


@pytest.mark.parametrize(
    ("state", "expected", "settled"),
    [
        ("TASK_STATE_CANCELLED", TaskState.CANCELED, True),
        ("TASK_STATE_CANCELED", TaskState.CANCELED, True),
        ("TASK_STATE_INPUT_REQUIRED", TaskState.INPUT_REQUIRED, True),
        ("TASK_STATE_AUTH_REQUIRED", TaskState.AUTH_REQUIRED, True),
        ("TASK_STATE_REJECTED", TaskState.REJECTED, True),
        ("TASK_STATE_SUBMITTED", TaskState.SUBMITTED, False),
        ("TASK_STATE_UNSPECIFIED", TaskState.WORKING, False),
    ],
)
def test_a_state_is_heard_in_both_spellings(state: str, expected: TaskState, settled: bool) -> None:
    heard = _heard({"id": "t", "contextId": "c", "status": {"state": state}}, verb=Verb.GET)
    (event,) = heard.events
    assert isinstance(event, StatusChanged)
    assert (event.state, heard.settled) == (expected, settled)


def test_a_direct_message_is_the_answer() -> None:
    said = {"messageId": "x", "role": "ROLE_AGENT", "content": [{"data": {"data": {"n": 1.0}}}], "contextId": "c"}
    for wrapped in ({"message": said}, {"msg": said}):
        heard = _heard(wrapped)
        assert output_of(fold(task_of({}), heard.events)) == (Data(value={"n": 1}),)
        assert heard.remote == Remote(context_id="c")


def test_names_with_underscores_and_empty_defaults_are_heard_too() -> None:
    artifact = {"artifact_id": "a", "name": "", "parts": [{"file": {"file_with_bytes": ONCE, "mime_type": "a/b"}}]}
    status = {"state": "TASK_STATE_COMPLETED", "update": {"role": "ROLE_AGENT", "content": [{"text": "ok"}]}}
    task = {"id": "t", "context_id": "c", "status": status, "artifacts": [{**artifact, "extensions": []}]}
    folded = fold(task_of({}), _heard({"task": task}).events)
    assert folded.artifacts == (Artifact(id="a", parts=(Blob(raw=RAW, media_type="a/b"),)),)
    assert folded.status_message is not None
    assert folded.status_message.parts == (Text(text="ok"),)


@pytest.mark.parametrize(
    ("status", "body", "code", "agent_code"),
    [
        (404, {"message": "no such task"}, "AGENT_ERROR", -32001),
        (409, {"message": "too late"}, "AGENT_ERROR", -32002),
        (415, {"message": "not that"}, "CONTENT_NOT_SUPPORTED", -32005),
        (422, {"message": "bad"}, "VALIDATION_ERROR", -32602),
        (501, {"message": "no"}, "AGENT_ERROR", -32004),
        (500, {"message": "oh"}, "AGENT_ERROR", -32603),
        (400, {"code": -32602, "message": "bad"}, "VALIDATION_ERROR", -32602),
        (400, {"type": "InvalidParamsError", "message": "bad"}, "VALIDATION_ERROR", -32602),
        (
            400,
            {"error": {"code": 400, "message": "bad", "details": [{"reason": "CONTENT_TYPE_NOT_SUPPORTED"}]}},
            "CONTENT_NOT_SUPPORTED",
            -32005,
        ),
    ],
)
def test_an_agents_error_keeps_its_words_and_what_the_caller_got_wrong_keeps_its_meaning(
    status: int, body: dict[str, Any], code: str, agent_code: int
) -> None:
    failure = _failure(_heard(body, status))
    assert failure.code == code
    assert failure.message == body.get("message", "bad")
    assert failure.details == {"agent_code": agent_code, "agent_status": status}


def test_every_refusal_of_ours_is_heard_as_what_it_was() -> None:
    for error, code in ((InputRefused("x"), "VALIDATION_ERROR"), (ContentRefused("x"), "CONTENT_NOT_SUPPORTED")):
        reply = _sent(_message()).refuse(error)
        assert _failure(_heard(reply.body, reply.status)).code == code
    for error, code in ((RateLimited(), "RATE_LIMITED"), (AgentUnavailable(), "AGENT_UNAVAILABLE")):
        reply = _sent(_message()).refuse(error)
        assert _failure(_heard(reply.body, reply.status)).code == code


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>"), (200, b"[]"), (200, b"{}"), (500, b"Internal Server Error"), (404, b'{"detail":"Not Found"}')],
)
def test_what_is_no_answer_at_all_is_the_agents_fault(status: int, body: bytes) -> None:
    with pytest.raises(BadAgentReply) as raised:
        _heard(body, status)
    assert raised.value.details["reason"] == "invalid_response"


@pytest.mark.parametrize(
    ("status", "body", "spoken"),
    [
        (404, {"code": -32001, "message": "Task not found"}, True),
        (404, {"message": "Task not found"}, True),
        (404, {"error": {"message": "x", "details": [{"reason": "TASK_NOT_FOUND"}]}}, True),
        (404, {"detail": "Not Found"}, False),
        (404, {"code": -32601, "message": "x"}, False),
        (200, {"message": "welcome"}, False),
        (200, {"code": -32001, "message": "x"}, False),
        (500, {"message": "x"}, False),
        (401, {}, True),
        (403, {}, True),
    ],
)
def test_a_url_speaks_this_if_it_knows_of_tasks(status: int, body: dict[str, Any], spoken: bool) -> None:
    asked = probe_rest("http://agent.test/base/")
    assert (asked.method, asked.url.rpartition("/")[0]) == ("GET", "http://agent.test/base/v1/tasks")
    assert answers_rest_probe(HttpReply(status=status, body=json.dumps(body).encode())) is spoken


def test_a_page_is_no_answer_to_the_probe() -> None:
    assert answers_rest_probe(HttpReply(status=404, body=b"<html>")) is False
    own = read_rest(_request("rest_get")).refuse(TaskNotFound())
    assert answers_rest_probe(own) is True


# -- whatever arrives

NAMES: Final = st.sampled_from(
    [
        *("message", "request", "configuration", "metadata", "messageId", "message_id", "role", "content", "parts"),
        *("text", "file", "data", "fileWithBytes", "file_with_bytes", "fileWithUri", "mimeType", "name", "kind"),
        *("blocking", "historyLength", "pushNotification", "extensions", "contextId", "taskId", "dragoman"),
        *("task", "msg", "status", "state", "update", "timestamp", "artifacts", "artifactId", "history", "id"),
        *("code", "type", "error", "details", "reason", "referenceTaskIds"),
        *("config", "pushNotificationConfig", "url", "configId", "name", "authentication", "schemes", "token"),
    ]
)
WORDS: Final = st.sampled_from(
    [
        *(
            "ROLE_USER",
            "ROLE_AGENT",
            "TASK_STATE_COMPLETED",
            "TASK_STATE_CANCELLED",
            "hi",
            ONCE,
            TWICE,
            "=",
            "",
            "text",
        ),
        *("TaskNotFoundError", "INVALID_PARAMS", -32602, 404, 0, 1, 1.0, 2.5, True, False, None, 10**30),
    ]
)
NEARLY: Final = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6), max_leaves=25
)


@given(value=NEARLY, route=st.sampled_from([route.name for route in ROUTES]), python=st.booleans())
@example(value={"message": {"role": [], "content": {}}}, route="rest_send", python=True)
@example(value={"message": {"role": True, "content": [{"data": {"data": None}}]}}, route="rest_send", python=False)
def test_any_json_is_read_or_refused(value: Any, route: str, python: bool) -> None:
    exchange = read_rest(_request(route, value, headers=PYTHON if python else {}))
    if isinstance(exchange.operation, Unreadable):
        assert 400 <= exchange.refuse(exchange.operation.error).status < 500


@given(body=st.binary(max_size=60), query=st.text(max_size=30))
@example(body=b"[" * 5000, query="historyLength=\u00b2")
@example(body=b"\xff", query="historyLength=" + "9" * 5000)
def test_any_bytes_are_read_or_refused(body: bytes, query: str) -> None:
    for route in ROUTES:
        exchange = read_rest(_request(route.name, body, method=route.method, url=f"/v1/x?{query}"))
        if isinstance(exchange.operation, Unreadable):
            assert 400 <= exchange.refuse(exchange.operation.error).status < 500


@given(
    value=NEARLY | NEARLY.map(lambda inner: {"task": inner}) | NEARLY.map(lambda inner: {"message": inner}),
    status=st.sampled_from([200, 200, 204, 301, 400, 401, 404, 409, 422, 429, 500, 501, 503]),
)
def test_any_answer_of_an_agent_is_heard_or_a_bad_reply(value: Any, status: int) -> None:
    try:
        heard = _heard(value, status)
    except BadAgentReply as error:
        msgspec.json.encode(error.details)
        return
    task = task_of({})
    folded = fold(task, legal(task.state, heard.events))
    json.loads(_sent(_message()).reply(folded).body)
    assert answers_rest_probe(HttpReply(status=status, body=json.dumps(value).encode())) in (True, False)
