"""A workflow goes on after the hub was killed, wherever that was, and none of its steps is opened twice."""

import contextlib
import http.client
import sqlite3
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.app import DATABASE
from tests.end_to_end.world import eventually, fresh, log_lines, skill, tracebacks
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent, platform_agent

STEPS = ("search", "left", "right", "write")
RESULT = {"did": "write", "from": {"results": [{"did": "left"}, {"did": "right"}]}}
# Of the commits from the start of a hub to the end of a workflow: at the first its life begins, at the last it ends.
COMMITS = range(2, 24)
SOME_COMMITS = (8, 12)
WAITS = "a step waits until its agent takes it"


class Work:
    """A workflow of three stages, the agent that does it, and where its end is told."""

    def __init__(self, agent: PlatformAgent, sink: PlatformAgent) -> None:
        self.agent = agent
        self.sink = sink
        self.key = {"Idempotency-Key": fresh("key")}
        self.killed_at: str | None = None
        self.kill = threading.Event()
        agent.respond = self._respond

    def _respond(self, body: dict[str, Any]) -> dict[str, Any]:
        word = body["skill"]
        if word == self.killed_at:
            self.killed_at = None
            self.kill.set()
            self.agent.release.wait(20)
        result = {"did": word, "from": body["input"]} if word == "write" else {"did": word}
        return {"status": "completed", "result": result}

    def register(self, hub: HubProcess) -> None:
        hub.register(self.agent.card(skills=[skill(name) for name in STEPS]))

    def ask(self, hub: HubProcess, path: str = "/async", **more: Any) -> Reply:
        then = [[{"skill": "left"}, {"skill": "right"}], {"skill": "write"}]
        body: dict[str, Any] = {"skill": "search", "input": {}, "then": then, **more}
        if path == "/async":
            body["callback"] = {"url": self.sink.endpoint}
        return hub.post(f"/v1/a2a/call{path}", body, self.key)

    def ended(self, hub: HubProcess, call_id: str) -> dict[str, Any]:
        """The status of the workflow, once it has ended."""

        def look() -> dict[str, Any] | None:
            shown: dict[str, Any] = hub.get(f"/v1/a2a/call/{call_id}/status").json
            return shown if shown["status"] not in ("queued", "running") else None

        return eventually(look, "the workflow ends")

    def was_done_right(self, hub: HubProcess, call_id: str) -> None:
        """The workflow ends as if nothing had happened."""
        ended = self.ended(hub, call_id)
        assert (ended["status"], ended.get("result")) == ("completed", RESULT), ended
        named = {word: self.asked(word) for word in STEPS}
        wanted = ("0", "1.1", "1.2", "2")
        # Asked again after a crash, an agent is asked under the same id.
        assert named == {word: {f"{call_id}-{place}"} for word, place in zip(STEPS, wanted, strict=True)}
        assert opened(hub) == 1 + len(STEPS)
        assert tracebacks(hub) == []

    def asked(self, word: str) -> set[str]:
        return {body["call_id"] for _, _, body in self.agent.requests if body.get("skill") == word}


def opened(hub: HubProcess) -> int:
    """How many calls the hub has ever opened."""
    with contextlib.closing(sqlite3.connect(hub.data / DATABASE)) as database:
        (count,) = database.execute("SELECT count(*) FROM task").fetchone()
        return int(count)


@pytest.fixture
def work() -> Generator[Work]:
    with platform_agent() as agent, platform_agent() as sink:
        yield Work(agent, sink)


@contextlib.contextmanager
def lives(folder: Path, work: Work, planted: str = "") -> Generator[tuple[HubProcess, HubProcess]]:
    """A hub that will be killed, and the one that comes after it."""
    first, second = HubProcess(folder / "data", planted=planted), HubProcess(folder / "data")
    before = HubProcess(folder / "data").start()
    work.register(before)
    assert before.stop() == 0
    try:
        yield first.start(), second
    finally:
        first.kill()
        second.kill()


def killed_while(step: str, hub: HubProcess, work: Work) -> None:
    """Kill the hub while a step is with its agent."""
    assert work.kill.wait(10), f"{step} was never begun"
    hub.kill()
    work.agent.release.set()


@pytest.mark.req("R-12")
@pytest.mark.parametrize("step", STEPS)
def test_a_workflow_goes_on_after_a_kill_in_any_of_its_steps(tmp_path: Path, work: Work, step: str) -> None:
    with lives(tmp_path, work) as (first, second):
        work.killed_at = step
        call_id = work.ask(first).json["call_id"]
        killed_while(step, first, work)
        work.was_done_right(second.start(), call_id)
        eventually(lambda: work.sink.requests, "the end is told")
        assert [body["call_id"] for _, _, body in work.sink.requests] == [call_id]


@pytest.mark.req("R-12")
def test_who_waited_for_a_workflow_finds_it_again_by_its_key(tmp_path: Path, work: Work) -> None:
    with lives(tmp_path, work) as (first, second), ThreadPoolExecutor(1) as pool:
        work.killed_at = "right"
        asking = pool.submit(work.ask, first, "")
        killed_while("right", first, work)
        with pytest.raises((OSError, http.client.HTTPException)):
            asking.result(10)
        again = work.ask(second.start(), "").json
        assert (again["status"], again["result"]) == ("completed", RESULT)
        work.was_done_right(second, again["call_id"])


