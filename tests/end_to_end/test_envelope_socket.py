"""The envelope over a WebSocket, both ways: tasks given and told, agents without an endpoint, nothing lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.model.json import is_object
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.agents import a2a_v10
from tests.support.callers.a2a_v10 import A2AV10Caller
from tests.support.callers.envelope import EnvelopeCaller
from tests.support.callers.platform import PlatformCaller
from tests.support.envelope_socket import SocketPeer, joined, peer, working
from tests.support.hub import ADMIN_TOKEN, HubProcess, running_hub
from tests.support.platform_agent import platform_agent
from tests.support.speaking import FAILURE, Caller, Content

CALLERS: Final[list[type[Any]]] = [PlatformCaller, A2AV10Caller, EnvelopeCaller]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("sockets") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def caller(hub: HubProcess) -> Iterator[SocketPeer]:
    """A caller without an endpoint, connected with its own token."""
    name, token = joined(hub)
    with peer(hub, token=token) as caller:
        caller.id = name
        yield caller


def called(hub: HubProcess, name: str, count: int) -> list[str]:
    """The ids of so many calls to an agent that nobody waits for, oldest first, each in the agent's mailbox."""
    ids: list[str] = []
    for number in range(count):
        body = {"skill": "echo", "input": {"n": number}, "target_agent_id": name}
        reply = hub.post("/v1/a2a/call/async", body)
        assert reply.status == 202, reply.body
        ids.append(reply.json["call_id"])
        eventually(lambda: waiting(hub, name) == ids, f"call {number} is in the box")
    return ids


def waiting(hub: HubProcess, name: str) -> list[str]:
    """The tasks of what waits in a mailbox."""
    return [each["payload"]["task_id"] for each in hub.get(f"/a2a/messages?agent={name}").json["messages"]]


def status(hub: HubProcess, call_id: str) -> Any:
    return hub.get(f"/v1/a2a/call/{call_id}/status").json


def ended(hub: HubProcess, call_id: str) -> Any:
    """The call, once it has ended."""

    def look() -> Any:
        now = status(hub, call_id)
        return now if now["status"] in ("completed", "failed", "cancelled") else None

    return eventually(look, f"{call_id} has ended")


def shape(answer: Any) -> Any:
    """An answer without what is different each time."""
    changing = {"message_id", "timestamp", "processed_at", "original_message_id", "task_id"}
    if is_object(answer):
        return {name: "…" if name in changing and value else shape(value) for name, value in answer.items()}
    return answer


# -- a caller on a socket


@pytest.mark.req("E-30")
@pytest.mark.parametrize("path", ["/a2a/messages/ws", "/a2a/a2a/messages/ws"])
def test_a_task_given_over_the_socket_is_told_of_on_the_same_socket(hub: HubProcess, path: str) -> None:
    name, token = joined(hub)
    with platform_agent() as other, a2a_v10.agent() as third, peer(hub, token=token, path=path) as caller:
        caller.id = name
        agents = [fresh(), fresh()]
        hub.register(other.card(id=agents[0]))
        hub.register(third.card, id=agents[1])
        skills = [hub.get(f"/agents/{each}/agent-card.json").json["supported_tasks"][0] for each in agents]
        for agent, skill in zip(agents, skills, strict=True):
            sent = caller.assignment(agent, {"query": "hello"}, skill)
            answer = caller.ask(sent)
            assert (answer["status"], answer["message_id"]) == ("success", sent["message_id"])
            task_id = sent["payload"]["task_id"]
            assert answer["payload"] == {"task_id": task_id, "status": "assigned"}
            update = caller.take("status_update", task_id=task_id, status="in_progress")
            done = caller.take("task_completion", task_id=task_id)
            assert (update["from"], done["from"]) == (agent, agent)
            assert done["payload"]["status"] == "completed"
        caller.settle()
        eventually(lambda: waiting(hub, name) == [], "everything was acknowledged")


