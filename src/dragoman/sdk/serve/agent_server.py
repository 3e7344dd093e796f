"""The server of one agent: a hub that has only this agent, whose base is the root, connected to it in memory.

    HTTP, every dialect ─▶ hub ─▶ LocalLink ─▶ Connection ─▶ the agent's handlers
                            └── SQLite: an accepted call is carried on after a crash

So whatever the hub guarantees, an agent's own server does. Imports the server: `serve.py` looks first whether it is
installed.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.config import SettingError, Settings, is_loopback, load
from dragoman.dialects.times import wire_time
from dragoman.model.errors import DragomanError
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.client.settings import data_directory
from dragoman.sdk.connect.signals import exit_at_once
from dragoman.sdk.errors import put_into_words
from dragoman.sdk.serve.resident import AgentResident
from dragoman.security.private_files import SecretRefused
from dragoman.server import app
from dragoman.server.holders import holder_of
from dragoman.server.listen import AddressInUse, CannotListen, bind, port_of

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent

AGENTS_FOLDER: Final = "agents"  # of the user's data folder: a folder for each agent


class CannotServe(DragomanError):
    """The agent's server cannot start."""

    code = "CANNOT_SERVE"
    retry = False

    def __init__(self, message: str, *, next: str) -> None:
        super().__init__(message)
        self.next = next
        put_into_words(self, f"{next[0].upper()}{next[1:]}.")


def settings_of(
    agent: "Agent",
    *,
    host: str | None,
    port: int | None,
    data: str | Path | None,
    auth: str | None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings of an agent's server: as given, then the hub's own from the environment. Raises CannotServe."""
    chosen_host = host or environ.get("DRAGOMAN_HOST") or "127.0.0.1"
    folder = Path(data) if data is not None else data_directory(environ) / AGENTS_FOLDER / agent.id
    flags = {
        "host": chosen_host,
        "port": str(_free_port(chosen_host) if port == 0 else port or environ.get("DRAGOMAN_PORT") or 8001),
        "data": str(folder.expanduser().absolute()),
        "auth": auth or environ.get("DRAGOMAN_AUTH") or ("none" if is_loopback(chosen_host) else "token"),
    }
    try:
        return load(flags, environ, None)
    except SettingError as error:
        raise CannotServe(error.message, next=error.next.replace("--auth token", 'auth="token"')) from error


def start(agent: "Agent", settings: Settings, *, register: str | None) -> None:
    """Serve until told to stop. Raises CannotServe."""
    if _loop_runs():
        raise RuntimeError("agent.serve() blocks. Inside a running loop give agent.app to an ASGI server.")
    clock = SystemClock()
    resident = AgentResident(agent, settings, clock, register=register)

    def told(facts: app.Facts) -> None:
        greet(agent, facts, clock)
        resident.listening()

    try:
        app.serve(settings, banner=told, resident=resident)
    except AddressInUse as error:
        other = settings.port + 1 if settings.port < 65535 else settings.port - 1
        message = f"port {settings.port} is in use{holder_of(settings.port)}"
        raise CannotServe(message, next=f"take another with port={other}, or stop it") from error
    except CannotListen as error:
        raise CannotServe(str(error), next="take another host= or port=") from error
    except app.StoreInUse as error:
        holder = "another process" if error.pid is None else f"pid {error.pid}"
        raise CannotServe(
            f"{error.path} is in use by {holder}", next="stop it, or take another folder with data=…"
        ) from error
    except SecretRefused as error:
        raise CannotServe(error.message, next=error.next) from error
    if resident.stuck:
        # Threads of handlers that do not look whether they were cancelled would be waited for.
        exit_at_once(0)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _free_port(host: str) -> int:
    """A port that is free now. Raises CannotServe."""
    try:
        listeners = bind(host, 0)
    except CannotListen as error:
        raise CannotServe(str(error), next="take another host=") from error
    port = port_of(listeners[0])
    for listener in listeners:
        listener.close()
    return port


def greet(agent: "Agent", facts: app.Facts, clock: Clock) -> None:
    """Tell the operator what is served, on stderr."""
    for line in _greeting(agent, facts, terminal=sys.stderr.isatty(), at=wire_time(clock.now())):
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _greeting(agent: "Agent", facts: app.Facts, *, terminal: bool, at: str) -> Iterator[str]:
    """What an operator is told: lines for people on a terminal, one JSON object per fact elsewhere."""
    told = {
        "agent": f'{agent.id} "{agent.name}"',
        "skills": ", ".join(agent.skills) or "none",
        "card": f"{facts.url}/.well-known/agent-card.json",
        "data": str(facts.data),
    }
    if facts.admin_token is not None:
        kept = f"; also in {facts.admin_token_file} (0600)" if facts.admin_token_file is not None else ""
        told["admin token"] = f"{facts.admin_token.reveal()}  shown this once{kept}"
    elif facts.admin_token_file is not None:
        told["admin token"] = f"in {facts.admin_token_file}"
    for label, value in told.items():
        line = {"timestamp": at, "level": "info", "message": label, "value": value}
        yield f"  {label.ljust(11)}  {value}" if terminal else json.dumps(line, ensure_ascii=False)
