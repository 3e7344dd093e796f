"""An agent that no longer understands its calls is looked at again: at the third in a row, and not too often."""

import asyncio
from collections.abc import Coroutine

import msgspec
import pytest

from dragoman.hub.reprobe import APART_S, Reprobe, not_understood
from dragoman.model.errors import AgentError, AgentTimeout, AgentUnavailable, BadAgentReply, BadParams, DragomanError
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.unit.model.test_lifecycle import TASK


class Watch:
    """A reprobe, and the agents that it had looked at."""

    def __init__(self, problem: DragomanError | None = None) -> None:
        self.clock = ManualClock()
        self.looked: list[str] = []
        self.problem = problem
        self.reprobe = Reprobe(look=self.look, clock=self.clock, spawn=self.spawn)
        self._tasks: list[asyncio.Task[None]] = []

    async def look(self, tenant: str, agent_id: str) -> None:
        self.looked.append(f"{tenant}/{agent_id}")
        if self.problem is not None:
            raise self.problem

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    def told(self, *failures: DragomanError | None) -> list[str]:
        async def tell() -> None:
            for failure in failures:
                self.reprobe.ended(ended(failure))
            await asyncio.gather(*self._tasks)
            self._tasks.clear()

        run(tell())
        return self.looked


def ended(error: DragomanError | None, agent: str = "agt_a") -> Task:
    return msgspec.structs.replace(TASK, agent_id=agent, failure=None if error is None else error.failure())


def unknown() -> AgentError:
    return AgentError("Method not found", agent_code=-32601)


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (AgentError("x", agent_code=-32601), True),
        (AgentError("x", agent_code=-32009), True),
        (BadAgentReply("x", reason="invalid_response"), True),
        (AgentError("x", agent_code=-32603), False),
        (AgentError("x"), False),
        (AgentTimeout(), False),
        (AgentUnavailable(), False),
        (BadParams("x", agent_code=-32601), False),
    ],
)
def test_only_a_lack_of_understanding_counts(error: DragomanError, counts: bool) -> None:
    assert not_understood(error.failure()) is counts
    assert not_understood(None) is False


def test_the_third_failure_in_a_row_has_the_agent_looked_at() -> None:
    watch = Watch()
    assert watch.told(unknown(), unknown()) == []
    assert watch.told(unknown()) == ["default/agt_a"]


def test_a_call_that_works_in_between_breaks_the_row() -> None:
    assert Watch().told(unknown(), unknown(), None, unknown(), unknown()) == []
    assert Watch().told(unknown(), unknown(), AgentTimeout(), unknown()) == []


def test_the_failures_of_another_agent_do_not_count() -> None:
    watch = Watch()
    watch.told(unknown(), unknown())
    watch.reprobe.ended(ended(unknown(), "agt_b"))
    assert watch.looked == []


def test_an_agent_is_looked_at_once_in_five_minutes() -> None:
    watch = Watch()
    watch.told(*[unknown()] * 9)
    watch.clock.advance(APART_S - 1)
    assert len(watch.told(*[unknown()] * 3)) == 1
    watch.clock.advance(2)
    assert len(watch.told(unknown())) == 2


def test_a_look_in_vain_disturbs_nobody() -> None:
    assert len(Watch(BadParams("nothing answers")).told(*[unknown()] * 4)) == 1