@pytest.mark.req("E-30")
def test_every_frame_is_answered_as_if_it_had_been_posted(hub: HubProcess, caller: SocketPeer) -> None:
    ping = caller.envelope(caller.id, "ping", {"nonce": "n", "echo": {"a": [1]}})
    frames: list[Any] = [
        ping,
        {**ping, "version": "2.0.0"},
        {**ping, "type": "song"},
        {**ping, "payload": []},
        {**ping, "from": "Nobody Here"},
        {**ping, "to": "00000000-0000-4000-8000-00000000dead"},
        caller.assignment(caller.id, {}, "unknown_type"),
        caller.envelope(caller.id, "status_update", {"task_id": "none", "status": "in_progress"}),
        caller.envelope(caller.id, "task_completion", {"task_id": "none"}),
        caller.envelope(caller.id, "error", {"original_message_id": "m", "error_code": "X", "error_message": "x"}),
        {},
        [],
        "not JSON",
        '{"version": "1.0.0"',
        "",
        "\u0000",
        '{"status": 1, "message_id": 2}',
        "[" * 100_000,
    ]
    for frame in frames:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        caller.say(text)
        answer = json.loads(caller.socket.recv(10))
        posted = hub.post(
            "/a2a/messages", text.encode(), token=caller.token, headers={"Content-Type": "application/json"}
        )
        assert shape(answer) == shape(posted.json), text[:200]
    caller.say(b'{"version": "1.0.0"}')
    assert json.loads(caller.socket.recv(10))["error_code"] == "INVALID_MESSAGE_FORMAT"
    caller.settle()


@pytest.mark.req("E-30")
def test_many_frames_are_worked_on_at_once_and_each_gets_its_own_answer(hub: HubProcess, caller: SocketPeer) -> None:
    name, token = joined(hub)
    sent = [caller.assignment(name, {"n": number}) for number in range(300)]
    for each in sent:
        caller.say(each)
    for each in sent:
        assert caller.answer_to(each["message_id"])["payload"]["status"] == "assigned"
    with working(hub, name, token) as seen:
        results: dict[str, int] = {}
        while len(results) < len(sent):
            told = caller.take()
            if told["type"] == "task_completion":
                results[told["payload"]["task_id"]] = told["payload"]["result"]["n"]
    assert results == {each["payload"]["task_id"]: each["payload"]["payload"]["n"] for each in sent}
    assert len(seen) == len(sent)  # none was done twice


@pytest.mark.req("E-30")
def test_what_the_handshake_says_of_one_request_is_not_said_of_every_message(hub: HubProcess) -> None:
    (mine, mine_token), (name, token) = joined(hub), joined(hub)
    once = {"Idempotency-Key": "the-same", "X-Request-ID": "the-same", "Content-Type": "text/plain"}
    with peer(hub, token=mine_token, headers=once) as caller, working(hub, name, token):
        caller.id = mine
        sent = [caller.assignment(name, {"n": number}) for number in range(2)]
        assert [caller.ask(each)["payload"]["task_id"] for each in sent] == [
            each["payload"]["task_id"] for each in sent
        ]


@pytest.mark.req("E-30")
def test_a_trace_goes_along_inside_the_message(hub: HubProcess, caller: SocketPeer) -> None:
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    name, token = joined(hub)
    with working(hub, name, token) as seen, platform_agent() as other:
        sent = caller.assignment(name, {"text": "hello"})
        sent["payload"]["metadata"] = {"dragoman": {"traceparent": f"00-{trace_id}-{span_id}-01"}}
        assert caller.ask(sent)["status"] == "success"
        caller.take("task_completion")
        handed_on = seen[0]["payload"]["metadata"]["dragoman"]["traceparent"]
        assert handed_on.startswith(f"00-{trace_id}-")
        assert span_id not in handed_on
        agent = fresh()
        hub.register(other.card(id=agent))
        sent = caller.assignment(agent, {"query": "hello"})
        sent["payload"]["metadata"] = {"dragoman": {"traceparent": handed_on}}
        assert caller.ask(sent)["status"] == "success"
        caller.take("task_completion", task_id=sent["payload"]["task_id"])
        assert other.requests[0][1]["traceparent"].startswith(f"00-{trace_id}-")


