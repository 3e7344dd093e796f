"""Agents made with the published SDKs tell their answer in pieces: callers of other dialects hear each as it comes.

They hear at once of the end of an agent that dies, and lose nothing when the hub dies instead.
"""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.following import FINAL, Piece, follower_of
from tests.support.hub import HubProcess, running_hub
from tests.support.peers import PeerProcess

PIECES: Final = ("one ", "two ", "three")
WHOLE: Final = "".join(PIECES)
KNOWN_S: Final = 3.0  # within which callers know that an agent has died
CALLERS: Final = tuple(DIALECTS[slug] for slug in ("platform", "agentvault", "a2a-1.0"))


class SdkTeller(msgspec.Struct, frozen=True, kw_only=True):
    """A published SDK's streaming agent: how it is started, and what the hub must find that it speaks."""

    peer: str
    program: str
    binding: str
    slug: str

    def __str__(self) -> str:
        """Its name in a test's."""
        return f"{self.peer} {self.binding}"


TELLERS: Final = tuple(
    SdkTeller(peer=peer, program=program, binding=binding, slug=slug)
    for peer, program, slug in (
        ("a2a-1.3.0", "telling_agent.py", "a2a-1.0"),
        ("a2a-0.3.26", "telling_agent_v03.py", "a2a-0.3"),
    )
    for binding in ("JSONRPC", "HTTP+JSON")
)


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """Such an agent in its process, known to a hub."""

    id: str
    peer: PeerProcess

    def go(self, gate: str) -> None:
        """Let it say one more piece to whoever named that gate."""
        urllib.request.urlopen(f"{self.peer.url}go/{gate}", b"", timeout=10).close()

    def asked(self) -> dict[str, int]:
        """How often it was sent a message, subscribed to, and asked for a task."""
        with urllib.request.urlopen(f"{self.peer.url}asked", timeout=10) as reply:
            return json.loads(reply.read())


@contextmanager
def running(teller: SdkTeller, hub: HubProcess) -> Generator[Running]:
    """The agent, within the block; the hub was told nothing but its URL."""
    with PeerProcess(teller.peer, teller.program, "--binding", teller.binding) as peer:
        joined = hub.register(None, url=peer.url, id=fresh("agt_teller"))
        assert joined["dialect"] == teller.slug
        yield Running(id=joined["id"], peer=peer)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("tellers") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


every_teller = pytest.mark.parametrize("teller", TELLERS, ids=str)


@pytest.mark.req("O-16", "X-01")
@every_teller
def test_what_a_published_agent_says_is_heard_piece_by_piece_and_its_death_at_once(
    hub: HubProcess, teller: SdkTeller
) -> None:
    with running(teller, hub) as agent:
        for number, caller in enumerate(CALLERS, 1):
            _hears_each_piece(hub, caller, agent)
            assert agent.asked()["sent"] == number
        _hear_of_its_death(hub, agent)


def _hears_each_piece(hub: HubProcess, caller: Dialect, agent: Running) -> None:
    gate = fresh("gate")
    with follower_of(caller)(hub.url, hub.token or "").open(agent.id, gate) as stream:
        for piece in PIECES[:-1]:
            stream.until(_says(piece))
            assert PIECES[-1] not in _words(stream.seen)
            agent.go(gate)
        stream.rest()
    _told_once(stream.seen)


def _hear_of_its_death(hub: HubProcess, agent: Running) -> None:
    with ExitStack() as open_streams:
        streams = [
            open_streams.enter_context(follower_of(caller)(hub.url, hub.token or "").open(agent.id, fresh("gate")))
            for caller in CALLERS
        ]
        for stream in streams:
            stream.until(_says(PIECES[0]))
        os.kill(agent.peer.pid, signal.SIGKILL)
        killed = time.monotonic()
        for stream in streams:
            stream.rest()
        took_s = time.monotonic() - killed
    for stream in streams:
        states = [piece for piece in stream.seen if piece.state is not None]
        assert states[-1].state == "failed", stream.seen
        assert sum(piece.state in FINAL for piece in states) == 1, stream.seen
        assert states[-1].message, stream.seen
    assert took_s < KNOWN_S


@pytest.mark.req("O-18", "O-20", "X-20")
@every_teller
def test_a_killed_hub_goes_on_with_a_published_agents_task_and_does_not_send_it_again(
    teller: SdkTeller, tmp_path: Path
) -> None:
    hub, gate = HubProcess(tmp_path / "data"), fresh("gate")
    hub.start()
    try:
        follower = follower_of(DIALECTS["a2a-1.0"])(hub.url, hub.token or "")
        with running(teller, hub) as agent:
            with follower.open(agent.id, gate, timeout_ms=60_000) as cut:
                cut.until(_says(PIECES[0]))
                hub.kill()
            agent.go(gate)  # It says its second piece to nobody.
            hub.start()
            with follower.resume(agent.id, cut) as again:
                again.until(_says(PIECES[1]))
                eventually(
                    lambda: agent.asked()["got" if teller.slug == "a2a-0.3" else "subscribed"], "the hub comes back"
                )
                agent.go(gate)
                again.rest()
            asked = agent.asked()
        _told_once([*cut.seen, *again.seen])
        assert asked["sent"] == 1, asked
    finally:
        hub.stop()
    assert tracebacks(hub) == []


def _says(words: str) -> Callable[[Piece], bool]:
    return lambda piece: words in (piece.text or piece.whole or "")


def _words(pieces: list[Piece]) -> str:
    return "".join(piece.text or piece.whole or "" for piece in pieces)


def _told_once(pieces: list[Piece]) -> None:
    """Every word of the answer arrived, in order, and none twice; the end is told once."""
    states = [piece.state for piece in pieces if piece.state is not None]
    assert states[-1] == "completed", pieces
    assert sum(state in FINAL for state in states) == 1, pieces
    wholes = [piece.whole for piece in pieces if piece.whole is not None]
    said = "".join(piece.text for piece in pieces)
    assert said or wholes, pieces
    assert not said or said == WHOLE, pieces
    assert not wholes or wholes[-1] == WHOLE, pieces
    numbers = [int(piece.id) for piece in pieces if piece.id]
    assert numbers == sorted(numbers), pieces
