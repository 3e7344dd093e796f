"""Bombs of all kinds go off outside: every path that takes a body has its cap, every answer of an agent too.

What one path does with rubbish is tested in `end_to_end/test_bad_input.py`; here it is all of them, taken from what the
hub serves.
"""

import contextlib
import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.end_to_end.world import join, rss_bytes, tracebacks
from tests.security.asking import line_of, listed, request_for
from tests.security.expected import PUBLIC
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.platform_agent import platform_agent
from tests.support.reach import Reached, everything
from tests.support.security_figures import Figures
from tests.support.stranger import Said, ask
from tests.support.stub_server import StubHandler, on_free_port

MIB: Final = 1024 * 1024
GROWTH: Final = 50 * MIB
LARGE: Final = 50_000
BOMBS: Final = {
    "65 levels": b'{"a":' * 65 + b"1" + b"}" * 65,
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "unclosed brackets": b'{"a":[' * 50_000,
    "a batch of 300,000": b"[" + b"{}," * 299_999 + b"{}]",
    "a number of 5,000 digits": b'{"skill":"echo","input":{"n":' + b"9" * 5000 + b"}}",
    "a string without end": b'{"a":"' + b"\\" * 100_001,
    "half a character": b'{"skill":"echo","input":{"a":"\xed\xa0\x80"}}',
}


class World(msgspec.Struct, frozen=True):
    """A hub, an agent that answers, and everything that takes a body."""

    hub: HubProcess
    agent: str
    takes: tuple[Reached, ...]

    def send(self, reached: Reached, body: bytes) -> Said:
        """Send these bytes where the path takes its own."""
        request = request_for(reached, id="nobody", agent=self.agent)
        lines = (f"Authorization: Bearer {ADMIN_TOKEN}", *request.lines)
        return ask(self.hub.port, reached.method, request.path, lines, body)

    def lives(self) -> bool:
        """Whether a good call passes."""
        return self.hub.call("echo", {"text": "x"}, self.agent).status == 200


def world_of(hub: HubProcess, stack: ExitStack, folder: Any) -> World:
    """A hub with an agent, and what it serves."""
    agent = stack.enter_context(platform_agent())
    reached = listed(everything(folder / "same"))
    paths = {(each.method, each.path): each for each in reached if each.method in ("POST", "PUT", "PATCH")}
    return World(hub, join(hub, agent)["id"], tuple(paths.values()))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("caps")
    with ExitStack() as stack:
        hub = HubProcess(folder / "data").start()
        stack.callback(hub.stop)
        yield world_of(hub, stack, folder)
        assert tracebacks(hub) == []


def refused(said: Said) -> bool:
    """Whether an answer is a refusal: by its status, or in JSON-RPC's words."""
    if said.status == 200:
        with contextlib.suppress(ValueError):
            answer: Any = said.json
            return isinstance(answer, dict) and "error" in answer
        return False
    return 400 <= said.status < 500


def survivors(world: World, *, full: bool = False) -> tuple[list[str], int]:
    """Which bombs went off, and where, of how many; the large ones at one path of each kind in the short set."""
    wrong: list[str] = []
    seen: set[tuple[str, str, int]] = set()
    sent = 0
    for reached, (name, body) in itertools.product(world.takes, BOMBS.items()):
        kind = (name, reached.dialect, reached.cap)
        if not full and len(body) > LARGE and kind in seen:
            continue
        seen.add(kind)
        sent += 1
        said = world.send(reached, body)
        if not refused(said):
            wrong.append(f"{name} at {reached.method} {reached.path}: {said.status} {said.body[:80]!r}")
    return wrong, sent


@pytest.mark.req("X-24")
@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_no_bomb_goes_off_at_any_path(world: World, figures: Figures, full: bool) -> None:
    before = rss_bytes(world.hub)
    wrong, sent = survivors(world, full=full)
    grown = rss_bytes(world.hub) - before
    figures("S10", paths=0 if full else len(world.takes), bombs=sent, gone_off=len(wrong))
    assert wrong == [], "\n".join(wrong[:20])
    assert grown < GROWTH, f"{grown / MIB:.0f} MiB"
    assert world.lives()


