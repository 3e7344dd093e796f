import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import call_line, eventually, fresh, holds, join, refused, says, tracebacks
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[HubProcess]:
    """A hub that the test may kill."""
    hub = HubProcess(tmp_path / "data").start()
    yield hub
    hub.stop()
    assert tracebacks(hub) == []


def _in_the_background(ask: Any) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(ask())
        except OSError as error:  # the hub was killed under it
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


@pytest.mark.req("P-17")
def test_the_same_key_and_body_is_one_call_and_another_body_a_conflict(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    once = {"Idempotency-Key": fresh("key")}
    given = {"text": "hi", "n": 2**70}
    first = hub.call("echo", given, name, headers=once, context={"metadata": {"a": 1}})
    again = hub.call("echo", given, name, headers=once, context={"metadata": {"a": 1}})
    assert first.status == again.status == 200
    assert first.body == again.body
    assert len(agent.requests) == 1
    for other in ({"text": "ho"}, {}):
        error = refused(hub.call("echo", other, name, headers=once), 409, "VALIDATION_ERROR")
        assert error["details"]["reason"] == "idempotency_conflict"
    refused(hub.call("echo", given, name, headers=once), 409, "VALIDATION_ERROR")
    assert len(agent.requests) == 1


@pytest.mark.req("P-17")
def test_a_key_is_its_callers_own(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    once = {"Idempotency-Key": fresh("key")}
    ids = {hub.call("echo", {}, name, token=hub.new_key("a2a:call"), headers=once).json["id"] for _ in range(2)}
    assert len(ids) == 2


def test_a_failed_call_is_repeated_from_the_book_too(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = says((500, {}, b"{}"))
    name = join(hub, agent)["id"]
    once = {"Idempotency-Key": fresh("key")}
    first, again = (hub.call("echo", {}, name, headers=once) for _ in range(2))
    assert (first.status, first.body) == (again.status, again.body)
    assert len(agent.requests) == 1


@pytest.mark.req("P-17")
def test_a_repeat_while_the_first_runs_waits_for_it(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = join(hub, agent)["id"]
    once = {"Idempotency-Key": fresh("key")}
    callers = [_in_the_background(lambda: hub.call("echo", {"a": 1}, name, headers=once)) for _ in range(5)]
    assert agent.arrived.wait(5)
    short = hub.call("echo", {"a": 1}, name, headers=once, options={"timeout_ms": 100})
    refused(short, 409, "VALIDATION_ERROR")  # another body: its options differ
    agent.release.set()
    for thread, _ in callers:
        thread.join(10)
    replies: list[Reply] = [answers[0] for _, answers in callers]
    assert len({reply.body for reply in replies}) == 1
    assert replies[0].json["result"] == {"a": 1}
    assert len(agent.requests) == 1


@pytest.mark.req("P-17")
def test_a_finished_call_is_found_by_its_key_after_kill_9(mortal: HubProcess, agent: PlatformAgent) -> None:
    name = join(mortal, agent)["id"]
    once = {"Idempotency-Key": "over-the-crash"}
    first = mortal.call("echo", {"a": 1}, name, headers=once)
    mortal.kill()
    mortal.start()
    again = mortal.call("echo", {"a": 1}, name, headers=once)
    assert (again.status, again.body) == (200, first.body)
    refused(mortal.call("echo", {"a": 2}, name, headers=once), 409, "VALIDATION_ERROR")
    assert len(agent.requests) == 1


@pytest.mark.req("P-17")
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_a_running_call_with_a_key_goes_on_after_kill_9(
    mortal: HubProcess, agent: PlatformAgent, tenant: str | None
) -> None:
    agent.respond = holds(agent)
    token = mortal.new_key("a2a:call", "a2a:register", tenant=tenant)
    name = join(mortal, agent, token=token)["id"]
    once = {"Idempotency-Key": "over-the-crash"}

    def ask() -> Reply:
        return mortal.call("echo", {"a": 1}, name, token=token, headers=once, options={"timeout_ms": 20_000})

    thread, answers = _in_the_background(ask)
    assert agent.arrived.wait(5)
    mortal.kill()
    thread.join(5)
    assert isinstance(answers[0], OSError)
    agent.release.set()
    mortal.start()
    again = ask()
    assert again.status == 200
    assert again.json["result"] == {"a": 1}
    sent = [body["call_id"] for _, _, body in agent.requests]
    assert sent == [again.json["id"]] * len(sent)
    assert len(sent) == 2


def test_a_running_call_without_a_key_is_ended_after_kill_9(mortal: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = join(mortal, agent)["id"]
    thread, _ = _in_the_background(lambda: mortal.call("echo", {}, name))
    assert agent.arrived.wait(5)
    call_id = agent.requests[0][2]["call_id"]
    # Only what was written can be taken up: a waiting call is held back for a moment first.
    eventually(lambda: _written(mortal, call_id), "the call is on disk")
    mortal.kill()
    thread.join(5)
    agent.release.set()
    mortal.start()
    shown = eventually(lambda: _ended(mortal, call_id), "the call has ended")
    assert shown["status"] == "failed"
    assert shown["error"]["code"] == "AGENT_ERROR"
    assert shown["error"]["details"]["reason"] == "interrupted"
    assert call_line(mortal, call_id)["status"] == "failed"
    assert len(agent.requests) == 1


def _written(hub: HubProcess, call_id: str) -> bool:
    with contextlib.closing(sqlite3.connect(f"file:{hub.data / 'hub.db'}?mode=ro", uri=True)) as book:
        return bool(book.execute("SELECT 1 FROM task WHERE id = ?", (call_id,)).fetchall())


def _ended(hub: HubProcess, call_id: str) -> dict[str, Any] | None:
    shown: dict[str, Any] = hub.get(f"/v1/a2a/call/{call_id}/status").json
    return None if shown["status"] in ("queued", "running") else shown


@pytest.mark.req("P-49")
def test_a_request_id_is_echoed_and_passed_on_and_joins_identical_requests(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    name = join(hub, agent)["id"]
    given = {"X-Request-ID": fresh("req")}
    first, again = (hub.call("echo", {"a": 1}, name, headers=given) for _ in range(2))
    other = hub.call("echo", {"a": 2}, name, headers=given)
    other_again = hub.call("echo", {"a": 2}, name, headers=given)
    for reply in (first, again, other, other_again):
        assert reply.status == 200
        assert reply.headers["x-request-id"] == given["X-Request-ID"]
    assert first.body == again.body
    assert other.body == other_again.body
    assert first.json["id"] != other.json["id"]
    assert other.json["result"] == {"a": 2}
    assert [headers["x-request-id"] for _, headers, _ in agent.requests] == [given["X-Request-ID"]] * 2
    assert hub.call("echo", {"a": 1}, name).headers["x-request-id"]


@pytest.mark.req("P-49")
def test_a_request_id_joins_a_request_that_still_runs(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = join(hub, agent)["id"]
    given = {"X-Request-ID": fresh("req")}
    first = _in_the_background(lambda: hub.call("echo", {"n": 2**70}, name, headers=given))
    assert agent.arrived.wait(5)
    second = _in_the_background(lambda: hub.call("echo", {"n": 2**70}, name, headers=given))
    agent.release.set()
    for thread, _ in (first, second):
        thread.join(10)
    assert first[1][0].json == second[1][0].json
    assert len(agent.requests) == 1


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Request-ID"])
@pytest.mark.parametrize("value", ["x" * 257, "\xe9t\xe9"])
def test_an_unusable_key_or_id_is_refused(hub: HubProcess, agent: PlatformAgent, header: str, value: str) -> None:
    error = refused(hub.call("echo", {}, join(hub, agent)["id"], headers={header: value}), 400, "VALIDATION_ERROR")
    assert header in error["message"]
