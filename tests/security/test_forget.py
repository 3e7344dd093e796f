"""Forgetting over HTTP: whose content may be removed by whom, and that nothing of it is left anywhere in the file."""

import re
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.app import DATABASE
from tests.end_to_end.world import eventually, fresh, holds, join, repeats, tracebacks
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.ports import free_port

SECRET = "what-nobody-shall-ever-read-again"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("forget") / "data") as running:
        yield running
    assert tracebacks(running) == []


@pytest.fixture
def agent(hub: HubProcess) -> Generator[PlatformAgent]:
    with platform_agent() as served:
        served.respond = repeats
        yield served


@pytest.fixture
def name(hub: HubProcess, agent: PlatformAgent) -> str:
    """The agent's id at the hub."""
    known: str = join(hub, agent, id=fresh())["id"]
    return known


def forget(hub: HubProcess, call_id: str, token: str = "") -> Reply:
    return hub.request("DELETE", f"/v1/calls/{call_id}", token=token)


def said(hub: HubProcess, name: str, token: str = "", **more: Any) -> str:
    reply = hub.call("echo", {"said": SECRET}, name, token=token, **more)
    assert reply.status == 200, reply.body
    call_id: str = reply.json["call_id"]
    return call_id


def shown(hub: HubProcess, call_id: str, token: str = "") -> str:
    """All that a caller can see of a call, wherever it looks."""
    paths = (f"/v1/calls/{call_id}", f"/v1/calls/{call_id}/events", f"/v1/a2a/call/{call_id}/status")
    streams = (f"/v1/calls/{call_id}/stream", f"/v1/a2a/call/{call_id}/stream")
    replies = [hub.get(path, token=token) for path in (*paths, *streams)]
    assert {reply.status for reply in replies} == {200}
    return "".join(reply.body.decode() for reply in replies)


def test_a_caller_has_its_own_call_forgotten(hub: HubProcess, name: str) -> None:
    token = hub.new_key("a2a:call")
    call = said(hub, name, token)
    before = hub.get(f"/v1/calls/{call}", token=token).json
    assert SECRET in shown(hub, call, token)
    reply = forget(hub, call, token)
    assert reply.status == 200
    assert (reply.json["forgotten"], reply.json["cancelled"]) == (1, 0)
    assert "ackups" in reply.json["note"]
    assert SECRET not in shown(hub, call, token)
    after = hub.get(f"/v1/calls/{call}", token=token).json
    for kept in (
        "id",
        "status",
        "agent",
        "caller",
        "created_at",
        "ended_at",
        "timing",
        "conversation_id",
        "last_event",
    ):
        assert after[kept] == before[kept], kept
    assert after["forgotten_at"] is not None
    assert after["result"] is None or SECRET not in str(after["result"])
    assert forget(hub, call, token).json["forgotten"] == 1  # Said again, it is done.
    assert hub.get("/v1/audit/verify").json["ok"] is True


def test_a_foreign_call_looks_unknown_and_stays(hub: HubProcess, name: str) -> None:
    mine, theirs = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    call = said(hub, name, mine)
    foreign, unknown = forget(hub, call, theirs), forget(hub, "a2a_call_" + "0" * 32, theirs)
    assert (foreign.status, unknown.status) == (404, 404)
    assert SECRET in shown(hub, call, mine)
    other_tenant = hub.new_key("a2a:admin", "a2a:call", tenant="other")
    assert forget(hub, call, other_tenant).status == 404
    many = hub.request("DELETE", f"/v1/calls?caller={hub.get(f'/v1/calls/{call}').json['caller']}", token=other_tenant)
    assert many.json["forgotten"] == 0
    assert SECRET in shown(hub, call, mine)
    assert hub.request("DELETE", f"/v1/calls/{call}", headers={"Authorization": ""}).status == 401


