"""Any to any, event by event: a caller of each dialect follows its call to an agent of each dialect.

    stream     the agent's words arrive as it says them (where its dialect streams), and the whole answer once
    callback   a call that nobody waits for is carried out, and its outcome told where the caller said
    cancel     a running call is cancelled: its stream says so, and the agent is told
    resume     a reader that is cut comes back to where it was: nothing missed, nothing twice
    deadline   a call that takes too long ends in time, and its stream says so

Generated from the list of dialects. A dialect that has no word for one of these is asked nevertheless, and must say so.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Final

import pytest

from dragoman.dialects.dialect import Dialect
from tests.support.callers.envelope import EndpointCaller
from tests.support.following import FINAL, Followed, Follower, Piece, cut_off, follower_of
from tests.support.handing import hand_over, is_outcome, receiver
from tests.support.hub import HubProcess, running_hub
from tests.support.matrix import MatrixWorld, cell_name, cells, is_told_to_stop
from tests.support.speaking import Content
from tests.support.telling import FIRST, WHOLE, Teller, telling_agent

PATIENCE_S: Final = 20.0
OPERATIONS: Final = ("stream", "callback", "cancel", "resume", "deadline")


class World(MatrixWorld[Follower, Teller]):
    """Callers that follow their calls, and agents that tell their answers piece by piece."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        super().__init__(hub, stack, follower_of, telling_agent)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with ExitStack() as stack:
        data = tmp_path_factory.mktemp("streams") / "data"
        hub = stack.enter_context(running_hub(data, auth="none"))
        yield World(hub, stack)


@pytest.mark.req("X-01")
@pytest.mark.req("X-20")
@pytest.mark.parametrize(("caller", "target", "operation"), cells(OPERATIONS), ids=cell_name)
def test_a_caller_of_any_dialect_follows_an_agent_of_any_other(
    world: World, caller: Dialect, target: Dialect, operation: str
) -> None:
    follower, (agent, teller) = world.caller(caller), world.agent(target)
    teller.reset()
    match operation:
        case "stream":
            with follower.open(agent, "tell") as stream:
                stream.until(_begins(caller, target))
                teller.go.set()
                stream.rest()
            _told_once(stream.seen)
        case "resume":
            with cut_off(follower.open(agent, "tell"), _begins(caller, target)) as cut:
                teller.go.set()
                with follower.resume(agent, cut) as again:
                    again.rest()
            _told_once([*cut.seen, *again.seen])
        case "callback":
            teller.go.set()
            _callback(world, caller, agent)
        case "cancel":
            with follower.open(agent, "slow") as stream:
                stream.until(lambda _: True)
                assert teller.arrived.wait(PATIENCE_S)
                follower.cancel(agent, stream)
                _ends(stream, "canceled")
            if is_told_to_stop(target, waited=False):
                assert teller.cancelled.wait(PATIENCE_S), "the agent was not told to stop"
        case _:
            with follower.open(agent, "slow", timeout_ms=700) as stream:
                _ends(stream, "failed")
            if is_told_to_stop(target, waited=False):
                assert teller.cancelled.wait(PATIENCE_S), "the agent was not told to stop"


def _begins(caller: Dialect, target: Dialect) -> Callable[[Piece], bool]:
    """The piece by which a reader knows that the agent has begun to answer, before it is done.

    The envelope has no word for half an answer; its callers hear that the work goes on.
    """
    if caller.slug == "envelope" and target.slug != "envelope":
        return lambda piece: piece.state is not None
    return lambda piece: FIRST in (piece.text or piece.whole or piece.message or "")


def _told_once(pieces: list[Piece]) -> None:
    """Every word of the answer arrived, in order, and none twice; the end is told, and is the last state."""
    states = [piece.state for piece in pieces if piece.state is not None]
    assert states[-1] == "completed", pieces
    assert sum(state in FINAL for state in states) == 1, pieces
    said = "".join(piece.text for piece in pieces)
    wholes = [piece.whole for piece in pieces if piece.whole is not None]
    assert said or wholes, pieces
    assert not said or said == WHOLE, pieces
    assert not wholes or wholes[-1] == WHOLE, pieces
    numbers = [int(piece.id) for piece in pieces if piece.id]
    assert numbers == sorted(numbers), pieces


def _ends(stream: Followed, state: str) -> None:
    states = [piece.state for piece in stream.rest() if piece.state is not None]
    assert states[-1] == state, stream.seen


def _callback(world: World, caller: Dialect, agent: str) -> None:
    if caller.slug == "directory":
        with pytest.raises(NotImplementedError):
            hand_over(caller.slug, world.hub.url, agent, "tell", "")
        return
    if caller.slug == "envelope":  # whose calls are all of this kind: they are told of at its endpoint
        with EndpointCaller(world.hub.url) as told:
            assert told.call(agent, Content(text="tell")).content == (Content(text=WHOLE),)
        return
    with receiver() as there:
        task_id = hand_over(caller.slug, world.hub.url, agent, "tell", f"{there.url}/told")
        headers, _ = there.until(lambda body: is_outcome(caller.slug, task_id, body))
        assert headers["webhook-id"]
        assert {one[0]["webhook-id"] for one in there.got} != {""}
