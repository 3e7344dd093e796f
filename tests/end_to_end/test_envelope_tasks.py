"""The life of an envelope task over real sockets: given, reported, told, cancelled, out of time, repeated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.agents.envelope import EnvelopeAgent, agent
from tests.support.callers.envelope import EndpointCaller, EnvelopeCaller
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import platform_agent
from tests.support.speaking import FAILURE, QUESTION, Content

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "envelope"
HELLO: Final = Content(text="hello")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("envelope") / "data", auth="none") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def stub(hub: HubProcess) -> Iterator[EnvelopeAgent]:
    """An envelope agent that the hub knows by its own UUID."""
    with agent() as stub:
        hub.register(stub.card)
        yield stub


@pytest.fixture
def caller(hub: HubProcess) -> EnvelopeCaller:
    return EnvelopeCaller(hub.url)


@pytest.fixture
def listener(hub: HubProcess) -> Iterator[EndpointCaller]:
    with EndpointCaller(hub.url) as caller:
        yield caller


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def research(task_id: str) -> dict[str, Any]:
    """The document's assignment, as the stub agent's kind of task and without a deadline."""
    payload = example("task-assignment.strict")["payload"]
    return {**payload, "task_type": "echo", "task_id": task_id, "deadline": None}


def ids(mail: Any) -> set[str]:
    return {each["message_id"] for each in mail["messages"]}


def given(caller: EnvelopeCaller, stub: EnvelopeAgent, text: str = "slow", **more: Any) -> str:
    """The task that the caller gave, once the agent has it: the caller's own name for it."""
    stub.arrived.clear()
    first = caller.call(stub.id, Content(text=text), wait=False, **more)
    assert stub.arrived.wait(10)
    assert first.task_id is not None
    return first.task_id


def report(hub: HubProcess, stub: EnvelopeAgent, kind: str, **payload: Any) -> tuple[int, Any]:
    """What the hub says to a report about the agent's last task."""
    last = stub.assignments[-1]
    told = stub.envelope(last["from"], kind, {"task_id": last["payload"]["task_id"], **payload})
    return stub.post(hub.url, told)


# -- an agent of this dialect, called


@pytest.mark.req("E-52")
def test_an_agent_is_given_its_task_as_a_message_and_its_reports_are_the_outcome(
    hub: HubProcess, stub: EnvelopeAgent
) -> None:
    answer = hub.call("echo", {"text": "hello", "n": 2**70}, agent=stub.id).json
    assert (answer["status"], answer["result"]) == ("completed", {"text": "hello", "n": 2**70})
    assert answer["usage"]["execution_ms"] == 12
    (sent,) = stub.assignments
    assert set(sent) == {"version", "message_id", "timestamp", "from", "to", "type", "payload"}
    assert sent["from"] == hub.get("/agent-card.json").json["id"]
    assert sent["to"] == stub.id
    payload = sent["payload"]
    assert set(payload) <= set(example("task-assignment.strict")["payload"])
    assert (payload["task_type"], payload["priority"]) == ("echo", "medium")
    reply_to = payload["metadata"]["reply_to"]
    assert reply_to.endswith(f":{hub.port}")
    assert eventually(lambda: [status for status, _ in stub.acks], "the report was answered") == [200]


@pytest.mark.req("E-52")
def test_an_agent_may_answer_with_the_completion_itself(hub: HubProcess, stub: EnvelopeAgent) -> None:
    stub.at_once = True
    assert hub.call("echo", {"text": "hello"}, agent=stub.id).json["result"] == {"text": "hello"}
    failed = hub.call("echo", {"text": "fail"}, agent=stub.id)
    assert (failed.status, failed.json["error"]["code"], failed.json["error"]["message"]) == (
        502,
        "AGENT_ERROR",
        FAILURE,
    )
    assert stub.acks == []


@pytest.mark.req("E-52")
@pytest.mark.parametrize("endpoint", ["/", "/a2a", "/a2a/messages"])
def test_the_path_of_messages_is_not_doubled(hub: HubProcess, endpoint: str) -> None:
    with agent() as stub:
        hub.register({**stub.card, "endpoint": stub.url + endpoint})
        assert hub.call("echo", {"text": "hello"}, agent=stub.id).status == 200
        assert {path for method, path, _, _ in stub.requests if method == "POST"} == {"/a2a/messages"}


