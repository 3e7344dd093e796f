"""/v1/calls: calls of every dialect, listed, shown, followed and cancelled by those who may see them."""

import base64
import json
from collections.abc import Generator
from typing import Any
from urllib.parse import urlencode, urlsplit

import jsonschema_rs
import pytest

from dragoman.dialects import DIALECTS
from tests.end_to_end.world import eventually, fresh, holds, join, refused, repeats, says, skill
from tests.support.hub import HubProcess
from tests.support.matrix import caller_of
from tests.support.platform_agent import PlatformAgent
from tests.support.speaking import Content
from tests.support.sse_client import SseItem, sse
from tests.support.streaming_agent import StreamingAgent, streaming_agent

NOBODY = {"Authorization": ""}


@pytest.fixture
def teller(hub: HubProcess) -> Generator[tuple[str, StreamingAgent]]:
    with streaming_agent() as agent:
        name = fresh()
        hub.register(agent.card(name))
        yield name, agent


def listed(hub: HubProcess, token: str = "", **filters: str) -> list[str]:
    reply = hub.get(f"/v1/calls?{urlencode(filters)}", token=token)
    assert reply.status == 200, reply.body
    fits(hub, "Calls", reply.json)
    return [item["id"] for item in reply.json["items"]]


def shown(hub: HubProcess, call_id: str, token: str = "") -> Any:
    reply = hub.get(f"/v1/calls/{call_id}", token=token)
    assert reply.status == 200, reply.body
    fits(hub, "CallView", reply.json)
    return reply.json


def fits(hub: HubProcess, name: str, value: Any) -> None:
    described = hub.get("/openapi.json").json
    schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
    jsonschema_rs.validator_for(schema).validate(value)


def handed(hub: HubProcess, agent: str, token: str = "", **more: Any) -> str:
    body: dict[str, Any] = {"target_agent_id": agent, "skill": "tell", "input": {}, **more}
    reply = hub.post("/v1/a2a/call/async", body, token=token)
    assert reply.status == 202, reply.body
    call_id: str = reply.json["call_id"]
    return call_id


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)
def test_a_call_of_any_dialect_is_listed_and_shown(hub: HubProcess, agent: PlatformAgent, dialect: Any) -> None:
    agent.respond = repeats
    name = join(hub, agent, open=True)["id"]
    caller = caller_of(dialect)(hub.url, hub.token or "")
    assert caller.call(name, Content(text="hello")).state == "completed"
    (call_id,) = listed(hub, agent=name, dialect=dialect.slug, status="completed")
    call = shown(hub, call_id)
    assert (call["agent"], call["skill"], call["dialect"], call["status"]) == (name, "echo", dialect.slug, "completed")
    assert call["result"]
    assert call["input"]


