"""The peer that all this is about: `dragoman serve` of one checkout, with SQLite on the disk that was measured."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.calls import Call, a2a_call, accepted_call, platform_call
from benchmarks.http import Endpoint
from benchmarks.ledger import Ledger, check_hub, left_hub
from benchmarks.place import ROOT, SERVER_CORE, Void
from benchmarks.processes import Server
from tests.support.ports import free_port

UNLIMITED: Final = {"requests_per_minute": 100_000_000, "requests_per_hour": 1_000_000_000, "concurrent_requests": 256}


class Hub:
    """A hub with its own data directory, from `start` until its server is stopped."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "hub",
        root: Path = ROOT,
        under: tuple[str, ...] = (),
        wrapper: tuple[str, ...] = (),
        settings: Mapping[str, str] | None = None,
        patience: float = 1.0,
    ) -> None:
        """`settings` are those of the environment; it may run `under` another program, or inside a `wrapper`."""
        self.name = name
        self.endpoint = Endpoint(free_port())
        self.data = folder / name.replace("@", "-")
        self.admin_token = secrets.token_hex(24)
        self.caller_token = ""
        module = wrapper or ("-m", "dragoman")
        serve = ("serve", "--auth", "token", "--host", "127.0.0.1", "--port", str(self.endpoint.port))
        self.server = Server(
            [*under, str(root / ".venv/bin/python"), *module, *serve, "--data", str(self.data), "--log", "json"],
            core=SERVER_CORE,
            log=folder / f"{self.data.name}.log",
            environment={"DRAGOMAN_ADMIN_TOKEN": self.admin_token, **(settings or {})},
            patience=patience,
        )

    def start(self) -> float:
        """Start it and wait until it is ready; the seconds that took."""
        return self.server.start(self.endpoint, "/readyz")

    def register(self, agent_id: str, card: dict[str, Any]) -> None:
        """Register an agent without limits."""
        asked = {"agent_card": card, "id": agent_id, "rate_limits": UNLIMITED}
        self._admin("/v1/a2a/registry", asked)

    def make_key(self) -> None:
        """Make the caller's key; calls are made with it, not with the administrator's token."""
        self.caller_token = self._admin("/v1/keys", {"name": "bench", "scopes": ["a2a:call"]})["key"]

    def call(self, agent_id: str, *, unique_header: str | None = None) -> Call:
        """A call of an agent in the platform dialect."""
        return platform_call(self.endpoint, agent_id, self.caller_token, unique_header=unique_header)

    def accepted_call(self, agent_id: str) -> Call:
        """A call that is to be carried out later."""
        return accepted_call(self.endpoint, agent_id, self.caller_token)

    def official_call(self, agent_id: str) -> Call:
        """The same by A2A 1.0, at the agent's base on the hub."""
        return a2a_call(self.endpoint, f"/agents/{agent_id}/", token=self.caller_token)

    def serves_bases(self, agent_id: str) -> bool:
        """Whether this checkout has the agent's base at all; an older one may not."""
        there = self.endpoint.ask("POST", f"/agents/{agent_id}/", token=self.caller_token, body={}).status != 404
        if not there:
            print(f"  {self.name} has nothing at /agents/{agent_id}/: A2A 1.0 callers are left out")
        return there

    def left(self) -> int:
        """How many calls it has not carried out yet."""
        return left_hub(self.data / "hub.db")

    def check(self, ledger: Ledger) -> dict[str, Any]:
        """What its database holds, compared with its answers; after `stop`."""
        return check_hub(self.data / "hub.db", ledger)

    def _admin(self, path: str, body: object) -> dict[str, Any]:
        reply = self.endpoint.ask("POST", path, token=self.admin_token, body=body)
        if reply.status not in (200, 201):
            raise Void(f"{self.name} refused POST {path}: {reply.status} {reply.body.decode(errors='replace')[:500]}")
        return reply.json()
