"""A real hub in a process of its own, on a free port and a folder of its own, and a small client to talk to it."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.support.ports import free_port

ROOT: Final = Path(__file__).parents[2]
ADMIN_TOKEN: Final = "test-admin-9f8e7d6c5b4a39281706f5e4d3c2b1a0"
START_S: Final = 20.0
# Without ballast: hundreds of hubs leave their folders behind, and that would be 64 MiB each.
SURROUNDINGS: Final = {
    "DRAGOMAN_ADMIN_TOKEN": ADMIN_TOKEN,
    "DRAGOMAN_SQLITE_BALLAST_MIB": "0",
    "DRAGOMAN_CALLS_RETRIES": "0",  # Whoever tests what fails does not wait for it to fail four times.
    "DRAGOMAN_CALLS_BREAKERS": "false",  # Nor has its agent left alone when five such tests follow each other.
    "DRAGOMAN_PRESSURE_LAG_MS": "60000",  # Many share the machine: that one is late says nothing of the hub.
    "DRAGOMAN_PRESSURE_FULL_LAG_MS": "60000",
}


class Reply:
    """What the hub answered."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class HubProcess:
    """One hub from `start` to `stop`; its data outlives it, so that it can be started again."""

    def __init__(self, data: Path, *, auth: str = "token", flags: tuple[str, ...] = (), planted: str = "") -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data = data
        self.token: str | None = ADMIN_TOKEN if auth == "token" else None
        self.auth = auth
        self._flags = flags
        self._planted = planted
        self._process: subprocess.Popen[bytes] | None = None
        self.log = data.parent / f"{data.name}.log"
        self.died_by = 0  # the signal that ended it before it was ready

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "the hub was not started"
        return self._process.pid

    def command(self) -> list[str]:
        """How the process is started."""
        program = ["-m", "tests.support.planted", self._planted, "--"] if self._planted else ["-m", "dragoman"]
        command = [sys.executable, *program, "serve", "--port", str(self.port), "--data", str(self.data)]
        return [*command, "--auth", self.auth, "--log", "json", *self._flags]

    def start(self, environ: Mapping[str, str] | None = None) -> Self:
        """Start it and wait until it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **SURROUNDINGS, **(environ or {})},
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get("/readyz").status == 200:
                    return self
            time.sleep(0.01)  # the only way to wait for another process to listen
        said = self.log.read_text(errors="replace")[-4000:]
        self.died_by = -(self._process.poll() or 0)
        self.kill()
        raise AssertionError(f"the hub did not get ready; it said:\n{said}")

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
            raise

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(10)

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, token: str = ""
    ) -> Reply:
        """One request on a connection of its own; `body` is JSON unless it is bytes."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        credential = token or self.token
        if credential:
            sent["Authorization"] = f"Bearer {credential}"
        sent |= headers or {}
        sent = {name: value for name, value in sent.items() if value}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, body=data, headers=sent)
            answer = connection.getresponse()
            lowered = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, lowered, answer.read())
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None, token: str = "") -> Reply:
        """GET."""
        return self.request("GET", path, None, headers, token)

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None, token: str = "") -> Reply:
        """POST."""
        return self.request("POST", path, body, headers, token)

    def call(self, skill: str, input: object, agent: str | None = None, **more: Any) -> Reply:
        """A platform call; `headers` and `token` are the request's, the rest goes into the body."""
        headers, token = more.pop("headers", None), more.pop("token", "")
        body = {"skill": skill, "input": input, **({"target_agent_id": agent} if agent else {}), **more}
        return self.post("/v1/a2a/call", body, headers, token)

    def register(self, card: object, **more: Any) -> Any:
        """Register an agent card (or `url=…`), and what the hub answered."""
        body = {"agent_card": card, **more} if card is not None else more
        reply = self.post("/v1/a2a/registry", body)
        assert reply.status in (200, 201), reply.body
        return reply.json

    def new_key(self, *scopes: str, **more: Any) -> str:
        """A fresh key."""
        reply = self.post("/v1/keys", {"name": "test", "scopes": list(scopes) or ["a2a:call"], **more})
        assert reply.status == 201, reply.body
        key: str = reply.json["key"]
        return key


@contextlib.contextmanager
def running_hub(data: Path, *, environ: Mapping[str, str] | None = None, **how: Any) -> Generator[HubProcess]:
    """A hub that runs within the block."""
    hub = HubProcess(data, **how).start(environ)
    try:
        yield hub
    finally:
        hub.stop()