@pytest.mark.req("E-52")
def test_an_agent_is_found_by_its_url(hub: HubProcess) -> None:
    with agent() as stub:
        assert hub.register(None, url=stub.url)["dialect"] == "envelope"
        assert hub.call("echo", {"text": "hello"}, agent=stub.id).status == 200


# -- the giver is told


@pytest.mark.req("E-41")
@pytest.mark.req("E-43")
def test_a_caller_with_an_endpoint_is_told_there(
    listener: EndpointCaller, stub: EnvelopeAgent, hub: HubProcess
) -> None:
    task_id = given(listener, stub)
    status, ack = report(
        hub, stub, "status_update", status="in_progress", progress=0.5, message="Half", metadata={"n": 1}
    )
    assert (status, set(ack)) == (200, set(example("ack-plain")))
    half = listener.wait_for(task_id, lambda report: report["payload"].get("progress") == 0.5)
    assert half["payload"] == {
        "task_id": task_id,
        "status": "in_progress",
        "progress": 0.5,
        "message": "Half",
        "metadata": {"n": 1},
    }
    assert half["to"] == listener.id
    assert half["from"] == stub.id
    status, ack = report(hub, stub, "task_completion", status="completed", result={"a": 1}, execution_time_ms=7)
    assert (status, set(ack)) == (200, set(example("ack-plain")))
    done = listener.wait_for(task_id, lambda report: report["type"] == "task_completion")
    assert done["payload"] == {"task_id": task_id, "status": "completed", "result": {"a": 1}, "execution_time_ms": 7}
    stub.release.set()


@pytest.mark.req("E-42")
def test_a_caller_without_an_endpoint_fetches_each_report_until_it_says_that_it_came(
    hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent
) -> None:
    assert caller.call(stub.id, HELLO).state == "completed"
    box = f"/a2a/messages?agent={caller.id}"
    first = hub.get(box).json
    came = {each["message_id"] for each in first["messages"]}
    assert "task_completion" in [each["type"] for each in first["messages"]]
    assert came <= ids(hub.get(box).json)  # not acknowledged yet
    after = f"{box}&after={first['cursor']}"
    assert not came & ids(hub.get(after).json)
    assert not came & ids(hub.get(box).json)  # gone for good
    # One that waits is answered as soon as something comes.
    sent = caller.call(stub.id, HELLO, wait=False)
    waited = hub.get(f"{after}&wait=20").json
    assert sent.task_id in [each["payload"]["task_id"] for each in waited["messages"]]


@pytest.mark.req("E-41")
def test_a_task_of_an_agent_of_another_dialect_is_told_in_the_same_words(
    hub: HubProcess, listener: EndpointCaller, caller: EnvelopeCaller
) -> None:
    with platform_agent() as other:
        name = fresh()
        hub.register(other.card(id=name))
        for each in (listener, caller):
            seen = each.call(name, Content(data={"query": "x"}))
            assert seen.state == "completed", seen


@pytest.mark.req("X-23")
def test_a_question_is_told_and_the_same_task_goes_on_with_its_answer(
    caller: EnvelopeCaller, listener: EndpointCaller, stub: EnvelopeAgent
) -> None:
    for each in (caller, listener):
        asks = each.call(stub.id, Content(text="ask"))
        assert (asks.state, asks.message) == ("input-required", QUESTION)
        done = each.follow_up(stub.id, asks, Content(text="the blue one"))
        assert (done.task_id, done.state, done.content) == (asks.task_id, "completed", (Content(text="the blue one"),))


# -- the life of a task


@pytest.mark.req("E-20")
@pytest.mark.req("E-45")
@pytest.mark.req("E-43")
def test_a_finished_task_never_changes_and_a_late_report_says_so(
    hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent
) -> None:
    task_id = given(caller, stub)
    for status in ("assigned", "in_progress"):
        assert report(hub, stub, "status_update", status=status)[0] == 200
    assert report(hub, stub, "status_update", status="assigned")[1]["applied"] is False  # not backwards
    done = report(hub, stub, "task_completion", status="completed", result={"first": True})
    assert done[0] == 200
    assert "applied" not in done[1]
    late: list[tuple[str, dict[str, Any]]] = [
        ("status_update", {"status": "in_progress"}),
        ("status_update", {"status": "cancelled"}),
        ("task_completion", {"status": "failed", "result": {}}),
        ("task_completion", {"status": "completed", "result": {"second": True}}),
    ]
    for kind, payload in late:
        status, ack = report(hub, stub, kind, **payload)
        assert (status, ack["applied"]) == (200, False)
    end = caller.wait_for(task_id, lambda report: report["type"] == "task_completion")
    assert end["payload"]["result"] == {"first": True}
    kept = hub.get(f"/v1/a2a/call/{stub.assignments[-1]['payload']['task_id']}/status").json
    assert (kept["status"], kept["result"]) == ("completed", {"first": True})
    stub.release.set()


