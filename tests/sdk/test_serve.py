"""`agent.serve()`: an agent's own server, as a process of its own."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.errors import MissingExtra
from dragoman.sdk.serve.agent_app import Watched
from dragoman.sdk.serve.agent_server import CannotServe, settings_of
from dragoman.sdk.serve.serve import require_server
from tests.end_to_end.world import eventually, tracebacks
from tests.support.agent_server import AgentServer, running_server
from tests.support.hub import ADMIN_TOKEN, ROOT, HubProcess, running_hub
from tests.support.platform_agent import platform_agent
from tests.support.ports import free_port
from tests.support.served_agent import AGENT_ID, DIARY

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[AgentServer]:
    with running_server(tmp_path_factory.mktemp("served") / "data") as server:
        yield server
    assert tracebacks(server) == []


# -- what one who only looks sees


@pytest.mark.req("D-15")
@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "application/json, text/html;q=0.5"])
def test_the_root_tells_how_the_agent_is(server: AgentServer, accept: str) -> None:
    reply = server.get("/", {"Accept": accept})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json == {
        "message": f"{AGENT_ID} is running",
        "status": "running",
        "protocol": "A2A",
        "agent_card_url": "/.well-known/agent-card",
    }
    assert server.get(reply.json["agent_card_url"]).json["url"] == f"http://localhost:{server.port}/"
    health = server.get("/health", {"Accept": accept})
    assert (health.status, health.json["status"]) == (200, "healthy")


@pytest.mark.req("D-15")
@pytest.mark.parametrize("base", ["/", f"/agents/{AGENT_ID}"])
def test_a_browser_gets_a_page(server: AgentServer, base: str) -> None:
    reply = server.get(base, {"Accept": BROWSER})
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    page = reply.body.decode()
    for shown in (AGENT_ID, "add", "Adds two numbers", f'href="{base.rstrip("/")}/.well-known/agent-card.json"'):
        assert shown in page


def test_every_card_names_the_root(server: AgentServer) -> None:
    asked = f"http://127.0.0.1:{server.port}/"  # Official clients may want the name under which they asked.
    official = server.get("/.well-known/agent-card.json").json
    assert official["url"] == asked
    assert {each["url"] for each in official["supportedInterfaces"]} == {asked}
    assert server.get("/a2a-0.3/.well-known/agent-card.json").json["url"] == f"{asked}a2a-0.3/"
    root = f"http://localhost:{server.port}/"
    assert server.get("/agentvault/agent-card.json").json["url"] == f"{root}agentvault/"
    assert server.get("/agent-card.json").json["endpoint"] == root.rstrip("/")


# -- it is a hub of one agent


def test_a_client_of_hubs_finds_and_calls_the_one_agent(server: AgentServer) -> None:
    found = server.get("/v1/a2a/discover?skill=add").json
    assert [each["id"] for each in found["agents"]] == [AGENT_ID]
    assert server.call("add", {"a": 2, "b": 3}).json["result"] == {"sum": 5}
    message = {"role": "user", "parts": [{"type": "text", "content": "hello"}]}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {"message": message}}
    assert server.post("/a2a", frame).json["result"]["id"]  # nothing names an agent: there is only one


def test_another_agent_is_not_taken_in(server: AgentServer) -> None:
    with platform_agent() as other:
        for card in ({"agent_card": other.card()}, {"agent_card": other.card(id=f"{AGENT_ID}.2")}):
            reply = server.post("/v1/a2a/registry", card)
            assert reply.status == 400
            assert f"This is the server of one agent, {AGENT_ID}" in reply.json["error"]["message"]
    assert server.get("/v1/agents").json["items"][0]["id"] == AGENT_ID


def test_the_one_agent_cannot_be_taken_away(server: AgentServer) -> None:
    reply = server.request("DELETE", f"/v1/agents/{AGENT_ID}")
    assert (reply.status, reply.json["error"]["message"]) == (
        400,
        f"This is the server of {AGENT_ID}: stop it instead.",
    )
    assert server.get("/").status == 200


def test_with_tokens_strangers_see_the_card_and_nothing_else(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", auth="token") as server:
        nobody = {"Authorization": ""}
        assert server.get("/", nobody).status == 200
        assert server.get("/.well-known/agent-card.json", nobody).status == 200
        body = {"skill": "add", "input": {"a": 1}}
        assert server.post("/platform/", body, nobody).status == 401
        assert server.post("/platform/", body).json["result"] == {"sum": 1}
        key = server.new_key("a2a:call")
        assert server.post("/platform/", body, token=key).json["result"] == {"sum": 1}
        assert ADMIN_TOKEN not in server.log.read_text()


def test_settings_come_from_arguments_and_then_from_the_environment(tmp_path: Path) -> None:
    agent = Agent("Somebody")
    environ = {"HOME": str(tmp_path), "DRAGOMAN_LIMITS_DEPTH": "33", "DRAGOMAN_PORT": "8700"}
    plain = settings_of(agent, host="127.0.0.1", port=8001, data=None, auth=None, environ=environ)
    assert (plain.port, plain.auth, plain.public_url) == (8001, "none", "http://localhost:8001")
    assert plain.data == tmp_path / ".local/share/dragoman/agents/agt_somebody"
    assert plain.limits.depth == 33
    public = settings_of(agent, host="0.0.0.0", port=0, data=tmp_path, auth=None, environ=environ)
    assert (public.auth, public.data) == ("token", tmp_path)
    assert public.port not in (0, 8001, 8700)
    with pytest.raises(CannotServe, match="auth = none needs a loopback host"):
        settings_of(agent, host="0.0.0.0", port=1, data=None, auth="none", environ=environ)


def test_without_tokens_an_application_serves_this_machine_only() -> None:
    told: list[tuple[str, str]] = []

    async def agent(scope: Any, receive: Any, send: Any) -> None:
        told.append(("agent", scope["client"][0]))

    async def scenario() -> None:
        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            told.append((message["type"], str(message.get("status", message.get("code", "")))))

        app = Watched(agent, "http://localhost:8001", open_to_all=True)
        for kind, client in (("http", "127.0.0.1"), ("http", "192.0.2.7"), ("websocket", "192.0.2.7"), ("http", "::1")):
            await app({"type": kind, "client": (client, 1), "server": ("127.0.0.1", 8001)}, receive, send)

    asyncio.run(scenario())
    assert told == [
        ("agent", "127.0.0.1"),
        ("http.response.start", "403"),
        ("http.response.body", ""),
        ("websocket.close", "1008"),
        ("agent", "::1"),
    ]


def test_inside_a_loop_it_says_what_to_use_instead(tmp_path: Path) -> None:
    async def scenario() -> None:
        Agent("Somebody").serve(port=0, data=tmp_path / "data")

    with pytest.raises(RuntimeError, match=r"agent\.serve\(\) blocks"):
        asyncio.run(scenario())


# -- the process


def _program(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.served_agent", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


def test_a_port_in_use_is_named_with_who_has_it_and_the_next_step(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _program(str(port), str(tmp_path / "data"))
    assert done.returncode != 0
    said = f"port {port} is in use by pid {os.getpid()}"
    assert said in done.stderr
    assert f"Take another with port={port + 1}, or stop it." in done.stderr


def test_the_public_is_not_served_without_tokens(tmp_path: Path) -> None:
    made = "from tests.support.served_agent import make_agent; "
    code = f"{made} make_agent().serve('0.0.0.0', {free_port()}, {str(tmp_path / 'data')!r}, auth='none')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert "auth = none needs a loopback host, got 0.0.0.0" in done.stderr
    assert 'Auth="token".' in done.stderr


def test_it_says_where_it_listens_and_what_it_serves(server: AgentServer) -> None:
    said = server.log.read_text()
    assert f"dragoman is listening on http://127.0.0.1:{server.port}\n" in said
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    facts = {line["message"]: line["value"] for line in lines if "value" in line}
    assert facts["agent"] == f'{AGENT_ID} "{AGENT_ID}"'
    assert facts["skills"] == "chat, add, patient"


def test_without_the_server_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(MissingExtra, match=r'^agent.serve\(\) needs the server: pip install "dragoman\[hub\]"$'):
        require_server("agent.serve()")


class Patient:
    """A server whose calls begin, are noted, and end when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.diary = folder / "diary"
        self.diary.mkdir()
        self.server = AgentServer(folder / "data", auth="none")

    def start(self) -> None:
        self.server.start({DIARY: str(self.diary)})

    def begun(self, name: str) -> list[int]:
        """The attempts that have begun of a call."""
        book = self.diary / "begun"
        lines = book.read_text().splitlines() if book.exists() else []
        return [int(line.split()[2]) for line in lines if line.split()[0] == name]

    def submit(self, name: str) -> str:
        """An accepted call; its id, once it has begun."""
        body = {"target_agent_id": AGENT_ID, "skill": "patient", "input": {"name": name}}
        reply = self.server.post("/v1/a2a/call/async", body)
        assert reply.status == 202, reply.body
        eventually(lambda: self.begun(name), f"{name} begins")
        call_id: str = reply.json["call_id"]
        return call_id

    def outcome(self, call_id: str) -> Any:
        """How the call ended."""

        def ended() -> Any:
            status = self.server.get(f"/v1/a2a/call/{call_id}/status").json
            return status if status["status"] in ("completed", "failed") else None

        return eventually(ended, f"{call_id} ends")