def test_the_whole_of_a_call_is_shown(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = says({"status": "completed", "result": {"sum": 3}, "usage": {"tokens": 12, "cost_usd": 0.5}})
    name = join(hub, agent)["id"]
    said = hub.call("echo", {"a": 1, "b": 2}, name, context={"conversation_id": f"conv-{name}"}).json
    call = shown(hub, said["call_id"])
    assert (call["input"], call["result"], call["error"]) == ({"a": 1, "b": 2}, {"sum": 3}, None)
    assert call["usage"] == {"tokens": 12, "cost_usd": 0.5}
    assert call["conversation_id"] == f"conv-{name}"
    assert (call["trace"]["trace_id"], call["trace"]["span_id"]) == (
        said["trace"]["trace_id"],
        said["trace"]["span_id"],
    )
    assert (call["attempts"], call["callbacks"], call["parent_id"], call["agent_version"]) == (1, 0, None, "1.0.0")
    timing = call["timing"]
    assert (timing["queued_at"], timing["started_at"]) == (said["timing"]["queued_at"], said["timing"]["started_at"])
    assert timing["ended_at"] == said["timing"]["completed_at"]
    assert timing["queued_ms"] + timing["agent_ms"] == pytest.approx(timing["total_ms"], abs=2)
    assert call["duration_ms"] == timing["total_ms"]
    assert timing["deadline_at"] > timing["ended_at"]


def test_a_failed_call_says_why(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = says({"status": "failed", "error": {"code": "STORM", "message": "no sea"}})
    name = join(hub, agent)["id"]
    call_id = hub.call("echo", {}, name).json["call_id"]
    call = shown(hub, call_id)
    assert (call["status"], call["error"]["code"], call["error"]["details"]["agent_code"]) == (
        "failed", "AGENT_ERROR", "STORM",
    )  # fmt: skip
    assert (call["error_code"], call["result"]) == ("AGENT_ERROR", None)
    assert listed(hub, agent=name, status="failed") == [call_id]


def test_calls_are_found_by_every_filter(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent, skills=[skill("echo"), skill("other")])["id"]
    key = hub.new_key("a2a:call")
    trace = "5f" * 16
    parent = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    first = hub.call("echo", {}, name, context={"conversation_id": f"conv-{name}"}).json["call_id"]
    second = hub.call("other", {}, name, headers=parent).json["call_id"]
    third = hub.call("echo", {}, name, token=key, headers={"X-Trace-ID": "my own trace"}).json
    assert listed(hub, agent=name) == [third["call_id"], second, first]
    assert listed(hub, agent=name, skill="other") == [second]
    assert listed(hub, conversation=f"conv-{name}") == [first]
    for spelling in (trace, f"trace_{trace}"):
        assert listed(hub, trace=spelling) == [second]
    assert listed(hub, trace="my own trace") == [third["call_id"]]
    assert listed(hub, trace=shown(hub, first)["trace"]["trace_id"]) == [first]
    caller = shown(hub, third["call_id"])["caller"]
    assert listed(hub, agent=name, caller=caller) == [third["call_id"]]
    since = shown(hub, second)["ended_at"]
    assert listed(hub, agent=name, since=since) == [third["call_id"], second]
    assert listed(hub, prefix=second[:-2]) == [second]
    assert listed(hub, agent=name, dialect="dotted") == []


def test_pages_follow_each_other(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    made = [hub.call("echo", {}, name).json["call_id"] for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    while True:
        query = urlencode({"agent": name, "limit": "2", **({"cursor": cursor} if cursor else {})})
        page = hub.get(f"/v1/calls?{query}").json
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == made[::-1]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("status=lost", "status"),
        ("since=soon", "since"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=%3F", ""),
        ("colour=red", ""),
    ],
)
def test_a_wrong_filter_is_refused(hub: HubProcess, query: str, path: str) -> None:
    error = refused(hub.get(f"/v1/calls?{query}"), 400, "VALIDATION_ERROR")
    assert not path or [each["path"] for each in error["details"]["errors"]] == [path]


def test_only_its_caller_and_an_administrator_see_a_call(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    name, agent = teller
    mine, other = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    call_id = handed(hub, name, token=mine)
    call = agent.next_call()
    for token in (mine, ""):
        assert listed(hub, token, agent=name) == [call_id]
        assert shown(hub, call_id, token)["id"] == call_id
    assert listed(hub, other, agent=name) == []
    assert listed(hub, other, prefix=call_id) == []
    assert listed(hub, other, trace=shown(hub, call_id)["trace_id"]) == []
    assert listed(hub, other, agent=name, caller=shown(hub, call_id)["caller"]) == []
    unknown = "a2a_call_unknown"
    for method, path in (("GET", ""), ("GET", "/events"), ("GET", "/stream"), ("POST", "/cancel")):
        foreign = hub.request(method, f"/v1/calls/{call_id}{path}", token=other)
        nothing = hub.request(method, f"/v1/calls/{unknown}{path}", token=other)
        seen = [
            json.dumps(reply.json["error"]).replace(each, "ID")
            for reply, each in ((foreign, call_id), (nothing, unknown))
        ]
        assert (foreign.status, nothing.status, seen[0]) == (404, 404, seen[1])
        refused(hub.request(method, f"/v1/calls/{call_id}{path}", None, NOBODY), 401, "AUTHORIZATION_ERROR")
    call.complete({"a": 1})
    refused(hub.get("/v1/calls", token=hub.new_key("a2a:register")), 403, "AUTHORIZATION_ERROR")


def test_events_are_listed_by_number(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    name, agent = teller
    call_id = handed(hub, name)
    call = agent.next_call()
    call.say("progress", {"progress": 0.5, "message": "Reading"})
    eventually(lambda: shown(hub, call_id)["progress"] == 0.5, "progress is shown")
    call.complete({"a": 1}, usage={"tokens": 3})
    eventually(lambda: shown(hub, call_id)["status"] == "completed", "it has ended")
    reply = hub.get(f"/v1/calls/{call_id}/events").json
    fits(hub, "CallEvents", reply)
    events = reply["items"]
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert shown(hub, call_id)["last_event"] == len(events)
    assert (events[0]["event"], events[0]["data"]) == ("status", {"status": "submitted"})
    assert {"status": "working", "progress": 0.5, "message": "Reading"} in [event["data"] for event in events]
    assert [event["data"]["attempt"] for event in events if event["event"] == "sent"] == [1]
    assert events[-1]["data"] == {"status": "completed", "usage": {"tokens": 3}}
    paged = hub.get(f"/v1/calls/{call_id}/events?limit=2").json
    assert (paged["items"], paged["next_cursor"]) == (events[:2], "2")
    rest = hub.get(f"/v1/calls/{call_id}/events?after=2").json
    assert (rest["items"], rest["next_cursor"]) == (events[2:], None)
    refused(hub.get(f"/v1/calls/{call_id}/events?after=x"), 400, "VALIDATION_ERROR")


def test_a_stream_tells_what_happens_and_is_resumed(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    name, agent = teller
    call_id = handed(hub, name)
    call = agent.next_call()
    url, key = f"{hub.url}/v1/calls/{call_id}/stream", {"Authorization": f"Bearer {hub.token}"}
    with sse(url, headers=key) as stream:
        call.say("progress", {"progress": 0.5})
        seen: list[SseItem] = []
        for item in stream:
            seen.append(item)
            if item.data["data"].get("progress") == 0.5:
                break
    call.complete({"a": 1})
    eventually(lambda: shown(hub, call_id)["status"] == "completed", "it has ended")
    events = hub.get(f"/v1/calls/{call_id}/events").json["items"]
    with sse(url, headers={**key, "Last-Event-ID": seen[-1].id}) as stream:
        seen += list(stream)
    assert seen.pop().name == "done"
    assert [item.data for item in seen] == events
    assert [(item.name, int(item.id)) for item in seen] == [(event["event"], event["n"]) for event in events]
    with sse(f"{url}?after={len(events) - 1}", headers=key) as stream:
        assert [item.name for item in stream] == ["status", "done"]
    with sse(f"{url}?after=99999", headers=key) as stream:
        whole, done = list(stream)
        # What the calls below it used is looked up for one who asks, not for a stream.
        assert (whole.name, whole.data, done.name) == ("call", {**shown(hub, call_id), "usage_total": None}, "done")


def test_a_running_call_is_cancelled_and_an_ended_one_is_not(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = join(hub, agent, skills=[skill("tell")])["id"]
    call_id = handed(hub, name)
    assert agent.arrived.wait(10)
    reply = hub.post(f"/v1/calls/{call_id}/cancel", {"reason": "changed my mind"})
    assert (reply.status, reply.json["status"]) == (200, "canceled"), reply.body
    fits(hub, "CallView", reply.json)
    assert agent.cancelled.wait(10)
    assert hub.request("POST", f"/v1/calls/{call_id}/cancel").status == 409
    refused(hub.post(f"/v1/calls/{call_id}/cancel", {"why": 1}), 400, "VALIDATION_ERROR")


def test_files_are_shown_as_links(hub: HubProcess, agent: PlatformAgent) -> None:
    raw = base64.b64encode(b"all of it").decode()
    file = {"kind": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": raw}}
    agent.respond = says({"status": "completed", "result": {"parts": [file]}})
    call_id = hub.call("echo", {"parts": [file]}, join(hub, agent)["id"]).json["call_id"]
    call = shown(hub, call_id)
    for place in (call["input"], call["artifacts"][0]):
        (part,) = place["parts"]
        assert part["file"]["name"] == "a.txt"
        link = urlsplit(str(part["file"]["uri"]))
        assert hub.get(f"{link.path}?{link.query}").body == b"all of it"
    assert call["result"] == {"parts": [file]}, "the answer is shown as it was given"
    events = hub.get(f"/v1/calls/{call_id}/events").json["items"]
    (made,) = [event["data"]["parts"] for event in events if event["event"] == "artifact"]
    link = urlsplit(str(made[0]["file"]["uri"]))
    assert hub.get(f"{link.path}?{link.query}").body == b"all of it"
