"""The hub is nobody's way to other addresses: whatever URL comes in, wherever, nothing forbidden is connected to.

The hub tells of each connection that it opens (`planted_security.tells_dials`); what it dials of loopback addresses
ends at a canary of ours. Only 127.7.7.7 is allowed: there a good agent listens, and one that redirects.
"""

import ipaddress
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import quote

import pytest

from tests.end_to_end.world import eventually, tracebacks
from tests.security.addresses import FORBIDDEN, PLACES, PORTS, PUBLIC, TARGET, TASK, Place, changing, forms, hex_name
from tests.support.hub import HubProcess, Reply
from tests.support.planted_security import DIALLED, NAMES, OPEN
from tests.support.security_figures import Figures
from tests.support.stub_server import StubHandler

VERSION: Final = {"A2A-Version": "1.0"}
SETTLED_S: Final = 120.0  # thousands of callbacks in the full set
SPARE: Final = "8.8.4."  # public addresses, one for each place
REDIRECTS: Final = (301, 302, 303, 307, 308)


class Canary:
    """Listens on both loopback addresses, and counts who comes."""

    def __init__(self) -> None:
        self.visits = 0
        while True:
            first = _listening(socket.AF_INET, "127.0.0.1", 0)
            self.port: int = first.getsockname()[1]
            try:
                second = _listening(socket.AF_INET6, "::1", self.port)
            except OSError:  # somebody has that port on the other address
                first.close()
                continue
            break
        self._sockets = (first, second)
        self._threads = [threading.Thread(target=self._count, args=(each,), daemon=True) for each in self._sockets]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def _count(self, listener: socket.socket) -> None:
        while True:
            try:
                wire, _ = listener.accept()
            except OSError:
                return
            self.visits += 1
            wire.close()


def _listening(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((address, port))
    listener.listen(64)
    return listener


class OpenAgent(StubHandler):
    """Does what it is told, in A2A 1.0; below /redirect/CODE/ it leads elsewhere: to a port of its own, or further."""

    elsewhere: tuple[str, ...] = ()
    followed = 0  # how often somebody came where only a redirect leads

    def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
        body = self.read_body()
        if self.path.startswith("/secret"):
            OpenAgent.followed += 1
        if self.path.startswith("/redirect/"):
            _, _, code, which = self.path.split("/")[:4]
            self.say(int(code), {"Location": self.elsewhere[int(which)]}, b"{}")
            return
        asked: Any = json.loads(body or b"{}")
        state = "TASK_STATE_INPUT_REQUIRED" if b'"ask"' in body else "TASK_STATE_COMPLETED"
        task = {"id": "t", "contextId": "c", "status": {"state": state}}
        self.say_json(200, {"jsonrpc": "2.0", "id": asked.get("id"), "result": {"task": task}})

    def do_GET(self) -> None:  # noqa: N802 - the name the parent calls
        if self.path.startswith(("/redirect/", "/secret")):
            self.do_POST()
        elif self.path.startswith("/hostile/.well-known/"):
            # A card that is good to read, and names an endpoint nobody may call.
            url = "https://169.254.169.254/latest"
            interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            skills = [{"id": "echo", "name": "e", "description": "d", "tags": ["t"]}]
            card: dict[str, Any] = {"name": "hostile", "description": "d", "version": "1", "skills": skills, "url": url}
            card |= {"supportedInterfaces": [interface], "capabilities": {}}
            self.say_json(200, card | {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]})
        else:
            self.say(404, {}, b"{}")


