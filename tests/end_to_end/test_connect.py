"""Agents that connect to the hub, over real sockets: called, streamed, asked, cancelled; told once, and never twice."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import eventually, fresh, refused
from tests.support.hub import HubProcess
from tests.support.ports import free_port
from tests.support.raw_connected import CONNECT, RawSession, calling, card, connect
from tests.support.sse_client import sse

DONE: tuple[str, dict[str, Any]] = ("complete", {"status": "completed", "result": {"ok": True}})


def status_of(hub: HubProcess, call_id: str) -> dict[str, Any]:
    body: dict[str, Any] = hub.get(f"/v1/a2a/call/{call_id}/status").json
    return body


def accepted(hub: HubProcess, agent_id: str, **more: Any) -> str:
    """A call that nobody waits for."""
    body = {"target_agent_id": agent_id, "skill": "echo", "input": {"q": 1}, **more}
    reply = hub.post("/v1/a2a/call/async", body)
    assert reply.status == 202, reply.body
    call_id: str = reply.json["call_id"]
    return call_id


@pytest.mark.req("X-21")
def test_a_call_comes_down_the_stream_and_its_answer_up_by_post(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"), capacity=2)
    assert (agent.answer["heartbeat_s"], agent.answer["lease_s"]) == (10, 30)
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {"q": 1}, context={"conversation_id": "c1", "metadata": {"a": 1}})
        call = frames.next("call")
        assert (call["skill"], call["input"], call["attempt"]) == ("echo", {"q": 1}, 1)
        assert call["context"]["conversation_id"] == "c1" and call["context"]["metadata"] == {"a": 1}
        assert call["caller"]["dialect"] == "platform" and call["caller"]["kind"] == "key"
        assert call["message"]["parts"] == [{"data": {"q": 1}}] and call["message"]["role"] == "user"
        assert (call["history"], call["references"], call["answers"]) == ([], [], [])
        assert call["deadline"].endswith("Z") and call["traceparent"].startswith("00-")
        assert agent.tell(call, ("start", {}), ("progress", {"progress": 0.5}), DONE) == 3
        reply = pending.result()
    assert (reply.status, reply.json["result"]) == (200, {"ok": True})
    assert reply.json["call_id"] == call["call_id"]


@pytest.mark.req("X-21")
def test_what_a_connected_agent_streams_is_shown_event_by_event(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    asked: dict[str, Any] = {"target_agent_id": agent.agent_id, "skill": "echo", "input": {}}
    headers = {"Authorization": f"Bearer {hub.token}"}
    with agent.frames() as frames, sse(f"{hub.url}/v1/a2a/call/stream", asked, headers=headers) as stream:
        call = frames.next("call")
        assert call["options"]["stream"] is True
        agent.tell(call, ("start", {}))
        agent.tell(call, ("log", {"level": "info", "message": "thinking", "at": "2026-01-01T00:00:00Z"}))
        agent.tell(call, ("chunk", {"content": "High "}))
        agent.tell(call, ("chunk", {"content": "water"}), ("usage", {"tokens": 3, "model": "m"}))
        agent.tell(call, ("complete", {"status": "completed"}))
        items = list(stream)
    assert [item.name for item in items] == ["start", "chunk", "chunk", "complete", "done"]
    assert items[-2].data["result"] == {"text": "High water"}
    assert items[-2].data["usage"]["tokens"] == 3
    # What the agent noted is no news to a caller who streams, but is kept with the call.
    assert "thinking" in hub.get(f"/v1/calls/{call['call_id']}/events").body.decode()


@pytest.mark.req("X-21")
def test_a_question_is_answered_in_the_same_process_under_a_new_attempt(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {"q": 1})
        call = frames.next("call")
        agent.tell(call, ("chunk", {"content": "So: "}), ("ask", {"ask": 0, "prompt": "Which one?"}))
        first = pending.result()
        assert first.json["error"]["message"] == "Which one?", first.body
        again = callers.call(hub, agent.agent_id, {"text": "blue"}, context={"continue_call_id": call["call_id"]})
        answer = frames.next("input")
        assert (answer["call_id"], answer["attempt"], answer["ask"]) == (call["call_id"], 2, 0)
        assert answer["message"]["parts"] == [{"data": {"text": "blue"}}]
        assert agent.post(call, ("chunk", {"content": "late"})).status == 410
        agent.tell(answer, ("chunk", {"content": "blue"}), ("complete", {"status": "completed"}))
        assert again.result().json["result"] == {"text": "So: blue"}


@pytest.mark.req("X-21")
def test_a_question_whose_process_is_gone_is_asked_again_with_the_answers(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {"q": 1})
        call = frames.next("call")
        agent.tell(call, ("start", {}), ("ask", {"ask": 0, "prompt": "Which one?"}))
        pending.result()
    agent.leave()
    other = connect(hub, agent.agent_id)
    with other.frames() as frames, calling() as callers:
        again = callers.call(hub, agent.agent_id, {"text": "blue"}, context={"continue_call_id": call["call_id"]})
        whole = frames.next("call")
        assert (whole["call_id"], whole["attempt"], whole["input"]) == (call["call_id"], 2, {"q": 1})
        assert [each["parts"] for each in whole["answers"]] == [[{"data": {"text": "blue"}}]]
        assert whole["heard"] == {"attempt": 1, "n": 2}
        other.tell(whole, ("start", {}), DONE)
        assert again.result().json["result"] == {"ok": True}


@pytest.mark.req("X-21")
def test_a_process_that_comes_back_with_its_question_gets_the_answer(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {"q": 1})
        call = frames.next("call")
        agent.tell(call, ("ask", {"ask": 0, "prompt": "Which one?"}))
        pending.result()
    agent.leave()
    same = connect(hub, agent.agent_id, running=[{"call_id": call["call_id"], "attempt": 1, "n": 1}])
    assert (same.answer["keep"], same.answer["drop"]) == ([call["call_id"]], [])
    with same.frames() as frames, calling() as callers:
        again = callers.call(hub, agent.agent_id, {"text": "blue"}, context={"continue_call_id": call["call_id"]})
        answer = frames.next("input")
        assert (answer["attempt"], answer["ask"]) == (2, 0)
        same.tell(answer, DONE)
        assert again.result().status == 200


@pytest.mark.req("X-21")
def test_a_cancelled_call_is_cancelled_at_its_agent(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames:
        call_id = accepted(hub, agent.agent_id)
        call = frames.next("call")
        agent.tell(call, ("start", {}), ("progress", {"progress": 0.2}))
        assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {"reason": "too slow"}).status == 200
        assert frames.next("cancel") == {"call_id": call_id, "attempt": 1, "reason": "too slow"}
        assert agent.post(call, ("chunk", {"content": "late"})).status == 410
        assert status_of(hub, call_id)["status"] == "cancelled"


@pytest.mark.req("X-21")
def test_capacity_is_shared_by_the_sessions_and_the_most_urgent_goes_first(hub: HubProcess) -> None:
    one = connect(hub, fresh("agt_out"), capacity=1)
    two = connect(hub, one.agent_id, capacity=1)
    with one.frames() as first, two.frames() as second:
        accepted(hub, one.agent_id)
        accepted(hub, one.agent_id)
        calls = [(one, first.next("call")), (two, second.next("call"))]
        accepted(hub, one.agent_id, options={"priority": "low"})
        urgent = accepted(hub, one.agent_id, options={"priority": "urgent"})
        # Both are queued: what the worker hands over is in its order, the switchboard's is by urgency.
        eventually(lambda: status_of(hub, urgent)["status"] == "running", "the urgent one is carried")
        two.tell(calls[1][1], DONE)
        assert second.next("call")["call_id"] == urgent
        one.tell(calls[0][1], DONE)
        assert first.next("call")["options"]["priority"] == "low"


@pytest.mark.req("X-21")
def test_a_call_that_asks_takes_no_room(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"), capacity=1)
    with agent.frames() as frames:
        accepted(hub, agent.agent_id)
        accepted(hub, agent.agent_id)
        agent.tell(frames.next("call"), ("ask", {"ask": 0, "prompt": "?"}))
        agent.tell(frames.next("call"), DONE)


@pytest.mark.req("X-21")
def test_a_stream_that_was_lost_goes_on_after_the_last_frame(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames:
        accepted(hub, agent.agent_id)
        first = frames.next("call")
    accepted(hub, agent.agent_id)
    accepted(hub, agent.agent_id)
    with agent.frames(after=agent.received) as frames:
        calls = [frames.next("call"), frames.next("call")]
        assert first["call_id"] not in [call["call_id"] for call in calls]
    with agent.frames(after=agent.received - 1) as frames:
        assert frames.next("call") == calls[1]  # It was read, but not received.
        for call in (first, *calls):
            agent.tell(call, DONE)


def test_a_second_stream_takes_the_place_of_the_first(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as first, agent.frames() as second:
        assert list(first) == []
        accepted(hub, agent.agent_id)
        agent.tell(second.next("call"), DONE)


@pytest.mark.req("X-21")
def test_what_is_told_twice_counts_once_and_a_gap_is_refused(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {})
        call = frames.next("call")
        gap = agent.post(call, ("chunk", {"content": "x"}), first=2)
        assert (gap.status, gap.json["expected"]) == (409, 1)
        assert agent.post(call, ("chunk", {"content": "a"}), ("chunk", {"content": "b"}), first=1).json == {"acked": 2}
        assert agent.post(call, ("chunk", {"content": "b"}), ("chunk", {"content": "c"}), first=2).json == {"acked": 3}
        assert agent.post(call, ("chunk", {"content": "a"}), first=1).json == {"acked": 3}
        assert agent.post(call, ("complete", {"status": "completed"}), first=4).json == {"acked": 4}
        assert pending.result().json["result"] == {"text": "abc"}
        # The answer to the last got lost: the agent says it once more.
        assert agent.post(call, ("complete", {"status": "completed"}), first=4).json == {"acked": 4}
        assert agent.post(call, ("chunk", {"content": "d"}), first=5).status == 410


def test_a_call_that_is_handed_back_goes_to_another_session(hub: HubProcess) -> None:
    one = connect(hub, fresh("agt_out"))
    with one.frames() as first:
        accepted(hub, one.agent_id)
        call = first.next("call")
        two = connect(hub, one.agent_id)
        one.tell(call, ("released", {}))
        with two.frames() as second:
            again = second.next("call")
            assert (again["call_id"], again["attempt"]) == (call["call_id"], 2)
            assert one.post(call, ("start", {})).status == 410
            two.tell(again, DONE)


def test_whoever_leaves_gives_back_what_it_has_not_begun(hub: HubProcess) -> None:
    one = connect(hub, fresh("agt_out"))
    with one.frames() as first:
        call_id = accepted(hub, one.agent_id, options={"delivery": "at_most_once"})
        first.next("call")
        assert one.leave().status == 200
        assert list(first) == []
    two = connect(hub, one.agent_id)
    with two.frames() as second:
        again = second.next("call")
        assert (again["call_id"], again["attempt"]) == (call_id, 2)
        two.tell(again, DONE)
        assert status_of(hub, call_id)["status"] == "completed"
    assert refused(one.beat(), 404, "SESSION_OVER")


def test_an_agent_that_is_not_there_is_not_waited_for_long_after_it_left(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with calling() as callers:
        agent.leave()
        began = time.monotonic()
        pending = callers.call(hub, agent.agent_id, {}, options={"timeout_ms": 700})
        error = refused(pending.result(), 504, "AGENT_TIMEOUT")
        assert error and time.monotonic() - began < 10
        back = connect(hub, agent.agent_id)
        with back.frames() as frames:
            pending = callers.call(hub, agent.agent_id, {})
            back.tell(frames.next("call"), DONE)
            assert pending.result().status == 200


def test_earlier_turns_and_named_calls_come_with_a_call(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    conversation = fresh("conv")
    with agent.frames() as frames, calling() as callers:
        for words in ("one", "two"):
            pending = callers.call(hub, agent.agent_id, {"text": words}, context={"conversation_id": conversation})
            agent.tell(frames.next("call"), ("complete", {"status": "completed", "result": f"{words}!"}))
            first = pending.result().json["call_id"]
        message = {"messageId": "m3", "role": "ROLE_USER", "parts": [{"text": "three"}], "referenceTaskIds": [first]}
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": {**message, "contextId": conversation}},
        }
        path, version = f"/agents/{agent.agent_id}/", {"A2A-Version": "1.0"}
        with calling() as more:
            third = more.submit(hub.post, path, body, version)
            call = frames.next("call")
            agent.tell(call, DONE)
            assert third.result().status == 200
    said = [(each["role"], each["parts"]) for each in call["history"]]
    assert said == [
        ("user", [{"data": {"text": "one"}}]),
        ("agent", [{"text": "one!"}]),
        ("user", [{"data": {"text": "two"}}]),
        ("agent", [{"text": "two!"}]),
    ]
    assert call["references"] == [{"call_id": first, "artifacts": [{"id": "result", "parts": [{"text": "two!"}]}]}]
    assert "metadata" not in call["message"] and call["message"]["parts"] == [{"text": "three"}]


def test_an_artifact_in_pieces_and_a_result_beside_it(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {})
        call = frames.next("call")
        piece = {"id": "report", "name": "report.txt", "append": False, "last": False}
        agent.tell(call, ("artifact", {**piece, "parts": [{"text": "a"}]}))
        more = {"id": "report", "append": True, "last": True, "parts": [{"text": "b"}]}
        agent.tell(call, ("artifact", more), ("complete", {"status": "completed", "result": {"pages": 1}}))
        assert pending.result().json["result"] == {"pages": 1}
        shown = hub.get(f"/v1/calls/{call['call_id']}").json
        assert "report" in str(shown), shown


@pytest.mark.parametrize(
    ("hello", "path"),
    [
        ({"capacity": -1}, "capacity"),
        ({"capacity": "many"}, "capacity"),
        ({"running": [{"call_id": "x"}]}, "running[0].attempt"),
        ({"running": {}}, "running"),
        ({"session_id": 7}, "session_id"),
        ({"card": {"name": "x"}}, "agent_card.description"),
        ({"card": []}, "card"),
    ],
)
def test_a_hello_that_makes_no_sense_is_refused(hub: HubProcess, hello: dict[str, Any], path: str) -> None:
    error = refused(hub.post(CONNECT, {"agent_id": fresh("agt_out"), **hello}), 400, "VALIDATION_ERROR")
    assert error["details"]["errors"][0]["path"] == path


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"session_id": "s", "attempt": 1},
        {"session_id": "s", "attempt": 1, "events": []},
        {"session_id": "s", "attempt": 0, "events": [{"n": 1, "event": "start"}]},
        {"session_id": "s", "attempt": 1, "events": [{"n": 0, "event": "start"}]},
        {"session_id": "s", "attempt": 1, "events": [{"n": 1, "event": "start", "data": 3}]},
        {"session_id": "s", "attempt": 1, "events": [{"n": 1, "event": "start"}] * 257},
    ],
)
def test_what_is_told_and_makes_no_sense_is_refused(hub: HubProcess, body: Any) -> None:
    refused(hub.post("/v1/agents/calls/a2a_call_x/events", body), 400, "VALIDATION_ERROR")


def test_events_of_strange_content_do_no_harm(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent.agent_id, {})
        call = frames.next("call")
        odd: list[Any] = [None, True, 2**70, "", "\x00", [], {}, [[]], {"a": {}}]
        names = ("start", "progress", "chunk", "ask?", "usage", "log", "span", "unknown")
        for name in names:
            fields: tuple[str, ...] = ("progress", "message", "content", "tokens", "level", "at", "fields", "cost_usd")
            told: list[tuple[str, dict[str, Any]]] = [(name, {field: value for field in fields}) for value in odd]
            agent.tell(call, *told)
        bad = [{"parts": value, "id": "a"} for value in odd] + [{"parts": [value], "id": "a"} for value in odd]
        for data in bad:
            reply = agent.post(call, ("artifact", data), first=len(names) * len(odd) + 1)
            assert reply.status in (200, 400), reply.body
        done = agent.post(call, DONE, first=len(names) * len(odd) + 2)
        assert done.status in (200, 409), done.body
        if done.status == 409:
            agent.post(call, DONE, first=done.json["expected"])
        assert pending.result().status == 200


def test_the_parts_of_a_batch_have_to_follow_each_other(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    events = [{"n": 1, "event": "start"}, {"n": 3, "event": "start"}]
    error = refused(agent.raw("x", {"session_id": agent.id, "attempt": 1, "events": events}), 400, "VALIDATION_ERROR")
    assert error["details"]["errors"][0]["path"] == "events[1].n"


def test_who_may_connect(hub: HubProcess) -> None:
    agent_id = fresh("agt_out")
    owner = hub.new_key("a2a:receive", "a2a:register")
    session = connect(hub, agent_id, owner)
    other = hub.new_key("a2a:receive", "a2a:register", "a2a:call")
    hello = {"agent_id": agent_id, "card": card(agent_id)}
    refused(hub.post(CONNECT, hello, token=other), 403, "AUTHORIZATION_ERROR")
    refused(hub.post(CONNECT, {"agent_id": agent_id}, token=other), 403, "AUTHORIZATION_ERROR")
    foreign = RawSession(hub, session.answer, other)
    refused(foreign.beat(), 404, "SESSION_OVER")
    refused(foreign.leave(), 404, "SESSION_OVER")
    refused(foreign.post({"call_id": "x", "attempt": 1}, ("start", {})), 404, "SESSION_OVER")
    with foreign.frames() as frames:
        assert frames.stream.status == 404
    caller = hub.new_key("a2a:call")
    error = refused(hub.post(CONNECT, hello, token=caller), 403, "AUTHORIZATION_ERROR")
    assert error["details"]["missing"] == ["a2a:receive"]
    receiver = hub.new_key("a2a:receive")
    error = refused(hub.post(CONNECT, hello, token=receiver), 403, "AUTHORIZATION_ERROR")
    assert error["details"]["missing"] == ["a2a:register"]
    refused(hub.post(CONNECT, {"agent_id": fresh("agt_nobody")}, token=owner), 404, "AGENT_NOT_FOUND")
    refused(hub.post(CONNECT, hello, {"Authorization": ""}), 401, "AUTHORIZATION_ERROR")
    assert session.beat().status == 200


def test_the_token_of_a_session_is_the_agent_itself_with_no_more_rights_than_its_key(hub: HubProcess) -> None:
    agent_id = fresh("agt_out")
    key = hub.new_key("a2a:receive", "a2a:register")
    session = connect(hub, agent_id, key)
    refused(hub.call("echo", {}, agent_id, token=session.token), 403, "AUTHORIZATION_ERROR")
    whole = hub.new_key("a2a:receive", "a2a:register", "a2a:call")
    target = connect(hub, fresh("agt_out"), whole)
    session = connect(hub, fresh("agt_out"), whole)
    with target.frames() as frames, calling() as callers:
        pending = callers.call(hub, target.agent_id, {}, token=session.token)
        call = frames.next("call")
        assert call["caller"]["kind"] == "agent"
        assert (call["caller"]["id"], call["caller_agent_id"]) == (session.agent_id, session.agent_id)
        assert call["context"]["call_chain"] == [session.agent_id]
        target.tell(call, DONE)
        assert pending.result().status == 200
    head, claims, signature = session.token.split(".")
    for forged in (f"{head}.{claims}.{signature[:-4]}AAAA", f"{head}.{claims}x.{signature}", f"{head}..", "a.b.c"):
        refused(hub.get("/v1/agents", token=forged), 401, "AUTHORIZATION_ERROR")
    key_id = next(each["key_id"] for each in hub.get("/v1/keys").json["items"] if each["key_id"] in whole)
    assert hub.request("DELETE", f"/v1/keys/{key_id}").status == 200
    refused(hub.get("/v1/agents", token=session.token), 401, "AUTHORIZATION_ERROR")


def test_an_agent_with_a_url_becomes_one_that_connects_and_back(hub: HubProcess) -> None:
    agent_id = fresh("agt_out")
    with_url = {**card(agent_id), "endpoint": f"http://127.0.0.1:{free_port()}/"}
    hub.register(with_url)
    error = refused(hub.post(CONNECT, {"agent_id": agent_id}), 400, "VALIDATION_ERROR")
    assert error["details"]["errors"][0]["path"] == "card"
    agent = connect(hub, agent_id)
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, agent_id, {})
        agent.tell(frames.next("call"), DONE)
        assert pending.result().status == 200
    shown = hub.get(f"/v1/a2a/agents/{agent_id}/card").json
    assert shown["endpoint"] == f"http://localhost:{hub.port}/v1/agents/{agent_id}/a2a"
    hub.register(with_url)
    refused(agent.beat(), 404, "SESSION_OVER")
    refused(hub.call("echo", {}, agent_id), 503, "AGENT_UNAVAILABLE")


def test_the_same_card_is_not_written_again(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    before = hub.get(f"/v1/agents/{agent.agent_id}").json["updated_at"]
    again = connect(hub, agent.agent_id)
    assert hub.get(f"/v1/agents/{agent.agent_id}").json["updated_at"] == before
    assert again.answer["uuid"] == agent.answer["uuid"]


def test_a_hub_that_stops_says_so_and_lets_calls_end(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        busy, idle = connect(hub, fresh("agt_out")), connect(hub, fresh("agt_out"))
        with busy.frames() as frames, idle.frames() as silent, calling() as callers:
            pending = callers.call(hub, busy.agent_id, {})
            call = frames.next("call")
            stopping = callers.submit(hub.stop)
            assert silent.take().name == "drain"
            assert list(silent) == []
            assert frames.next("drain")["reconnect_after_ms"] > 0
            busy.tell(call, DONE)
            assert pending.result().status == 200
            assert list(frames) == []
            assert stopping.result() == 0
    finally:
        hub.kill()


def test_agents_are_found_while_they_are_there(tmp_path: Path) -> None:
    def status(hub: HubProcess, agent_id: str) -> str:
        return str(hub.get(f"/v1/agents/{agent_id}").json["status"])

    hub = HubProcess(tmp_path / "data")
    hub.start({"DRAGOMAN_CONNECT_LEASE_S": "1"})
    try:
        agent = connect(hub, "agt_there")
        paused = connect(hub, "agt_paused")
        assert hub.request("PATCH", "/v1/agents/agt_paused", {"status": "paused"}).status == 200
        assert status(hub, agent.agent_id) == "active"
        eventually(lambda: status(hub, agent.agent_id) == "unreachable", "its lease is over")
        refused(hub.call("echo", {}, agent.agent_id), 503, "AGENT_UNAVAILABLE")
        assert status(hub, paused.agent_id) == "paused"
        call_id = accepted(hub, agent.agent_id)
        back = connect(hub, agent.agent_id)
        assert status(hub, agent.agent_id) == "active"
        with back.frames() as frames:
            back.tell(frames.next("call"), DONE)
        assert status_of(hub, call_id)["status"] == "completed"
        hub.kill()
        hub.start({"DRAGOMAN_CONNECT_LEASE_S": "1"})
        assert status(hub, agent.agent_id) == "active"
        eventually(lambda: status(hub, agent.agent_id) == "unreachable", "it did not come back")
    finally:
        hub.stop()
