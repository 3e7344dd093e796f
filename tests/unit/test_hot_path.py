"""What one plain call costs, counted: rows, commits, statements, tasks. Time is not asserted; these counts are."""

import asyncio
import contextlib
import io
import json
import sqlite3
import threading
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, Final

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.connection import Connection, Parameters, Rows, connect
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.config import load
from dragoman.observe.calls import CallLog
from dragoman.ports.clock import SystemClock
from dragoman.server.app import DATABASE, living, load_secrets
from dragoman.server.asgi import Application
from dragoman.server.drain import Drain
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.run import run

CALLS: Final = 5


class Counted:
    """A connection that notes each statement and the thread it ran on."""

    def __init__(self, inner: Connection, noted: list[tuple[str, int]]) -> None:
        self._inner = inner
        self._noted = noted

    @property
    def in_transaction(self) -> bool:
        return self._inner.in_transaction

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        self._noted.append((sql, threading.get_ident()))
        return self._inner.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        self._noted.append((sql, threading.get_ident()))
        return self._inner.executemany(sql, parameters)

    def close(self) -> None:
        self._inner.close()


class Driven:
    """A hub in this process, asked through ASGI, without sockets on the caller's side."""

    def __init__(self, app: Application, noted: list[tuple[str, int]]) -> None:
        self._app = app
        self.noted = noted
        self.sends = 0

    async def ask(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        """One request; its status and body."""
        given = {"host": "localhost", "content-type": "application/json", **headers}
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
        }
        answered: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

        async def send(message: Any) -> None:
            self.sends += 1
            answered.append(message)

        await self._app(scope, receive, send)
        return answered[0]["status"], json.loads(answered[1]["body"])

    async def call(self, given: object, **headers: str) -> str:
        """One plain call of the echo agent; its id."""
        status, answer = await self.ask(
            "/v1/a2a/call", {"target_agent_id": "agt_echo", "skill": "echo", "input": given}, **headers
        )
        assert (status, answer["result"]) == (200, given)
        call_id: str = answer["id"]
        return call_id

    def forget(self) -> None:
        """Begin to count."""
        self.noted.clear()
        self.sends = 0


@contextlib.asynccontextmanager
async def driven(folder: Path, agent: PlatformAgent) -> AsyncGenerator[Driven]:
    """A warm hub: the agent is registered and was called once."""
    settings = load({"data": str(folder), "auth": "none"}, {}, None)
    clock, bus, noted = SystemClock(), LocalBus(), list[tuple[str, int]]()
    store = SqliteStore(
        folder / DATABASE, clock=clock, bus=bus, hold_s=5.0, connect=lambda path: Counted(connect(path), noted)
    )
    log = CallLog(form="json", sink=io.BytesIO())
    secrets = load_secrets(settings)
    async with living(settings, secrets, store=store, bus=bus, clock=clock, drain=Drain(), calls=log) as app:
        hub = Driven(app, noted)
        status, _ = await hub.ask("/v1/a2a/registry", {"agent_card": agent.card()})
        assert status == 201
        await hub.call({"warm": True})
        hub.forget()
        failure: Exception | None = None
        try:
            yield hub
        except Exception as error:  # noqa: BLE001 - a failed assertion must not keep the store from closing
            failure = error
    if failure is not None:
        raise failure


def _rows(folder: Path) -> dict[str, int]:
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as book:
        return {name: book.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("task", "event", "job")}


def test_a_plain_call_is_one_row_and_one_commit_and_no_sql_on_the_loop(tmp_path: Path) -> None:
    async def scenario(agent: PlatformAgent) -> None:
        async with driven(tmp_path, agent) as hub:
            for number in range(CALLS):
                await hub.call({"n": number})
            commits = [sql for sql, _ in hub.noted if sql.startswith("COMMIT")]
            assert len(commits) == CALLS
            assert [sql for sql, _ in hub.noted if sql.lstrip().startswith("SELECT")] == []
            assert threading.get_ident() not in {thread for _, thread in hub.noted}
            assert hub.sends == 2 * CALLS
            assert _rows(tmp_path) == {"task": CALLS + 1, "event": 0, "job": 0}

    with platform_agent() as agent:
        run(scenario(agent))
        assert len(agent.requests) == CALLS + 1


def test_a_plain_call_starts_no_task_of_its_own(tmp_path: Path) -> None:
    async def scenario(agent: PlatformAgent) -> None:
        async with driven(tmp_path, agent) as hub:
            started: list[str] = []

            def factory(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
                started.append(str(work))
                return asyncio.Task(work, loop=loop, **more)

            asyncio.get_running_loop().set_task_factory(factory)
            await hub.call({"n": 1})
            asyncio.get_running_loop().set_task_factory(None)
            assert started == []

    with platform_agent() as agent:
        run(scenario(agent))


def test_a_call_with_a_key_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    rows: list[dict[str, int]] = []

    def look(body: dict[str, Any]) -> dict[str, Any]:
        rows.append(_rows(tmp_path))
        return {"result": body["input"]}

    async def scenario(agent: PlatformAgent) -> None:
        async with driven(tmp_path, agent) as hub:
            agent.respond = look
            await hub.call({"n": 1}, idempotency_key="once")
            commits = [sql for sql, _ in hub.noted if sql.startswith("COMMIT")]
            assert len(commits) == 2
            assert rows == [{"task": 2, "event": 1, "job": 1}]
            assert _rows(tmp_path)["job"] == 0

    with platform_agent() as agent:
        run(scenario(agent))
