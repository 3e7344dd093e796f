"""Connected agents whose sessions are lost, and hubs that die under them: nothing lost, nothing taken twice.

What takes a lease to see is played on a clock that stands still in `tests/unit/delivery/test_connections.py`, too.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_connect import DONE, accepted, status_of
from tests.end_to_end.world import eventually, tracebacks
from tests.support.hub import HubProcess
from tests.support.raw_connected import RawSession, calling, connect

LEASE = {"DRAGOMAN_CONNECT_LEASE_S": "1.5"}
AGENT = "agt_lost"


@pytest.fixture
def hub(tmp_path: Path) -> Generator[HubProcess]:
    """A hub of this test alone, whose leases are short."""
    hub = HubProcess(tmp_path / "data").start(LEASE)
    try:
        yield hub
        assert tracebacks(hub) == []
    finally:
        hub.stop()


def killed(hub: HubProcess) -> None:
    """Kill it, and start it again."""
    hub.kill()
    hub.start(LEASE)


def running(call: dict[str, Any], n: int = 0) -> list[dict[str, Any]]:
    return [{"call_id": call["call_id"], "attempt": call["attempt"], "n": n}]


def is_over(session: RawSession) -> bool:
    return session.post({"call_id": "nobody's", "attempt": 1}, ("start", {})).status == 404


@pytest.mark.req("X-21")
def test_a_call_whose_session_is_lost_is_offered_again_under_a_later_attempt(hub: HubProcess) -> None:
    lost = connect(hub, AGENT)
    with lost.frames() as frames, calling() as callers:
        pending = callers.call(hub, AGENT, {"q": 1})
        call = frames.next("call")
        lost.tell(call, ("start", {}), ("chunk", {"content": "Hal"}))
        assert list(frames) == []  # No request came: the lease is over, and the stream with it.
        other = connect(hub, AGENT)
        with other.frames() as again:
            second = again.next("call")
            assert (second["call_id"], second["attempt"]) == (call["call_id"], 2)
            assert second["heard"] == {"attempt": 1, "n": 2}
            assert lost.post(call, ("chunk", {"content": "lo"})).status == 404
            # It begins anew: what the first had said of the answer is replaced.
            other.tell(second, ("start", {}), ("chunk", {"content": "Hello"}), ("complete", {"status": "completed"}))
            assert pending.result().json["result"] == {"text": "Hello"}


@pytest.mark.full
@pytest.mark.req("X-21")
def test_a_process_that_comes_back_in_time_goes_on_under_its_attempt(hub: HubProcess) -> None:
    lost = connect(hub, AGENT)
    with lost.frames() as frames, calling() as callers:
        pending = callers.call(hub, AGENT, {"q": 1})
        call = frames.next("call")
        lost.tell(call, ("start", {}), ("chunk", {"content": "Hal"}))
        assert list(frames) == []
        back = connect(hub, AGENT, running=running(call, 2))
        assert (back.answer["keep"], back.answer["drop"]) == ([call["call_id"]], [])
        assert back.post(call, ("chunk", {"content": "lo"}), first=3).json == {"acked": 3}
        assert back.post(call, ("complete", {"status": "completed"}), first=4).json == {"acked": 4}
        assert pending.result().json["result"] == {"text": "Hallo"}


@pytest.mark.full
@pytest.mark.req("X-21")
def test_the_process_that_lost_a_call_to_another_drops_it(hub: HubProcess) -> None:
    lost = connect(hub, AGENT)
    with lost.frames() as frames, calling() as callers:
        pending = callers.call(hub, AGENT, {"q": 1})
        call = frames.next("call")
        assert list(frames) == []
        other = connect(hub, AGENT)
        with other.frames() as again:
            second = again.next("call")
            back = connect(hub, AGENT, running=running(call))
            assert (back.answer["keep"], back.answer["drop"]) == ([], [call["call_id"]])
            assert back.post(call, DONE).status == 410
            other.tell(second, DONE)
            assert pending.result().status == 200


@pytest.mark.full
@pytest.mark.req("X-21")
def test_a_call_that_may_be_begun_once_only_ends_with_its_session(hub: HubProcess) -> None:
    lost = connect(hub, AGENT)
    with lost.frames() as frames:
        call_id = accepted(hub, AGENT, options={"delivery": "at_most_once"})
        frames.next("call")
        assert list(frames) == []
    ended = eventually(
        lambda: (seen := status_of(hub, call_id))["status"] == "failed" and seen, "the call is interrupted"
    )
    assert ended["error"]["details"]["reason"] == "interrupted"


@pytest.mark.req("X-21")
def test_a_call_goes_on_over_the_hubs_death_and_nothing_of_it_is_taken_twice(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames:
        call_id = accepted(hub, AGENT)
        call = frames.next("call")
        agent.tell(call, ("start", {}), ("chunk", {"content": "a"}))
        assert agent.post(call, ("chunk", {"content": "b"}), first=3).status == 200
    killed(hub)
    assert agent.beat().status == 404
    back = connect(hub, AGENT, running=running(call, 2))
    assert back.answer["keep"] == [call_id]
    # The answer to the third got lost with the hub: it is told again, with the next.
    assert back.post(call, ("chunk", {"content": "b"}), ("chunk", {"content": "c"}), first=3).json == {"acked": 4}
    assert back.post(call, ("complete", {"status": "completed"}), first=5).json == {"acked": 5}
    assert status_of(hub, call_id)["result"] == {"text": "abc"}


@pytest.mark.req("X-21")
def test_a_call_that_may_not_be_repeated_goes_on_if_its_process_still_has_it(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames, calling() as callers:
        pending = callers.submit(_quiet, hub)
        call = frames.next("call")
        agent.tell(call, ("progress", {"progress": 0.5}))  # So it is on disk.
        hub.kill()
        pending.result()
    hub.start(LEASE)
    back = connect(hub, AGENT, running=running(call, 1))
    assert back.answer["keep"] == [call["call_id"]]
    assert back.post(call, DONE, first=2).json == {"acked": 2}
    assert status_of(hub, call["call_id"])["result"] == {"ok": True}


@pytest.mark.full
@pytest.mark.req("X-21")
def test_a_call_that_may_not_be_repeated_and_that_nobody_has_is_interrupted(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames, calling() as callers:
        pending = callers.submit(_quiet, hub)
        call = frames.next("call")
        agent.tell(call, ("progress", {"progress": 0.5}))
        hub.kill()
        pending.result()
    hub.start(LEASE)
    connect(hub, AGENT)  # A process that knows nothing of it.
    ended = eventually(
        lambda: (seen := status_of(hub, call["call_id"]))["status"] == "failed" and seen, "the call is interrupted"
    )
    assert ended["error"]["details"]["reason"] == "interrupted"


@pytest.mark.full
@pytest.mark.req("X-21")
def test_an_accepted_call_that_nobody_has_any_more_is_offered_again(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames:
        call_id = accepted(hub, AGENT)
        call = frames.next("call")
        agent.tell(call, ("start", {}), ("chunk", {"content": "a"}))
    killed(hub)
    other = connect(hub, AGENT)
    with other.frames() as frames:
        again = frames.next("call")
        assert (again["call_id"], again["heard"]) == (call_id, {"attempt": 1, "n": 2})
        assert again["attempt"] > 1
        other.tell(again, ("start", {}), ("chunk", {"content": "b"}), ("complete", {"status": "completed"}))
    assert status_of(hub, call_id)["result"] == {"text": "b"}


@pytest.mark.full
@pytest.mark.req("X-21")
def test_a_call_that_was_given_out_and_told_nothing_of_is_kept_too(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames:
        call_id = accepted(hub, AGENT)
        call = frames.next("call")
    killed(hub)
    back = connect(hub, AGENT, running=running(call))
    assert back.answer["keep"] == [call_id]
    back.tell(call, ("start", {}), DONE)
    assert status_of(hub, call_id)["result"] == {"ok": True}


@pytest.mark.req("X-21")
def test_a_question_is_answered_after_the_hub_died(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames, calling() as callers:
        pending = callers.call(hub, AGENT, {"q": 1})
        call = frames.next("call")
        agent.tell(call, ("ask", {"ask": 0, "prompt": "Which one?"}))
        pending.result()
    killed(hub)
    back = connect(hub, AGENT, running=running(call, 1))
    assert back.answer["keep"] == [call["call_id"]]
    with back.frames() as frames, calling() as callers:
        pending = callers.call(hub, AGENT, {"text": "blue"}, context={"continue_call_id": call["call_id"]})
        answer = frames.next("input")
        assert (answer["attempt"], answer["ask"]) == (2, 0)
        back.tell(answer, DONE)
        assert pending.result().json["result"] == {"ok": True}


def test_what_ended_before_the_hub_died_is_acknowledged_and_dropped(hub: HubProcess) -> None:
    agent = connect(hub, AGENT)
    with agent.frames() as frames:
        call_id = accepted(hub, AGENT)
        call = frames.next("call")
        agent.tell(call, ("start", {}), DONE)
    killed(hub)
    back = connect(hub, AGENT, running=[*running(call, 1), {"call_id": "never-was", "attempt": 1}])
    assert (back.answer["keep"], back.answer["drop"]) == ([], [call_id, "never-was"])
    assert back.post(call, ("start", {}), DONE, first=1).json == {"acked": 2}
    assert is_over(agent)


def _quiet(hub: HubProcess) -> None:
    """A call whose hub dies under it."""
    try:
        hub.call("echo", {"q": 1}, AGENT)
    except OSError:
        return
    raise AssertionError("the hub lived")