@pytest.mark.req("E-46")
def test_each_repetition_of_in_progress_tells_how_far_it_is(
    hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent
) -> None:
    task_id = given(caller, stub)
    for progress in (0.25, 0.5, 0.75):
        assert (
            report(hub, stub, "status_update", status="in_progress", progress=progress, message=f"{progress}")[0] == 200
        )
        told = caller.wait_for(task_id, lambda each, progress=progress: each["payload"].get("progress") == progress)
        assert told["payload"]["message"] == f"{progress}"
    stub.release.set()


@pytest.mark.req("E-19")
@pytest.mark.req("E-17")
def test_a_report_of_an_unknown_task_or_from_another_agent_is_404_and_changes_nothing(
    hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent
) -> None:
    task_id = given(caller, stub)
    theirs = stub.assignments[-1]["payload"]["task_id"]
    with agent() as other:
        hub.register(other.card)
        for kind, payload in (
            ("status_update", {"status": "in_progress", "progress": 0.9}),
            ("status_update", {"status": "cancelled"}),
            ("task_completion", {"status": "completed", "result": {"stolen": True}}),
        ):
            for name in (theirs, str(uuid4())):
                told = other.envelope(caller.id, kind, {"task_id": name, **payload})
                status, answer = other.post(hub.url, told)
                assert (status, answer["error_code"]) == (404, "TASK_NOT_FOUND")
                assert answer["payload"]["original_message_id"] == told["message_id"]
    assert report(hub, stub, "task_completion", status="completed", result={"own": True})[0] == 200
    end = caller.wait_for(task_id, lambda report: report["type"] == "task_completion")
    assert end["payload"]["result"] == {"own": True}
    stub.release.set()


@pytest.mark.req("E-15")
def test_an_error_fails_the_task_it_names(hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent) -> None:
    task_id = given(caller, stub)
    last = stub.assignments[-1]
    payload = {
        "original_message_id": last["message_id"],
        "error_code": "INTERNAL_ERROR",
        "error_message": "out of paper",
        "details": {"task_id": last["payload"]["task_id"]},
    }
    status, ack = stub.post(hub.url, stub.envelope(last["from"], "error", payload))
    assert (status, set(ack)) == (200, set(example("ack-plain")))
    end = caller.wait_for(task_id, lambda report: report["type"] == "task_completion")
    assert (end["payload"]["status"], end["payload"]["result"]["error"]["message"]) == ("failed", "out of paper")
    stub.release.set()


@pytest.mark.req("E-47")
@pytest.mark.req("E-45")
def test_the_giver_cancels_a_task_at_its_agent(hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent) -> None:
    first = caller.call(stub.id, Content(text="slow"), wait=False)
    assert stub.arrived.wait(10)
    ended = caller.cancel(stub.id, first)
    assert ended.state == "canceled"
    assert stub.cancelled.wait(10)
    (told,) = [body for _, _, _, body in stub.requests if body and body["type"] == "status_update"]
    assert told["payload"]["status"] == "cancelled"
    assert told["payload"]["task_id"] == stub.assignments[0]["payload"]["task_id"]
    again = caller.cancel(stub.id, first)
    assert (again.status, again.raw["applied"]) == (200, False)


@pytest.mark.req("E-26")
@pytest.mark.req("E-17")
def test_a_task_that_is_open_when_its_time_is_up_is_cancelled_and_failed(
    caller: EnvelopeCaller, stub: EnvelopeAgent
) -> None:
    seen = caller.call(stub.id, Content(text="slow"), timeout_ms=400)
    assert (seen.state, seen.error) == ("failed", "TIMEOUT")
    assert stub.cancelled.wait(10)


@pytest.mark.req("E-26")
@pytest.mark.parametrize("late_s", [0, 3600])
def test_a_deadline_that_is_not_after_the_timestamp_fails_the_task_at_once(
    caller: EnvelopeCaller, stub: EnvelopeAgent, late_s: int
) -> None:
    seen = caller.call(stub.id, Content(text="slow"), timeout_ms=-1000 * late_s)
    assert (seen.state, seen.error) == ("failed", "TIMEOUT")


