"""The servers of one run: the agent at the far end, the peers in the middle, all stopped when the block ends."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks import nginx
from benchmarks.calls import Call, a2a_call, echo_card
from benchmarks.http import Endpoint
from benchmarks.hub import Hub
from benchmarks.ledger import Answers, Ledger
from benchmarks.naive_hub import NaiveHub
from benchmarks.pairing import check_pairs
from benchmarks.place import LOAD_CORE, ROOT
from benchmarks.processes import Server
from benchmarks.rounds import Contender, Options, Tally
from benchmarks.syncs import count_syncs
from tests.support.ports import free_port

AGENT_ID: Final = "agt_bench_echo"


class Stoppable(Protocol):
    """A process that can be ended."""

    def stop(self) -> None:
        """End it; harmless when it has ended."""
        ...


class Peer(Protocol):
    """A server that a stage runs."""

    @property
    def server(self) -> Stoppable:
        """What is stopped at the end."""
        ...

    def start(self) -> object:
        """Start it and wait until it is ready."""
        ...


class DelayedAgent:
    """fixed_agent.py: the agent that takes its time, or nginx's stand-in."""

    def __init__(self, folder: Path, delay_ms: int = 0) -> None:
        self.endpoint = Endpoint(free_port())
        python = str(ROOT / ".venv" / "bin" / "python")
        command = [python, "-m", "benchmarks.fixed_agent", str(self.endpoint.port), str(delay_ms)]
        log = folder / f"agent-{delay_ms}.log"
        self.server = Server(command, core=LOAD_CORE, log=log, environment={"PYTHONPATH": str(ROOT)})

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.server.start(self.endpoint, "/ready")


class Program:
    """A program of ours that listens: `python -m MODULE PORT`."""

    def __init__(self, folder: Path, module: str, *, core: int) -> None:
        self.endpoint = Endpoint(free_port())
        command = [str(ROOT / ".venv" / "bin" / "python"), "-m", module, str(self.endpoint.port)]
        log = folder / f"{module}.log"
        self.server = Server(command, core=core, log=log, environment={"PYTHONPATH": str(ROOT)})

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.server.start(self.endpoint, "/ready")


class Stage(contextlib.ExitStack):
    """Starts peers, remembers what each answered, and checks their databases at the end."""

    def __init__(self, folder: Path, options: Options) -> None:
        super().__init__()
        self.folder = folder
        self.options = options
        self.tally: Tally = {}

    def run(self, peer: Peer) -> None:
        """Start a peer; it is stopped with the stage."""
        self.callback(peer.server.stop)
        peer.start()

    def agent(self) -> Endpoint:
        """Start the agent that costs nothing."""
        peer = nginx.fixed_agent(self.folder) if nginx.program() else DelayedAgent(self.folder)
        self.run(peer)
        return peer.endpoint

    def delayed_agent(self, delay_ms: int) -> Endpoint:
        """Start an agent that answers after so long."""
        peer = DelayedAgent(self.folder, delay_ms)
        self.run(peer)
        return peer.endpoint

    def program(self, module: str, *, core: int) -> Program:
        """Start a program of ours."""
        peer = Program(self.folder, module, core=core)
        self.run(peer)
        return peer

    def floor(self, upstream: Endpoint) -> list[Contender]:
        """Start the nginx that only passes on; nobody where nginx is missing."""
        if nginx.program() is None:
            print("  nginx is not installed: its ratios are left out (Debian: apt-get install nginx-light)")
            return []
        peer = nginx.proxy(self.folder, upstream)
        self.run(peer)
        return [self.checked(Contender("nginx", a2a_call(peer.endpoint, framed=False), peer.server.pid))]

    def naive(self, upstream: Endpoint) -> NaiveHub:
        """Start the control."""
        peer = NaiveHub(self.folder, upstream)
        self.run(peer)
        return peer

    def hubs(
        self,
        upstream: Endpoint,
        *,
        suffix: str = "",
        settings: Mapping[str, str] | None = None,
        card: Callable[[str], dict[str, Any]] = echo_card,
    ) -> list[Hub]:
        """Start the hub of every checkout, with that agent registered and a key to call it."""
        found: list[Hub] = []
        for name, root in self.options.hubs.items():
            hub = Hub(self.folder, name=name + suffix, root=root, settings=settings)
            self.run(hub)
            hub.register(AGENT_ID, card(upstream.url))
            hub.make_key()
            found.append(hub)
        return found

    def checked(self, contender: Contender) -> Contender:
        """The contender, after the exact check of its answers."""
        self.count(contender.name, check_pairs(contender.call))
        return contender

    def count(self, name: str, answers: Answers, cut_off: int = 0) -> None:
        """Remember answers that a server gave, and requests that it may have been left with."""
        self.tally.setdefault(name, Ledger()).add(answers, cut_off)

    def prove(self, name: str, call: Call, pid: int) -> dict[str, Any]:
        """Count the syncs of one short extra round."""
        found, answers = count_syncs(name, call, pid, self.folder)
        self.count(name, answers, 1)
        said = found.get("reason") or f"{found['syncs']} syncs for {found['answered']} calls, one at a time"
        print(f"  {name}: {said}")
        return found

    def settle(self, peers: Sequence[Hub | NaiveHub]) -> dict[str, Any]:
        """Stop the peers and compare their databases with their answers; Void when they disagree."""
        found: dict[str, Any] = {}
        for peer in peers:
            peer.server.stop()
            found[peer.name] = peer.check(self.tally.get(peer.name, Ledger()))
            counted = found[peer.name]
            print(
                f"  {peer.name}: {counted['rows']} rows for {counted['answered']} answers"
                f" (at most {counted['cut_off']} in flight at the ends), none missing, no gaps,"
                f" integrity {counted['integrity']}"
            )
        return found