# -- an agent without an endpoint


@pytest.mark.req("E-30")
@pytest.mark.parametrize("kind", CALLERS, ids=lambda kind: kind.slug)
def test_an_agent_without_an_endpoint_is_called_from_every_dialect(hub: HubProcess, kind: type[Any]) -> None:
    caller: Caller = kind(hub.url, ADMIN_TOKEN)
    name, token = joined(hub)
    with working(hub, name, token) as seen:
        done = caller.call(name, Content(data={"q": "ü", "n": 2**60}))
        assert (done.state, done.content) == ("completed", (Content(data={"q": "ü", "n": 2**60}),))
        failed = caller.call(name, Content(text="fail"))
        assert (failed.state, failed.message) == ("failed", FAILURE)
    assert [each["to"] for each in seen] == [name, name]
    eventually(lambda: waiting(hub, name) == [], "everything was acknowledged")


@pytest.mark.req("E-30")
def test_one_envelope_agent_on_a_socket_works_for_another(hub: HubProcess, caller: SocketPeer) -> None:
    name, token = joined(hub)
    with working(hub, name, token):
        sent = caller.assignment(name, {"text": "hello"})
        assert caller.ask(sent)["status"] == "success"
        told = caller.take("status_update", task_id=sent["payload"]["task_id"], progress=0.5)
        done = caller.take("task_completion", task_id=sent["payload"]["task_id"])
    assert (told["from"], done["payload"]["result"]) == (name, {"text": "hello"})


@pytest.mark.req("E-30")
def test_what_is_said_of_one_task_is_taken_in_the_order_in_which_it_was_said(hub: HubProcess) -> None:
    name, token = joined(hub)
    with peer(hub, token=token) as worker:
        worker.id = name
        for call_id in called(hub, name, 3):
            given = worker.take("task_assignment", task_id=call_id)
            steps: list[dict[str, Any]] = [
                {"task_id": call_id, "status": "in_progress", "progress": step / 100} for step in range(40)
            ]
            sent = [worker.envelope(given["from"], "status_update", step) for step in steps]
            end = {"task_id": call_id, "status": "completed", "result": {"done": True}}
            sent.append(worker.envelope(given["from"], "task_completion", end))
            for each in sent:
                worker.say(each)
            assert not any("applied" in worker.answer_to(each["message_id"]) for each in sent)
            assert ended(hub, call_id)["result"] == {"done": True}


@pytest.mark.req("E-30")
def test_an_acknowledgement_may_bring_the_outcome_or_an_error(hub: HubProcess) -> None:
    name, token = joined(hub)
    with peer(hub, token=token) as worker:
        worker.id = name
        at_once, refused, bare, later = called(hub, name, 4)
        outcome = {"task_id": at_once, "status": "completed", "result": {"a": 1}, "execution_time_ms": 7}
        worker.acknowledge(worker.receive(task_id=at_once), type="task_completion", payload=outcome)
        given = worker.receive(task_id=refused)
        told = {"original_message_id": given["message_id"], "error_code": "X", "error_message": "no paper"}
        worker.say({**worker.envelope(given["from"], "error", told), "status": "error"})
        given = worker.receive(task_id=bare)
        worker.say(
            {
                "status": "error",
                "message_id": given["message_id"],
                "error": "wrong input",
                "error_code": "PAYLOAD_VALIDATION_FAILED",
            }
        )
        begun = {"task_id": later, "status": "in_progress", "progress": 0.25}
        worker.acknowledge(worker.receive(task_id=later), type="status_update", payload=begun)
        assert ended(hub, at_once)["result"] == {"a": 1}
        assert ended(hub, refused)["error"]["message"] == "no paper"
        assert ended(hub, bare)["error"]["code"] == "VALIDATION_ERROR"
        eventually(lambda: status(hub, later).get("progress") == 0.25, "the update came")
        eventually(lambda: waiting(hub, name) == [], "everything was acknowledged")