class World:
    """A hub that tells of its connections, a good agent, and a canary."""

    def __init__(self, hub: HubProcess, canary: Canary, good: str) -> None:
        self.hub, self.canary, self.good = hub, canary, good
        self._numbers = itertools.count(1)
        self.tried = 0
        interface = {"url": f"{good}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        skills = [{"id": "echo", "name": "e", "description": "d", "tags": ["t"]}]
        card: dict[str, Any] = {"name": TARGET, "description": "d", "version": "1", "skills": skills}
        card |= {"supportedInterfaces": [interface], "capabilities": {}}
        card |= {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
        hub.register(card, id=TARGET)

    def task(self) -> str:
        """A task that waits for more input."""
        message = {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "ask"}]}
        body = {"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": message}}
        task_id: str = self.hub.post(f"/agents/{TARGET}/", body).json["result"]["id"]
        return task_id

    def send(self, place: Place, url: str) -> Reply:
        """Put a URL into a place; an agent that was taken in is called, so that the hub has a reason to connect."""
        self.tried += 1
        sent = place.send(url, f"n{next(self._numbers)}")
        body = json.dumps(sent.body).replace('"GOOD"', f'"{self.good}/"')
        task_id = self.task() if f'"{TASK}"' in body else ""
        body = body.replace(f'"{TASK}"', f'"{task_id}"')
        reply = self.hub.request(sent.method, sent.path, body.encode(), VERSION if sent.version else None)
        if task_id:
            self.hub.post(f"/v1/calls/{task_id}/cancel", {})  # something to tell
        if sent.registers and reply.status in (200, 201):
            self.call(sent.registers)
        return reply

    def call(self, agent: str) -> Reply:
        """One call to an agent."""
        return self.hub.call("echo", {"text": "x"}, agent, options={"timeout_ms": 2000})

    def settled(self) -> None:
        """Wait until everything that is owed to anybody has been tried."""

        def tried() -> bool:
            items = list(self._pending())
            first: dict[tuple[str, str], tuple[int, int]] = {}
            for item in items:  # of what one address hears of one call, the rest waits for the first
                line = (item["call_id"], item["url"])
                first[line] = min(first.get(line, (2**31, 0)), (item["event"], item["attempts"]))
            return all(attempts > 0 for _, attempts in first.values())

        until = time.monotonic() + SETTLED_S
        while not tried():
            assert time.monotonic() < until, "some callback was not tried"
            time.sleep(0.05)  # the only way to wait for what another process does and tells nobody

    def _pending(self) -> Iterator[Any]:
        """All that is owed, page by page."""
        cursor = ""
        while True:
            page = self.hub.get(f"/v1/deliveries?state=pending&limit=100{cursor}").json
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = f"&cursor={quote(page['next_cursor'])}"

    def dialled(self) -> list[str]:
        """The addresses that the hub connected to, the allowed one aside."""
        told = self.hub.log.read_text(errors="replace")
        return re.findall(rf"^{DIALLED} (\S+) \d+$", told, re.MULTILINE)

    def forbidden(self) -> list[str]:
        """Those of them that it never may."""
        return [address for address in self.dialled() if address not in PUBLIC and not address.startswith(SPARE)]


def world_of(folder: Any, stack: ExitStack, planted: str = "") -> World:
    """A hub with everything around it, and perhaps a bug in it."""
    canary = stack.enter_context(Canary())
    good, other = stack.enter_context(_serving()), stack.enter_context(_serving())
    named = f"https://{hex_name('127.0.0.1')}{NAMES}:8443/secret"
    OpenAgent.elsewhere = (f"{other}/secret", f"http://127.0.0.1:{canary.port}/secret", named)
    OpenAgent.followed = 0
    gauge = f"tells_dials={canary.port}"
    hub = HubProcess(folder / "data", planted=f"{gauge},{planted}" if planted else gauge)
    hub.start({"DRAGOMAN_ALLOW_NETWORKS": f"{OPEN}/32"})
    stack.callback(hub.stop)
    return World(hub, canary, good)


@contextmanager
def _serving() -> Generator[str]:
    server = ThreadingHTTPServer((OPEN, 0), OpenAgent)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://{OPEN}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        world = world_of(tmp_path_factory.mktemp("addresses"), stack)
        yield world
        assert tracebacks(world.hub) == []


def short_set() -> Iterator[tuple[Place, str]]:
    """Every place with every form of an address, the addresses by turns: each of the 54 several times."""
    turns = itertools.cycle(FORBIDDEN)
    ports = itertools.cycle(PORTS)
    for place in PLACES:
        for number in range(6):
            address = next(turns)
            written = list(forms(address, next(ports)))
            yield from ((place, url) for url in written[number % 2 :: 2])


def full_set() -> Iterator[tuple[Place, str]]:
    """Every place with every form of every address."""
    ports = itertools.cycle(PORTS)
    for place, address in itertools.product(PLACES, FORBIDDEN):
        yield from ((place, url) for url in forms(address, next(ports)))