def test_what_may_be_sent_once_only_is_not_sent_again(tmp_path: Path, work: Work) -> None:
    with lives(tmp_path, work) as (first, second):
        work.killed_at = "left"
        call_id = work.ask(first, options={"delivery": "at_most_once"}).json["call_id"]
        killed_while("left", first, work)
        error = work.ended(second.start(), call_id)["error"]
        assert error["details"]["reason"] == "interrupted"
        assert error["details"]["step"] in ("1.1", "1.2")  # whichever was with the agent, too
        assert work.asked("write") == set()


def test_a_step_that_its_workflow_left_behind_is_cancelled(tmp_path: Path, work: Work) -> None:
    # In its first life the hub never comes to cancel the steps of what was cancelled.
    with lives(tmp_path, work, "steps_not_stopped") as (first, second):
        work.killed_at = "write"
        call_id = work.ask(first).json["call_id"]
        assert work.kill.wait(10)
        assert first.post(f"/v1/a2a/call/{call_id}/cancel", {}).json["status"] == "cancelled"
        assert first.get(f"/v1/a2a/call/{call_id}-2/status").json["status"] == "running"
        first.kill()
        work.agent.release.set()
        assert work.ended(second.start(), f"{call_id}-2")["status"] == "cancelled"
        assert work.agent.cancelled.wait(10)
        assert [body.get("skill") for _, _, body in work.agent.requests].count("write") == 1


@pytest.mark.req("R-12", "P-30")
@pytest.mark.parametrize("end", ["stop", pytest.param("kill", marks=pytest.mark.full)])
def test_a_step_that_waits_for_its_agents_limit_goes_on_in_the_next_life(tmp_path: Path, work: Work, end: str) -> None:
    waits_over_a_restart(tmp_path, work, end)


def waits_over_a_restart(folder: Path, work: Work, end: str, planted: str = "") -> None:
    """A workflow whose last step has to wait for its agent's limit is done right by the next life of the hub."""
    first, second = HubProcess(folder / "data", planted=planted).start(), HubProcess(folder / "data")
    try:
        first.register(work.agent.card(skills=[skill(name) for name in STEPS], rate_limits={"requests_per_hour": 3}))
        call_id = work.ask(first).json["call_id"]
        eventually(lambda: _waits(first, call_id) or _has_failed(first, call_id), "the last step was refused")
        began = time.monotonic()
        first.stop() if end == "stop" else first.kill()
        assert time.monotonic() - began < 5, "nobody waits for a step that waits"
        assert work.asked("write") == set()
        work.was_done_right(second.start(), call_id)
    finally:
        first.kill()
        second.kill()


def dies_at(commit: int, folder: Path, work: Work, planted: str = "") -> bool:
    """Whether a hub that kills itself at a commit died of it; in any case the workflow is done, by the next life."""
    with lives(folder, work, f"{planted}after_commit={commit}") as (first, second):
        call_id: str | None = None
        # It may die before it has answered.
        with contextlib.suppress(OSError, http.client.HTTPException):
            call_id = work.ask(first).json["call_id"]
            eventually(lambda: first.get(f"/v1/a2a/call/{call_id}/status").json["status"] == "completed", "the end")
        died = _is_dead(first)
        first.kill()
        again = work.ask(second.start()).json["call_id"]
        assert call_id in (None, again)
        work.was_done_right(second, again)
        return died


@pytest.mark.req("R-12")
@pytest.mark.parametrize("commit", SOME_COMMITS)
def test_a_workflow_goes_on_after_a_kill_between_two_commits(tmp_path: Path, work: Work, commit: int) -> None:
    assert dies_at(commit, tmp_path, work), "it ended before that commit: the test proves nothing"


@pytest.mark.full
@pytest.mark.parametrize("commit", COMMITS)
def test_a_workflow_goes_on_after_a_kill_at_any_commit(tmp_path: Path, work: Work, commit: int) -> None:
    dies_at(commit, tmp_path, work)


@pytest.mark.planted
def test_a_workflow_whose_job_ended_early_is_found_out(tmp_path: Path, work: Work) -> None:
    with lives(tmp_path, work, "workflow_job_finished_early") as (first, second):
        work.killed_at = "left"
        call_id = work.ask(first).json["call_id"]
        killed_while("left", first, work)
        with pytest.raises(AssertionError, match="the workflow ends"):
            work.was_done_right(second.start(), call_id)


@pytest.mark.planted
def test_a_step_that_is_refused_for_good_is_found_out(tmp_path: Path, work: Work) -> None:
    with pytest.raises(AssertionError):
        waits_over_a_restart(tmp_path, work, "stop", "steps_refused_for_good")


@pytest.mark.planted
def test_steps_that_are_opened_anew_are_found_out(tmp_path: Path, work: Work) -> None:
    with lives(tmp_path, work, "steps_named_anew") as (first, second):
        work.killed_at = "left"
        call_id = work.ask(first).json["call_id"]
        killed_while("left", first, work)
        with pytest.raises(AssertionError):
            work.was_done_right(second.start(), call_id)
        assert len(work.asked("search")) == 2


def _waits(hub: HubProcess, call_id: str) -> bool:
    return any(line["message"] == WAITS and line["workflow"] == call_id for line in log_lines(hub))


def _has_failed(hub: HubProcess, call_id: str) -> bool:
    return hub.get(f"/v1/a2a/call/{call_id}/status").json["status"] == "failed"


def _is_dead(hub: HubProcess) -> bool:
    try:
        return hub.get("/readyz").status != 200
    except (OSError, http.client.HTTPException):
        return True