@pytest.fixture
def patient(tmp_path: Path) -> Generator[Patient]:
    patient = Patient(tmp_path)
    patient.start()
    yield patient
    patient.server.kill()


@pytest.mark.req("X-22")
def test_an_accepted_call_is_carried_on_after_a_kill(patient: Patient) -> None:
    call_id = patient.submit("work")
    patient.server.kill()
    patient.start()
    eventually(lambda: len(patient.begun("work")) == 2, "it begins again")
    (patient.diary / "work").touch()
    outcome = patient.outcome(call_id)
    assert (outcome["status"], outcome["result"]) == ("completed", {"attempt": 2})
    assert patient.begun("work") == [1, 2]
    assert tracebacks(patient.server) == []


def test_told_to_stop_it_finishes_what_runs(patient: Patient) -> None:
    call_id = patient.submit("work")
    os.kill(patient.server.pid, signal.SIGTERM)
    eventually(lambda: _refuses(patient.server), "it takes no new calls")
    (patient.diary / "work").touch()
    assert patient.server.ended() == 0
    patient.start()
    assert patient.outcome(call_id)["result"] == {"attempt": 1}
    assert patient.begun("work") == [1]


def _refuses(server: HubProcess) -> bool:
    try:
        return server.call("add", {"a": 1}).status == 503
    except (OSError, http.client.HTTPException):
        return False


# -- known to a hub


@pytest.mark.parametrize("auth", ["none", "token"])
def test_it_registers_itself_at_a_hub_which_may_call_it(tmp_path: Path, auth: str) -> None:
    with running_hub(tmp_path / "hub") as hub:
        server = AgentServer(tmp_path / "data", auth=auth)
        server.register_at = hub.url
        server.start({"DRAGOMAN_TOKEN": ADMIN_TOKEN})
        try:
            eventually(lambda: hub.get(f"/v1/agents/{AGENT_ID}").status == 200, "the hub knows it")
            answer = hub.call("add", {"a": 2, "b": 2}, AGENT_ID)
            assert answer.json["result"] == {"sum": 4}, answer.body
            kept = server.data / "agent-token"
            eventually(kept.exists, "the agent's token is kept")
            assert kept.stat().st_mode & 0o777 == 0o600
            if auth == "token":
                assert server.call("add", {"a": 1}, headers={"Authorization": "Bearer a.b.c"}).status == 401
        finally:
            server.stop()