@pytest.mark.req("X-24")
@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_one_byte_too_many_is_too_many_everywhere(world: World, figures: Figures, full: bool) -> None:
    """Administrative paths take 1 MiB, calls 10 MiB; in the short set one path of each dialect for calls."""
    before = rss_bytes(world.hub)
    wrong: list[str] = []
    seen: set[tuple[str, int]] = set()
    tried = 0
    for reached in world.takes:
        kind = (reached.dialect, reached.cap)
        if line_of(reached).access == PUBLIC or (not full and reached.cap > MIB and kind in seen):
            continue
        seen.add(kind)
        tried += 1
        said = world.send(reached, b'{"a":"' + b"x" * (reached.cap - 7) + b'"}')  # one byte more than the cap
        if said.status != 413:
            wrong.append(f"{reached.method} {reached.path}, {reached.cap}: {said.status}")
    grown = rss_bytes(world.hub) - before
    figures("S10", bodies_too_large=tried, of_them_read=len(wrong), grown_mib=round(grown / MIB))
    assert wrong == []
    assert grown < GROWTH, f"{grown / MIB:.0f} MiB"
    assert world.lives()


class Bomber(StubHandler):
    """An agent whose answers have no end, or more in them than their size says."""

    def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
        body: Any = json.loads(self.read_body())
        wish = json.dumps(body)
        with contextlib.suppress(OSError):
            if "endless event" in wish:
                self.begin_stream()
                self._flood(b"data: ")
            elif "endless answer" in wish:
                self.begin_stream("application/json")
                self._flood(b'{"x":"')
            elif "gzip" in wish:
                packed = gzip.compress(b'{"status":"completed","result":{"a":"' + b"x" * (50 * MIB) + b'"}}')
                self.say(200, {"Content-Encoding": "gzip"}, packed)
            else:
                self.say_json(200, {"status": "completed", "result": {"deep": json.loads("[" * 90 + "]" * 90)}})

    def _flood(self, beginning: bytes) -> None:
        self.wfile.write(beginning)
        for _ in range(64):
            self.wfile.write(b"x" * MIB)


@pytest.mark.req("X-24")
@pytest.mark.parametrize("bomb", ["endless answer", "endless event", "gzip", "deep answer"])
def test_no_answer_of_an_agent_is_too_much_for_the_hub(world: World, bomb: str, figures: Figures) -> None:
    before = rss_bytes(world.hub)
    with on_free_port(Bomber) as url:
        card = {"id": f"agt_{bomb.replace(' ', '_')}", "name": bomb, "description": "d", "version": "1.0.0"}
        card |= {"endpoint": url, "skills": [{"name": "echo", "description": "d"}], "capabilities": {"streaming": True}}
        agent = world.hub.register(card)["id"]
        path = "/v1/a2a/call/stream" if bomb == "endless event" else "/v1/a2a/call"
        reply = world.hub.post(path, {"target_agent_id": agent, "skill": "echo", "input": {"text": bomb}})
    grown = rss_bytes(world.hub) - before
    figures("S10", answers=1)
    if bomb != "deep answer":
        assert b"AGENT_" in reply.body, reply.body[:300]
    assert len(reply.body) < MIB
    assert grown < GROWTH, f"{grown / MIB:.0f} MiB"
    assert world.lives()


def _connection(world: World) -> tuple[str, str]:
    """Where an agent that connected listens, and its key."""
    skills = [{"name": "echo", "description": "d"}]
    card = {"name": "ws-connected", "description": "d", "version": "1.0.0", "skills": skills}
    key = world.hub.new_key("a2a:receive", "a2a:register")
    opened = world.hub.post("/v1/agents/connect", {"agent_id": "ws-connected", "card": card}, token=key)
    return f"/v1/agents/connect?session={opened.json['session_id']}", key


def _mailbox(world: World) -> tuple[str, str]:
    giver = {"id": "ws-giver", "name": "Giver", "version": "1.0.0", "supported_tasks": ["listen"]}
    key: str = world.hub.post("/v1/a2a/registry", {"agent_card": giver}).json["token"]
    return "/a2a/messages/ws?agent=ws-giver", key


@pytest.mark.parametrize("where", [_connection, _mailbox])
def test_no_bomb_goes_off_in_a_websocket(world: World, where: Callable[[World], tuple[str, str]]) -> None:
    path, key = where(world)
    before = rss_bytes(world.hub)
    bombs = {**BOMBS, "11 MiB": b'"' + b"x" * (11 * MIB) + b'"'}
    del bombs["half a character"]  # no text of a WebSocket at all
    for name, body in bombs.items():
        url = f"ws://127.0.0.1:{world.hub.port}{path}"
        with connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as socket:
            try:
                socket.send(body.decode())
                said: Any = json.loads(socket.recv(10))
                while said.get("event") in ("hello", "opened", "call"):
                    said = json.loads(socket.recv(10))
                assert "error" in json.dumps(said), (name, said)
            except ConnectionClosed:
                pass  # as good a refusal
    assert rss_bytes(world.hub) - before < GROWTH
    assert world.lives()
