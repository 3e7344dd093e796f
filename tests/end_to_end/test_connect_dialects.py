"""An agent without an address, which connected to the hub, called from every dialect."""

from collections.abc import Generator
from contextlib import ExitStack

import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.model.fit import Feature
from tests.support.following import follower_of
from tests.support.hub import running_hub
from tests.support.matrix import (
    FAILED,
    KINDS,
    SHOWN_AS_STATE,
    TIMED_OUT,
    Words,
    caller_of,
    cell_name,
)
from tests.support.raw_connected import Echoing, echoing
from tests.support.speaking import FAILURE, QUESTION, Caller, Content, Seen
from tests.support.telling import FIRST, WHOLE

AGENT = "agt_connected"
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=cell_name)


class World:
    """One hub, one agent that connected to it, and a caller of each dialect."""

    def __init__(self, url: str, agent: Echoing) -> None:
        self.url = url
        self.agent = agent

    def caller(self, dialect: Dialect) -> Caller:
        return caller_of(dialect)(self.url, "")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("connect") / "data", auth="none"))
        yield World(hub.url, stack.enter_context(echoing(hub, AGENT)))


@pytest.mark.req("X-21")
@pytest.mark.parametrize("kind", KINDS)
@EVERY_DIALECT
def test_a_connected_agent_is_called_from_every_dialect(world: World, dialect: Dialect, kind: str) -> None:
    sent = KINDS[kind]
    asking = world.caller(dialect)
    in_bytes = sent.file is not None and sent.file.raw is not None
    if in_bytes and Feature.PARTS in dialect.features and Feature.INLINE not in dialect.features:
        with pytest.raises(NotImplementedError):
            asking.call(AGENT, sent)  # Its own wire has no place for bytes.
        return
    seen = asking.call(AGENT, sent)
    assert seen.error is None and seen.state == "completed", seen
    assert seen.content == (sent,), (seen, world.agent.calls[-1])


@pytest.mark.req("X-21")
@EVERY_DIALECT
def test_what_a_connected_agent_streams_is_followed_in_every_dialect(world: World, dialect: Dialect) -> None:
    world.agent.go.clear()
    with follower_of(dialect)(world.url, "").open(AGENT, "tell") as stream:
        # The envelope has no word for half an answer; its callers hear that the work goes on.
        envelope = dialect.slug == "envelope"
        stream.until(lambda piece: piece.state is not None if envelope else FIRST in (piece.text or piece.whole or ""))
        world.agent.go.set()
        pieces = stream.rest()
    states = [piece.state for piece in pieces if piece.state is not None]
    assert states[-1] == "completed", pieces
    said = "".join(piece.text for piece in pieces)
    wholes = [piece.whole for piece in pieces if piece.whole is not None]
    assert (said or wholes[-1]) == WHOLE, pieces


@pytest.mark.req("X-21")
@EVERY_DIALECT
def test_a_connected_agent_asks_back_in_every_dialect(world: World, dialect: Dialect) -> None:
    asking = world.caller(dialect)
    first = asking.call(AGENT, Content(text="ask"))
    assert QUESTION in (first.message or ""), first
    if dialect.slug == "directory":  # It has no words for an open task.
        assert first.error == -32001
        return
    second = asking.follow_up(AGENT, first, Content(text="the blue one"))
    assert second.state == "completed", second
    assert second.content[0] in (Content(text="the blue one"), Content(data={"text": "the blue one"})), second


@pytest.mark.req("X-21")
@EVERY_DIALECT
def test_a_connected_agent_fails_in_the_words_of_every_dialect(world: World, dialect: Dialect) -> None:
    seen = world.caller(dialect).call(AGENT, Content(text="fail"))
    _shows(seen, FAILED.get(dialect.slug, SHOWN_AS_STATE))
    assert FAILURE in (seen.message or ""), seen


@pytest.mark.req("X-21")
@EVERY_DIALECT
def test_a_connected_agent_that_is_too_slow_is_told_to_stop(world: World, dialect: Dialect) -> None:
    world.agent.cancelled.clear()
    seen = world.caller(dialect).call(AGENT, Content(text="slow"), timeout_ms=150)
    _shows(seen, TIMED_OUT.get(dialect.slug, SHOWN_AS_STATE))
    assert world.agent.cancelled.wait(10), "the agent was not told to stop"


@pytest.mark.req("X-21")
@EVERY_DIALECT
def test_a_call_of_a_connected_agent_is_cancelled_from_every_dialect(world: World, dialect: Dialect) -> None:
    asking = world.caller(dialect)
    world.agent.arrived.clear()
    world.agent.cancelled.clear()
    first = asking.call(AGENT, Content(text="slow"), wait=False)
    assert world.agent.arrived.wait(10)
    seen = asking.cancel(AGENT, first)
    assert seen.state == "canceled", seen
    assert world.agent.cancelled.wait(10), "the agent was not told to stop"


def _shows(seen: Seen, words: Words) -> None:
    assert seen.status == words.status, seen
    if words.state is not None:
        assert seen.state == words.state, seen
    if words.error is not None:
        assert seen.error == words.error, seen