@pytest.mark.req("E-30")
def test_a_cancelled_task_is_cancelled_at_the_agent(hub: HubProcess) -> None:
    name, token = joined(hub)
    with peer(hub, token=token) as worker:
        (call_id,) = called(hub, name, 1)
        worker.take("task_assignment", task_id=call_id)
        assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {}).status == 200
        assert worker.take("status_update", task_id=call_id)["payload"]["status"] == "cancelled"


# -- nothing is lost


@pytest.mark.req("E-30")
def test_what_waits_comes_first_and_what_was_not_acknowledged_comes_again(hub: HubProcess) -> None:
    name, token = joined(hub)
    ids = called(hub, name, 3)
    with peer(hub, token=token) as worker:
        first = [worker.receive() for _ in ids]
        assert [each["payload"]["task_id"] for each in first] == ids
        worker.acknowledge(first[1])  # in whatever order
        eventually(lambda: waiting(hub, name) == [ids[0], ids[2]], "only that one is gone")
        (live,) = called_more(hub, name, ids)
        assert worker.receive()["payload"]["task_id"] == live
    with peer(hub, token=token) as worker:
        again = [worker.take() for _ in range(3)]
        assert again[:2] == [first[0], first[2]]  # the very same messages
        assert again[2]["payload"]["task_id"] == live
        eventually(lambda: waiting(hub, name) == [], "all are gone")
        worker.say({"status": "success", "message_id": first[0]["message_id"]})  # once more does no harm
        worker.id = name
        worker.settle()


def called_more(hub: HubProcess, name: str, ids: list[str]) -> list[str]:
    """One more call while others are still in the box."""
    reply = hub.post("/v1/a2a/call/async", {"skill": "echo", "input": {"n": len(ids)}, "target_agent_id": name})
    assert reply.status == 202, reply.body
    return [reply.json["call_id"]]


@pytest.mark.req("E-30")
def test_a_message_survives_the_hub(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        name, token = joined(hub)
        with peer(hub, token=token) as worker:
            acknowledged, held, unseen = called(hub, name, 3)
            worker.take(task_id=acknowledged)
            worker.receive(task_id=held)
            eventually(lambda: waiting(hub, name) == [held, unseen], "one was acknowledged")
            hub.kill()
            assert worker.closed() == 1006
        hub.start()
        with working(hub, name, token) as seen:
            assert [ended(hub, each)["result"] for each in (held, unseen)] == [{"n": 1}, {"n": 2}]
            assert sorted(each["payload"]["task_id"] for each in seen) == sorted((held, unseen))
        with peer(hub, token=token) as worker:
            worker.id = name
            end = {"task_id": acknowledged, "status": "completed", "result": {"late": True}}
            assert "applied" not in worker.ask(worker.envelope(name, "task_completion", end))
        assert ended(hub, acknowledged)["result"] == {"late": True}
    finally:
        hub.stop()
    assert tracebacks(hub) == []


@pytest.mark.req("E-30")
def test_two_sockets_of_one_agent_share_its_messages_and_one_inherits_those_of_the_other(hub: HubProcess) -> None:
    name, token = joined(hub)
    with peer(hub, token=token) as first:
        held = called(hub, name, 2)
        assert [first.receive()["payload"]["task_id"] for _ in held] == held
        with peer(hub, token=token) as second:
            second.id = name
            second.settle()  # it has looked into the box by now, and found nothing that is free
            first.socket.close()
            assert [second.take()["payload"]["task_id"] for _ in held] == held
    eventually(lambda: waiting(hub, name) == [], "everything was acknowledged")
