"""The audit of a running hub: acts over HTTP, one row each, and a check that finds what was changed in its file."""

import sqlite3
import uuid
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.app import DATABASE
from tests.end_to_end.world import eventually, fresh, join, log_lines, repeats
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def agent() -> Generator[PlatformAgent]:
    with platform_agent() as served:
        served.respond = repeats
        yield served


def acts(hub: HubProcess, token: str = "", **filters: str) -> list[dict[str, Any]]:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    reply = hub.get(f"/v1/audit?{query}", token=token)
    assert reply.status == 200, reply.body
    items: list[dict[str, Any]] = reply.json["items"]
    return items


def test_each_administrative_act_is_one_row_that_says_who_did_what(hub: HubProcess, agent: PlatformAgent) -> None:
    name = fresh()
    join(hub, agent, id=name)
    hub.request("PATCH", f"/v1/agents/{name}", {"status": "paused"}, {"X-Request-ID": "req-of-mine"})
    hub.request("DELETE", f"/v1/agents/{name}")
    made = hub.post("/v1/keys", {"name": "ci", "scopes": ["a2a:call"]}).json
    successor = hub.post(f"/v1/keys/{made['key_id']}/rotate", {}).json
    hub.request("DELETE", f"/v1/keys/{successor['key_id']}")
    found = [(each["action"], each["object"], each["principal"]) for each in acts(hub)]
    for action, subject in (
        ("agent.registered", f"{name}@1.0.0"),
        ("agent.paused", name),
        ("agent.removed", name),
        ("key.created", made["key_id"]),
        ("key.rotated", f"{made['key_id']} by {successor['key_id']}"),
        ("key.revoked", successor["key_id"]),
    ):
        assert found.count((action, subject, "admin")) == 1, (action, subject)
    assert ("settings.loaded", "hub") in {(action, principal) for action, _, principal in found}
    assert acts(hub, object=name, action="agent.paused")[0]["request_id"] == "req-of-mine"


def test_what_is_refused_leaves_no_row_but_a_line_in_the_log(hub: HubProcess) -> None:
    before = acts(hub)
    assert hub.request("DELETE", "/v1/keys/unknown", None, {"X-Request-ID": "req-refused"}).status == 404
    assert acts(hub) == before
    line = eventually(
        lambda: next((each for each in log_lines(hub) if each.get("request_id") == "req-refused"), None), "a line"
    )
    assert (line["message"], line["code"]) == ("refused", "NOT_FOUND")


def test_a_tenants_administrator_sees_its_own_acts_and_may_not_check_the_chain(hub: HubProcess) -> None:
    token = hub.new_key("a2a:admin", tenant="acme")
    hub.post("/v1/keys", {"name": "x", "scopes": ["a2a:call"]}, token=token)
    assert {each["tenant"] for each in acts(hub, token)} == {"acme"}
    assert hub.get("/v1/audit?tenant=default", token=token).status == 403
    assert hub.get("/v1/audit/verify", token=token).status == 403
    assert hub.get("/v1/audit", token=hub.new_key("a2a:call")).status == 403


def test_a_hub_checks_its_own_chain_whole_and_piece_by_piece(hub: HubProcess, agent: PlatformAgent) -> None:
    name = fresh()
    join(hub, agent, id=name)
    for number in range(3):
        assert hub.call("echo", {"n": number}, name).status == 200
    whole = hub.get("/v1/audit/verify").json
    assert whole["ok"] is True
    assert whole["broken"] is None
    assert whole["calls"] >= 3
    assert whole["signed_row"] is not None
    assert whole["vouches_since"].endswith("Z")
    first = hub.get("/v1/audit/verify?part=1&rows=1").json
    assert [row["n"] for row in first["rows"]] == list(range(1, len(first["rows"]) + 1))
    last = hub.get(f"/v1/audit/verify?part=1&cursor={first['next_cursor']}").json
    assert (last["ok"], last["next_cursor"]) == (True, None)
    assert hub.get("/v1/audit/verify?cursor=rubbish").status == 400


def test_heads_are_signed_and_logged(hub: HubProcess) -> None:
    line = eventually(
        lambda: next((each for each in log_lines(hub) if each["message"] == "audit head"), None), "a head"
    )
    assert line["row"] >= 1
    assert line["signature"].count(".") == 2


def test_a_change_in_the_file_of_a_running_hub_is_found(tmp_path: Path, agent: PlatformAgent) -> None:
    with running_hub(tmp_path / "data") as running:
        name = fresh()
        join(running, agent, id=name)
        call = running.call("echo", {"n": 1}, name).json["call_id"]
        with closing(sqlite3.connect(tmp_path / "data" / DATABASE)) as file, file:
            file.execute("UPDATE task SET caller = 'somebody' WHERE id = ?", (call,))
        found = running.get("/v1/audit/verify").json
        assert found["ok"] is False
        assert found["broken"]["call_id"] == call


def test_the_hub_goes_on_where_somebody_wrote_into_its_chain(tmp_path: Path, agent: PlatformAgent) -> None:
    with running_hub(tmp_path / "data") as running:
        name = fresh()
        join(running, agent, id=name)
        with closing(sqlite3.connect(tmp_path / "data" / DATABASE)) as file, file:
            file.execute(
                "INSERT INTO audit (n, at, tenant, principal, action, object, outcome, hash) "
                "SELECT max(n) + 1, 0, '', '', 'x', '', '', x'00' FROM audit"
            )
        assert running.call("echo", {"n": 1}, name).status == 200
        assert running.get("/v1/audit/verify").json["ok"] is False


@pytest.mark.req("E-24")
def test_pings_and_messages_nobody_could_read_leave_a_line_without_what_they_said(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    sender = str(uuid.uuid4())
    join(hub, agent, id=sender)
    ping = {
        "version": "1.0.0",
        "message_id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "type": "ping",
        "from": sender,
        "to": sender,
        "payload": {"nonce": "a-nonce-that-is-nobodys-business"},
    }
    reply = hub.post("/a2a/messages", ping)
    assert reply.status == 200, reply.body
    eventually(lambda: [each for each in log_lines(hub) if each["message"] == "ping"], "a line of the ping")
    refused = hub.post("/a2a/messages", {**ping, "type": "rubbish-of-mine"}, {"X-Request-ID": "req-rubbish"})
    assert refused.status == 400, refused.body
    eventually(lambda: [each for each in log_lines(hub) if each.get("request_id") == "req-rubbish"], "a line of that")
    log = hub.log.read_text()
    assert "a-nonce-that-is-nobodys-business" not in log
    assert "rubbish-of-mine" not in log
