"""Agents of A2A 1.0 as they are met in the field: what each puts on the wire, and what the caller gets of it."""

import json
from typing import Any

import pytest

from tests.end_to_end.bare_agents import BareAgent, Said, bare_agent, failure, result, task
from tests.end_to_end.world import fresh, refused
from tests.support.hub import HubProcess

DONE = "TASK_STATE_COMPLETED"
HELLO = [{"text": "hello from X"}]


def _said(role: str = "ROLE_AGENT", parts: object = None) -> dict[str, Any]:
    return {"messageId": "m", "role": role, "parts": HELLO if parts is None else parts}


ERRORS: list[tuple[Any, int, str, str | None]] = [
    (failure(-32602, "No such city"), 400, "VALIDATION_ERROR", None),
    (failure(-32005, "No pictures"), 400, "VALIDATION_ERROR", None),
    (failure(-32603, "Boom", data=None), 502, "AGENT_ERROR", None),
    (failure(-32001, "Gone", data=[{"reason": "TASK_NOT_FOUND"}]), 502, "AGENT_ERROR", None),
    ({"jsonrpc": "2.0", "error": None, "result": {"message": _said()}}, 200, "", None),
    (result(None), 502, "AGENT_ERROR", "invalid_response"),
    (result([]), 502, "AGENT_ERROR", "invalid_response"),
    (result({}), 502, "AGENT_ERROR", "invalid_response"),
    (result({"message": _said("ROLE_USER")}), 502, "AGENT_ERROR", "invalid_response"),
    ((500, {"Content-Type": "text/plain"}, b"Internal Server Error"), 502, "AGENT_ERROR", "invalid_response"),
    ((200, {}, b"<html>"), 502, "AGENT_ERROR", "invalid_response"),
    ((429, {"Retry-After": "9"}, b""), 429, "RATE_LIMITED", None),
    ((503, {}, b""), 503, "AGENT_UNAVAILABLE", None),
    (result({"task": task("TASK_STATE_FAILED")}), 502, "AGENT_ERROR", None),
    (result({"task": task("TASK_STATE_REJECTED")}), 502, "AGENT_ERROR", "rejected"),
    (result({"task": task("TASK_STATE_AUTH_REQUIRED")}), 502, "AGENT_ERROR", "auth_required"),
]


def _call(hub: HubProcess, bare: BareAgent, **more: Any) -> Any:
    name = hub.register(bare.official_card(), id=fresh())["id"]
    return hub.call("talk", {"text": "hi"}, name, **more)


@pytest.mark.parametrize(
    "answer",
    [
        {"task": task(DONE, artifacts=[{"artifactId": "a", "parts": HELLO}])},
        {"task": task(DONE, artifacts=[{"parts": [{"text": "hello "}, {"text": "from X"}, {"text": ""}]}])},
        {"task": task(DONE, artifacts=[{"parts": HELLO}], history=[_said()])},
        {"task": {**task(DONE), "status": {"state": DONE, "message": _said()}}},
        {"task": task(DONE, history=[_said("ROLE_USER", [{"text": "hi"}]), _said()])},
        {"message": _said()},
        _said(),
        {**task("completed", artifacts=[{"parts": [{"kind": "text", "text": "hello from X"}]}]), "kind": "task"},
        {"task": task(DONE, artifacts=[{"parts": [{"type": "text", "content": "hello from X"}]}])},
        {
            "task": {
                "id": "T",
                "status": {"state": DONE, "timestamp": "0001-01-01T00:00:00+23:59", "message": None},
                "artifacts": [{"parts": HELLO, "metadata": None}],
                "history": None,
            }
        },
        {"message": {**_said(), "timestamp": "0001-01-01T00:00:00+23:59"}},
    ],
)
def test_the_answer_is_found_wherever_the_agent_put_it(hub: HubProcess, answer: dict[str, Any]) -> None:
    with bare_agent(lambda _: result(answer)) as bare:
        reply = _call(hub, bare)
        assert reply.status == 200, reply.body
        assert reply.json["result"] == {"text": "hello from X"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([{"data": {"a": 1.0, "b": [2.0, 2.5]}}], {"a": 1, "b": [2, 2.5]}),
        ([{"data": [1, 2]}], {"parts": [{"kind": "data", "data": [1, 2]}]}),
        (
            [{"text": "see"}, {"url": "https://x.test/a.png", "mediaType": "image/png"}],
            {
                "parts": [
                    {"kind": "text", "text": "see"},
                    {"kind": "file", "file": {"uri": "https://x.test/a.png", "mimeType": "image/png"}},
                ]
            },
        ),
        (
            [{"raw": "AP9i", "filename": "a.bin"}],
            {"parts": [{"kind": "file", "file": {"bytes": "AP9i", "name": "a.bin"}}]},
        ),
        ([], {}),
    ],
)
def test_parts_of_every_kind_reach_the_caller(hub: HubProcess, parts: list[Any], expected: dict[str, Any]) -> None:
    with bare_agent(lambda _: result({"task": task(DONE, artifacts=[{"artifactId": "a", "parts": parts}])})) as bare:
        assert _call(hub, bare).json["result"] == expected