def attack(world: World, urls: Iterator[tuple[Place, str]]) -> list[str]:
    """Try them all; what was told of it that says too much."""
    talkative: list[str] = []
    for place, url in urls:
        said = world.send(place, url).body.decode()
        if re.search("loopback|private|link.local|reserved|cloud", said):
            talkative.append(f"{place.name} {url}: {said[:200]}")
    return talkative


def rebind(world: World) -> None:
    """Names that are good when they are looked at first, and bad when they are dialled."""
    numbers = itertools.count(1)
    for place in PLACES:
        for after in (1, 2, 3):
            world.send(place, changing("127.0.0.1", after, next(numbers)))


@pytest.mark.req("X-17")
def test_there_are_fifty_four_addresses_and_every_form_of_them_is_tried() -> None:
    assert len(set(FORBIDDEN)) == 54
    tried = {url for _, url in short_set()}
    assert len(tried) > 54 * 4
    for address in FORBIDDEN:
        assert len(list(forms(address, 443))) == (8 if ":" in address else 12)


@pytest.mark.req("X-17")
@pytest.mark.parametrize("which", [short_set, pytest.param(full_set, marks=pytest.mark.full)])
def test_no_url_leads_to_a_forbidden_address(world: World, which: Any, figures: Figures) -> None:
    before = world.tried
    talkative = attack(world, which())
    world.settled()
    figures(
        "S1",
        places=len(PLACES) if which is short_set else 0,
        urls_tried=world.tried - before,
        forbidden_dials=len(world.forbidden()),
        connections=world.canary.visits,
    )
    assert world.forbidden() == []
    assert world.canary.visits == 0
    assert talkative == []


@pytest.mark.req("X-17")
def test_a_name_that_changes_its_address_is_judged_at_every_dial(world: World, figures: Figures) -> None:
    before = world.tried
    rebind(world)
    world.settled()
    figures("S1", changing_names=world.tried - before, forbidden_dials=len(world.forbidden()))
    assert "1.1.1.1" in world.dialled(), "the first answers were good, and nothing was dialled"
    assert world.forbidden() == []
    assert world.canary.visits == 0


@pytest.mark.req("X-17")
def test_no_redirect_leads_anywhere(world: World, figures: Figures) -> None:
    redirect(world)
    world.settled()
    figures("S1", redirects=len(REDIRECTS) * 12, redirects_followed=OpenAgent.followed)
    assert world.forbidden() == []
    assert world.canary.visits == 0
    assert OpenAgent.followed == 0


def redirect(world: World) -> None:
    """Agents, cards, callbacks and pushes that answer with a redirect to the canary."""
    chosen = {place.name: place for place in PLACES}
    for code in REDIRECTS:
        for which in range(3):
            url = f"{world.good}/redirect/{code}/{which}"
            for name in ("endpoint", "registry url", "callback.url", "push url with a message, 1.0"):
                world.send(chosen[name], url)


@pytest.mark.req("X-17")
def test_a_card_that_the_hub_fetched_names_no_forbidden_endpoint(world: World) -> None:
    """The card of a good server is no better than one that somebody sends."""
    reply = world.hub.post("/v1/a2a/registry", {"url": f"{world.good}/hostile/"})
    assert reply.status in (201, 400), reply.body
    if reply.status == 201:  # by the URL itself, which answers
        shown = world.hub.get(f"/v1/agents/{reply.json['id']}").json
        assert shown["registered_endpoint"].startswith(world.good)
        assert "169.254" not in json.dumps(shown["card"])
        world.call(reply.json["id"])
    assert world.forbidden() == []


@pytest.mark.req("X-17")
@pytest.mark.parametrize("number", range(len(PLACES)), ids=[place.name for place in PLACES])
def test_each_place_takes_a_good_url(world: World, number: int) -> None:
    """Were the requests malformed, nothing would be proved."""
    place, address = PLACES[number], f"{SPARE}{number + 1}"
    reply = world.send(place, f"https://{address}:8443/x")
    said = reply.body.decode()
    assert "not allowed" not in said
    if place.taken:
        assert reply.status < 300, said
        assert '"error":' not in said, said
    if place.dialled:
        eventually(lambda: address in world.dialled(), f"{place.name}: the hub connects, after {said[:300]}")


@pytest.mark.req("X-17")
@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_dialled(world: World, address: str) -> None:
    """Were everything refused, nothing would be proved."""
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    place = PLACES[0]
    assert world.send(place, f"https://{host}:8443/x").status == 201
    assert address in world.dialled()
