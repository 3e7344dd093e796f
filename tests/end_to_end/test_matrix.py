"""Any to any: a caller of each dialect, an agent of each dialect, every operation, over real sockets.

Generated from the list of dialects; what each cell must show is computed in `tests/support/matrix.py`. A caller's
dialect that has no word for an operation is asked nevertheless, and must say so.
"""

import urllib.request
from collections.abc import Generator
from contextlib import ExitStack

import pytest

from dragoman.dialects import agentvault, directory
from dragoman.dialects.dialect import Dialect
from dragoman.model.fit import Feature
from tests.support.hub import HubProcess, running_hub
from tests.support.matrix import (
    FAILED,
    KINDS,
    NO_SUCH_AGENT,
    OPERATIONS,
    SHOWN_AS_STATE,
    TEXT,
    TIMED_OUT,
    UNKNOWN,
    MatrixWorld,
    Words,
    agent_of,
    caller_of,
    cell_name,
    cells,
    comes_back,
    hosts,
    is_told_to_stop,
)
from tests.support.speaking import FAILURE, QUESTION, Caller, Content, Seen, StubAgent

PATIENCE_S = 20.0


class World(MatrixWorld[Caller, StubAgent]):
    """Callers that wait for answers, and agents that give them."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        super().__init__(hub, stack, caller_of, lambda dialect: agent_of(dialect)())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with ExitStack() as stack:
        data = tmp_path_factory.mktemp("matrix") / "data"
        hub = stack.enter_context(running_hub(data, auth="none"))
        yield World(hub, stack)


@pytest.mark.req("X-01")
@pytest.mark.req("X-03")
@pytest.mark.req("X-05")
@pytest.mark.req("X-23")
@pytest.mark.parametrize(("caller", "target", "operation"), cells(OPERATIONS), ids=cell_name)
def test_a_caller_of_any_dialect_and_an_agent_of_any_other(
    world: World, caller: Dialect, target: Dialect, operation: str
) -> None:
    asking, (agent, stub) = world.caller(caller), world.agent(target)
    stub.arrived.clear()
    stub.cancelled.clear()
    if operation in KINDS:
        _content(caller, target, asking, agent, KINDS[operation])
    elif operation == "follow-up":
        _follow_up(caller, target, asking, agent, stub)
    elif operation == "get":
        _get(caller, target, asking, agent)
    elif operation == "cancel":
        _cancel(caller, target, asking, agent, stub)
    elif operation == "agent error":
        seen = asking.call(agent, Content(text="fail"))
        _shows(seen, FAILED.get(caller.slug, SHOWN_AS_STATE))
        assert FAILURE in (seen.message or ""), seen
    elif operation == "timeout":
        seen = asking.call(agent, Content(text="slow"), timeout_ms=700)
        _shows(seen, TIMED_OUT.get(caller.slug, SHOWN_AS_STATE))
        if is_told_to_stop(target, waited=caller.slug not in ("envelope", "agentvault")):
            assert stub.cancelled.wait(PATIENCE_S), "the agent was not told to stop"
    else:
        _shows(asking.call("nobody-here", TEXT), UNKNOWN.get(caller.slug, NO_SUCH_AGENT))


def _content(caller: Dialect, target: Dialect, asking: Caller, agent: str, sent: Content) -> None:
    in_bytes = sent.file is not None and sent.file.raw is not None
    if in_bytes and Feature.PARTS in caller.features and Feature.INLINE not in caller.features:
        with pytest.raises(NotImplementedError):
            asking.call(agent, sent)  # Its own wire has no place for bytes.
        return
    seen = asking.call(agent, sent)
    assert seen.error is None and seen.state == "completed", seen
    assert len(seen.content) == 1, seen
    if in_bytes and hosts(caller, target):
        _fetched(seen.content[0], sent)
    else:
        assert seen.content[0] == comes_back(caller, target, sent), seen


def _fetched(found: Content, sent: Content) -> None:
    """The bytes lie at the hub, behind a link that anyone may follow until it expires."""
    assert found.file is not None and sent.file is not None
    assert found.file.uri is not None and found.file.raw is None, found
    assert (found.file.name, found.file.media_type) == (sent.file.name, sent.file.media_type)
    with urllib.request.urlopen(found.file.uri, timeout=10) as reply:
        assert reply.read() == sent.file.raw


def _follow_up(caller: Dialect, target: Dialect, asking: Caller, agent: str, stub: StubAgent) -> None:
    answer = Content(text="the blue one")
    if Feature.CONTINUE not in target.features:
        first = asking.call(agent, TEXT)
        second = asking.follow_up(agent, first, answer)
    else:
        first = asking.call(agent, Content(text="ask"))
        assert QUESTION in (first.message or ""), first
        if caller.slug == "directory":  # It has no words for an open task: the target's is cancelled.
            assert (first.error, first.raw["error"]["data"]["reason"]) == (-32001, "input_required")
            if Feature.CANCEL in target.features:
                assert stub.cancelled.wait(PATIENCE_S), "the agent was not told to stop"
            return
        assert first.state == "input-required", first
        second = asking.follow_up(agent, first, answer)
        assert second.task_id == first.task_id
    assert second.state == "completed", second
    assert second.content == (comes_back(caller, target, answer),), second


def _get(caller: Dialect, target: Dialect, asking: Caller, agent: str) -> None:
    first = asking.call(agent, TEXT)
    if caller.slug in ("envelope", "directory"):
        with pytest.raises(NotImplementedError):
            asking.get(agent, first)
        return
    again = asking.get(agent, first)
    assert (again.task_id, again.state) == (first.task_id, "completed"), again
    assert again.content == (comes_back(caller, target, TEXT),), again


def test_a_call_that_is_cancelled_before_its_agent_has_named_it_is_stopped_there_all_the_same(world: World) -> None:
    caller, target = directory.DIALECT, agentvault.DIALECT
    asking, (agent, stub) = world.caller(caller), world.agent(target)
    stub.arrived.clear()
    stub.cancelled.clear()
    stub.names_after_s = 0.2
    try:
        _cancel(caller, target, asking, agent, stub)
    finally:
        stub.names_after_s = 0.0


def _cancel(caller: Dialect, target: Dialect, asking: Caller, agent: str, stub: StubAgent) -> None:
    first = asking.call(agent, Content(text="slow"), wait=False)
    assert first.error is None, first
    assert stub.arrived.wait(PATIENCE_S)
    seen = asking.cancel(agent, first)
    assert seen.state == "canceled", seen
    if is_told_to_stop(target, waited=caller.slug == "directory"):  # whose calls always wait
        assert stub.cancelled.wait(PATIENCE_S), "the agent was not told to stop"


def _shows(seen: Seen, words: Words) -> None:
    assert (seen.state, seen.error, seen.status) == (words.state, words.error, words.status), seen