def test_a_task_that_is_not_finished_is_asked_for_until_it_is(hub: HubProcess) -> None:
    states = iter(["TASK_STATE_SUBMITTED", "working", "", DONE])

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        state = next(states)
        found = task(state, artifacts=[{"parts": HELLO}] if state == DONE else [])
        return result({"task": found} if asked["method"] == "SendMessage" else found)

    with bare_agent(answer) as bare:
        assert _call(hub, bare).json["result"] == {"text": "hello from X"}
        assert [each["method"] for each in bare.asked] == ["SendMessage", "GetTask", "GetTask", "GetTask"]
        assert {each["params"]["id"] for each in bare.asked[1:]} == {"their-task"}


@pytest.mark.req("X-14")
def test_the_request_is_strict_and_without_anyones_credential(hub: HubProcess) -> None:
    caller = hub.new_key("a2a:call")
    with bare_agent(lambda _: result({"message": _said()})) as bare:
        context = {"conversation_id": "conv_1", "metadata": {"user_id": "usr_1"}}
        reply = _call(hub, bare, token=caller, context=context, headers={"X-Trace-ID": "trace_1"})
        assert reply.status == 200
        headers, asked = bare.headers[0], bare.asked[0]
    assert headers["a2a-version"] == "1.0"
    assert headers["content-type"] == "application/json"
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["x-trace-id"] == "trace_1"
    assert headers["traceparent"]
    assert not {"authorization", "x-api-key", "cookie"} & set(headers)
    assert caller not in json.dumps([headers, asked])
    assert asked["jsonrpc"] == "2.0"
    assert isinstance(asked["id"], str)
    message = asked["params"]["message"]
    assert message["role"] == "ROLE_USER"
    assert message["parts"] == [{"data": {"text": "hi"}}]
    assert message["contextId"] == "conv_1"
    assert asked["params"]["metadata"]["user_id"] == "usr_1"
    assert message["metadata"]["dragoman"]["skill"] == "talk"


def test_an_agent_that_takes_only_text_gets_text(hub: HubProcess) -> None:
    with bare_agent(lambda _: result({"message": _said()})) as bare:
        name = hub.register(bare.official_card(defaultInputModes=["text/plain"]), id=fresh())["id"]
        hub.call("talk", {"question": "who?"}, name)
        hub.call("talk", {"a": 1, "b": 2}, name)
        sent = [each["params"]["message"]["parts"] for each in bare.asked]
    assert sent == [[{"text": "who?"}], [{"text": '{"a":1,"b":2}'}]]


@pytest.mark.parametrize(("answer", "status", "code", "reason"), ERRORS)
def test_an_agents_error_is_told_in_the_platforms_words(
    hub: HubProcess, answer: Any, status: int, code: str, reason: str | None
) -> None:
    with bare_agent(lambda _: answer) as bare:
        reply = _call(hub, bare)
        assert len(bare.asked) == 1
    if status == 200:
        assert reply.json["result"] == {"text": "hello from X"}
        return
    error = refused(reply, status, code)
    if reason is not None:
        assert error["details"]["reason"] == reason
    if status in (429, 503):
        assert reply.headers["retry-after"] == ("9" if status == 429 else "1")


def test_a_task_that_was_canceled_there_is_shown_as_cancelled(hub: HubProcess) -> None:
    with bare_agent(lambda _: result({"task": task("TASK_STATE_CANCELED")})) as bare:
        reply = _call(hub, bare)
    assert (reply.status, reply.json["status"]) == (200, "cancelled")
    assert "result" not in reply.json
    assert "error" not in reply.json
    assert reply.json["timing"]["cancelled_at"]


def test_a_task_without_an_id_cannot_be_followed(hub: HubProcess) -> None:
    with bare_agent(lambda _: result({"task": {"status": {"state": "TASK_STATE_WORKING"}}})) as bare:
        error = refused(_call(hub, bare), 502, "AGENT_ERROR")
    assert error["details"]["reason"] == "not_finished"


def test_a_redirect_that_only_adds_a_slash_is_followed_and_remembered(hub: HubProcess) -> None:
    def answer(_: dict[str, Any]) -> Said | dict[str, Any]:
        if bare.paths[-1] == "/agent":
            return 307, {"Location": "/agent/"}, b""
        return result({"message": _said()})

    with bare_agent(answer) as bare:
        interface = {"url": bare.url + "/agent", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        name = hub.register(bare.official_card(supportedInterfaces=[interface]), id=fresh())["id"]
        for _ in range(2):
            assert hub.call("talk", {}, name).json["result"] == {"text": "hello from X"}
        assert bare.paths == ["/agent", "/agent/", "/agent/"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, {"Content-Encoding": "gzip"}, b"\x1f\x8b"), "compressed"),
        ((307, {"Location": "http://127.0.0.1:9009/elsewhere"}, b""), "invalid_response"),
        ((302, {"Location": "/other"}, b""), "invalid_response"),
    ],
)
def test_what_the_hub_did_not_ask_for_is_the_agents_error(hub: HubProcess, answer: Said, reason: str) -> None:
    with bare_agent(lambda _: answer) as bare:
        error = refused(_call(hub, bare), 502, "AGENT_ERROR")
    assert error["details"]["reason"] == reason


def test_an_agent_that_hangs_up_without_a_word_is_unavailable(hub: HubProcess) -> None:
    with bare_agent(lambda _: None) as bare:
        bare.release.set()
        error = refused(_call(hub, bare), 503, "AGENT_UNAVAILABLE")
        assert len(bare.asked) == 1
    assert error["retryable"] is True