def test_many_are_forgotten_by_an_administrator_alone(hub: HubProcess, name: str) -> None:
    token = hub.new_key("a2a:call")
    calls = [said(hub, name, token, context={"conversation_id": "conv_many"}) for _ in range(3)]
    assert hub.request("DELETE", "/v1/calls?context=conv_many", token=token).status == 403
    for wrong in ("", "?context=a&caller=b", "?agent=x", "?context=a&limit=0"):
        assert hub.request("DELETE", f"/v1/calls{wrong}").status == 400, wrong
    first = hub.request("DELETE", "/v1/calls?context=conv_many&limit=2").json
    assert (first["forgotten"], first["next_cursor"] is not None) == (2, True)
    rest = hub.request("DELETE", f"/v1/calls?context=conv_many&limit=2&cursor={first['next_cursor']}").json
    assert (rest["forgotten"], rest["next_cursor"]) == (1, None)
    assert [SECRET in shown(hub, call) for call in calls] == [False, False, False]
    acts = hub.get("/v1/audit?action=calls.forgotten").json["items"]
    assert [(each["object"], each["outcome"]) for each in acts[:2]] == [
        ("context conv_many", "1 forgotten"),
        ("context conv_many", "2 forgotten"),
    ]
    caller = hub.get(f"/v1/calls/{calls[0]}").json["caller"]
    said(hub, name, token)
    assert hub.request("DELETE", f"/v1/calls?caller={caller}").json["forgotten"] == 4
    assert hub.get("/v1/audit/verify").json["ok"] is True


def test_an_open_call_is_cancelled_before_it_is_forgotten(hub: HubProcess, agent: PlatformAgent, name: str) -> None:
    agent.respond = holds(agent)
    accepted = hub.post(
        "/v1/a2a/call/async",
        {
            "target_agent_id": name,
            "skill": "echo",
            "input": {"said": SECRET},
            "callback": {"url": f"http://127.0.0.1:{free_port()}/done"},
        },
    )
    call = accepted.json["call_id"]
    eventually(lambda: agent.requests, "the agent was asked")
    reply = forget(hub, call).json
    assert (reply["forgotten"], reply["cancelled"]) == (1, 1)
    agent.release.set()
    after = hub.get(f"/v1/calls/{call}").json
    assert after["status"] == "canceled"
    assert SECRET not in shown(hub, call)
    assert hub.get(f"/v1/deliveries?call={call}").json["items"] == []
    assert hub.get("/v1/audit/verify").json["ok"] is True


def test_nothing_of_it_is_left_in_the_file(tmp_path: Path) -> None:
    with platform_agent() as agent, running_hub(tmp_path / "data") as running:
        agent.respond = repeats
        name = join(running, agent, id=fresh())["id"]
        large = SECRET * 2000
        quick = [said(running, name) for _ in range(20)]
        for _ in range(5):
            body = {"target_agent_id": name, "skill": "echo", "input": {"said": large}}
            quick.append(running.post("/v1/a2a/call/async", body).json["call_id"])
        for call in quick:
            eventually(lambda call=call: running.get(f"/v1/calls/{call}").json["ended_at"], f"{call} has ended")
            assert forget(running, call).status == 200
    raw = b"".join(path.read_bytes() for path in (tmp_path / "data").glob(f"{DATABASE}*"))
    assert raw.count(SECRET.encode()) == 0
    with closing(sqlite3.connect(tmp_path / "data" / DATABASE)) as file:
        assert file.execute("SELECT count(*) FROM task WHERE forgotten IS NOT NULL").fetchone() == (25,)


def test_a_file_inside_a_call_is_gone_with_it(hub: HubProcess, name: str) -> None:
    part = {"kind": "file", "file": {"bytes": "aGVsbG8=", "name": "a.txt", "mimeType": "text/plain"}}
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    call = hub.post(f"/agents/{name}/", sent).json["result"]["id"]
    found = re.search(r"/files/[^\"]+", hub.get(f"/v1/calls/{call}").body.decode())
    assert found is not None
    assert hub.get(found[0]).body == b"hello"
    assert forget(hub, call).status == 200
    assert hub.get(found[0]).status == 404