@pytest.mark.req("E-26")
def test_only_the_difference_of_the_senders_two_times_counts(caller: EnvelopeCaller, stub: EnvelopeAgent) -> None:
    sent = example("task-assignment.strict")
    payload = {**sent["payload"], "task_type": "echo", "task_id": "old", "payload": {"text": "hello"}}
    status, _ = caller.send({**sent, "from": caller.id, "to": stub.id, "payload": payload})
    assert status == 200
    end = caller.wait_for("old", lambda report: report["type"] == "task_completion")
    assert end["payload"]["status"] == "completed"


# -- done once


@pytest.mark.req("E-23")
def test_a_message_that_comes_again_gets_the_first_answer_and_has_no_second_effect(
    caller: EnvelopeCaller, stub: EnvelopeAgent
) -> None:
    sent = caller.message(stub.id, "task_assignment", research(fresh("task")))
    first, again = caller.send(sent), caller.send(sent)
    assert first[0] == 200
    assert again == first
    caller.wait_for(sent["payload"]["task_id"], lambda report: report["type"] == "task_completion")
    assert caller.send(sent) == first
    assert len(stub.assignments) == 1
    other = {**sent, "payload": {**sent["payload"], "title": "Another"}}
    status, answer = caller.send(other)
    assert (status, answer["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
    assert len(stub.assignments) == 1


@pytest.mark.req("E-23")
def test_a_report_that_comes_again_counts_once(hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent) -> None:
    task_id = given(caller, stub)
    last = stub.assignments[-1]
    told = stub.envelope(
        last["from"], "status_update", {"task_id": last["payload"]["task_id"], "status": "in_progress", "progress": 0.3}
    )
    assert [stub.post(hub.url, told)[0] for _ in range(3)] == [200, 200, 200]
    changed = {**told, "payload": {**told["payload"], "progress": 0.4}}
    status, answer = stub.post(hub.url, changed)
    assert (status, answer["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
    assert report(hub, stub, "task_completion", status="completed", result={})[0] == 200
    seen: list[Any] = []
    caller.wait_for(task_id, lambda each: seen.append(each) or each["type"] == "task_completion")
    assert [each["payload"].get("progress") for each in seen].count(0.3) == 1
    assert 0.4 not in [each["payload"].get("progress") for each in seen]
    stub.release.set()


@pytest.mark.req("E-23")
@pytest.mark.req("X-19")
def test_an_idempotency_key_holds_here_too(hub: HubProcess, caller: EnvelopeCaller, stub: EnvelopeAgent) -> None:
    payload = research(fresh("task"))
    key = {"Idempotency-Key": fresh("key")}
    first = hub.post("/a2a/messages", caller.message(stub.id, "task_assignment", payload), key)
    again = hub.post("/a2a/messages", caller.message(stub.id, "task_assignment", payload), key)
    assert (first.status, again.status) == (200, 200)
    caller.wait_for(payload["task_id"], lambda report: report["type"] == "task_completion")
    assert len(stub.assignments) == 1


# -- the published client, and the document's own flow


@pytest.mark.req("E-51")
def test_the_published_client_works_unchanged(hub: HubProcess, stub: EnvelopeAgent, listener: EndpointCaller) -> None:
    """Its discovery, its spelling (signature null, microseconds), its four messages."""
    found = next(
        answer.json
        for path in ("/agent-card.json", "/.well-known/agent-card.json", "/a2a/agent-card")
        if (answer := hub.get(f"/agents/{stub.id}{path}")).status == 200
    )
    assert {"id", "name", "version", "endpoint"} <= set(found)
    status, answer = listener.ping(stub.id, "n-1", {"any": 1})
    assert (status, answer["nonce"], answer["payload"]["echo"]) == (200, "n-1", {"any": 1})
    task_id = given(listener, stub)
    assert report(hub, stub, "status_update", status="in_progress", progress=0.5)[0] == 200
    assert report(hub, stub, "task_completion", status="completed", result={"ok": True})[0] == 200
    end = listener.wait_for(task_id, lambda each: each["type"] == "task_completion")
    assert end["payload"]["result"] == {"ok": True}
    status, answer = listener.send({**listener.message(stub.id, "ping", {"nonce": "n"}), "version": "9"})
    assert (status, bool(answer["error"])) == (400, True)
    stub.release.set()


@pytest.mark.req("E-48")
@pytest.mark.parametrize("variant", ["strict", "short"])
def test_the_documents_flow_works_with_its_own_data_and_dates(tmp_path: Path, variant: str) -> None:
    assigned, updated, completed = (
        example(f"{name}.{variant}") for name in ("task-assignment", "status-update", "task-completion")
    )
    environ = {"DRAGOMAN_ENVELOPE_IDS": "lenient"} if variant == "short" else {}
    hub = HubProcess(tmp_path / "data", auth="none").start(environ)
    try:
        with agent() as giver, agent() as worker:
            hub.register({**giver.card, "id": assigned["from"]})
            hub.register({**worker.card, "id": assigned["to"], "supported_tasks": ["research"]})
            worker.silent = True  # the test speaks for it
            early = hub.post("/a2a/messages", updated)
            assert (early.status, early.json["error_code"]) == (404, "TASK_NOT_FOUND")
            ack = hub.post("/a2a/messages", assigned)
            assert (ack.status, ack.json["payload"]) == (200, {"task_id": "task-456", "status": "assigned"})
            assert worker.arrived.wait(10)
            assert worker.assignments[0]["payload"]["payload"] == assigned["payload"]["payload"]
            for sent in (updated, completed):
                reply = hub.post("/a2a/messages", sent)
                assert (reply.status, set(reply.json)) == (200, set(example("ack-plain"))), reply.body
            told = eventually(lambda: _told(giver, 2), "both reports are told")
            assert {each["type"]: each["payload"] for each in told} == {
                each["type"]: each["payload"] for each in (updated, completed)
            }
            assert hub.post("/a2a/messages", example(f"error.{variant}")).status == 200
    finally:
        hub.stop()


def _told(giver: EnvelopeAgent, count: int) -> list[dict[str, Any]] | None:
    """What the giver of the task was told of its agent's own words, if it is that much already."""
    came = [body for _, _, _, body in giver.requests if set(body["payload"]) & {"progress", "result"}]
    return came if len(came) >= count else None


# -- who may


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("guarded") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.mark.req("E-18")
@pytest.mark.req("E-44")
def test_a_stranger_is_asked_who_he_is_in_the_dialects_own_words(guarded: HubProcess) -> None:
    reply = guarded.post("/a2a/messages", example("task-assignment.strict"), {"Authorization": ""})
    answer = reply.json
    assert (reply.status, answer["status"], answer["error_code"]) == (401, "error", "AUTHENTICATION_REQUIRED")
    assert reply.headers["www-authenticate"].startswith("Bearer resource_metadata=")
    assert answer["payload"]["original_message_id"] == example("task-assignment.strict")["message_id"]


@pytest.mark.req("E-41")
@pytest.mark.req("E-42")
@pytest.mark.req("E-52")
def test_agents_with_tokens_of_their_own_give_each_other_tasks(guarded: HubProcess) -> None:
    with agent() as stub, EndpointCaller(guarded.url, guarded.token or "") as listener:
        stub.token = guarded.register(stub.card)["token"]
        boxed = EnvelopeCaller(guarded.url, guarded.token or "")
        for each in (listener, boxed):
            own = guarded.register(each.card())["token"]
            each.become(own)
            assert each.call(stub.id, HELLO).state == "completed"
        eventually(lambda: len(stub.acks) == 2, "both reports were answered")
        assert {status for status, _ in stub.acks} == {200}
        stranger = EnvelopeCaller(guarded.url, guarded.new_key("a2a:call"))
        status, answer = stranger.request("GET", f"/a2a/messages?agent={boxed.id}")
        assert (status, answer["error_code"]) == (403, "CAPABILITY_MISMATCH")


@pytest.mark.req("E-19")
def test_nobody_reports_in_the_name_of_another(guarded: HubProcess) -> None:
    with agent() as stub:
        stub.token = guarded.register(stub.card)["token"]
        caller = EnvelopeCaller(guarded.url, guarded.token or "")
        given(caller, stub)
        own, stub.token = stub.token, guarded.new_key("a2a:call", "a2a:receive")
        status, answer = report(guarded, stub, "task_completion", status="completed", result={})
        assert (status, answer["error_code"]) == (403, "CAPABILITY_MISMATCH")
        stub.token = own
        assert report(guarded, stub, "task_completion", status="completed", result={})[0] == 200
        stub.release.set()
