from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import failing_paths, fresh, join, refused
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

SHOWN = {"key_id", "name", "principal", "tenant", "agent_id", "scopes", "allow"} | {
    "rate_limits",
    "budget",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
}


def _made(hub: HubProcess, **more: Any) -> dict[str, Any]:
    reply = hub.post("/v1/keys", {"name": "test", "scopes": ["a2a:call"], **more})
    assert reply.status == 201, reply.body
    key: dict[str, Any] = reply.json
    return key


def _listed(hub: HubProcess, key_id: str) -> dict[str, Any]:
    (found,) = [each for each in hub.get("/v1/keys").json["items"] if each["key_id"] == key_id]
    return found


@pytest.mark.req("P-62")
def test_a_key_is_shown_when_it_is_made_and_never_again(hub: HubProcess) -> None:
    made = _made(hub, name="ci", scopes=["a2a:call", "a2a:register"])
    assert set(made) == SHOWN | {"key", "signing_secret"}
    assert made["key"].startswith(f"ap_{made['key_id']}_")
    assert made["signing_secret"].startswith("whsec_")
    shown = _listed(hub, made["key_id"])
    assert set(shown) == SHOWN
    assert (shown["name"], shown["scopes"]) == ("ci", ["a2a:call", "a2a:register"])
    every_page = hub.get("/v1/keys").body + hub.get("/v1/settings").body
    assert made["key"].encode() not in every_page
    assert made["signing_secret"].encode() not in every_page


def test_a_key_works_by_either_header_and_two_keys_at_once_do_not(hub: HubProcess) -> None:
    one, two = _made(hub)["key"], _made(hub)["key"]
    assert hub.get("/v1/a2a/discover", token=one).status == 200
    assert hub.get("/v1/a2a/discover", headers={"Authorization": "", "X-Api-Key": one}).status == 200
    assert hub.get("/v1/a2a/discover", headers={"X-Api-Key": one}, token=one).status == 200
    refused(hub.get("/v1/a2a/discover", headers={"X-Api-Key": two}, token=one), 401, "AUTHORIZATION_ERROR")


@pytest.mark.req("P-62")
def test_a_revoked_key_is_refused_at_once(hub: HubProcess) -> None:
    made = _made(hub)
    assert hub.get("/v1/a2a/discover", token=made["key"]).status == 200
    assert hub.request("DELETE", f"/v1/keys/{made['key_id']}").json["revoked_at"]
    error = refused(hub.get("/v1/a2a/discover", token=made["key"]), 401, "AUTHORIZATION_ERROR")
    assert error["details"]["reason"] == "revoked"
    assert _listed(hub, made["key_id"])["revoked_at"]


@pytest.mark.req("P-62")
def test_a_rotated_key_is_good_until_its_overlap_ends(hub: HubProcess) -> None:
    made = _made(hub, allow=["agt_x:*"])
    rotated = hub.post(f"/v1/keys/{made['key_id']}/rotate", {"overlap_s": 3600})
    assert rotated.status == 201
    assert {name: rotated.json[name] for name in ("scopes", "allow", "principal")} == {
        name: made[name] for name in ("scopes", "allow", "principal")
    }
    for key in (made["key"], rotated.json["key"]):
        assert hub.get("/v1/a2a/discover", token=key).status == 200
    at_once = hub.post(f"/v1/keys/{rotated.json['key_id']}/rotate", {"overlap_s": 0}).json
    refused(hub.get("/v1/a2a/discover", token=rotated.json["key"]), 401, "AUTHORIZATION_ERROR")
    assert hub.get("/v1/a2a/discover", token=at_once["key"]).status == 200


def test_an_expired_key_is_refused(hub: HubProcess) -> None:
    made = _made(hub, expires_at="2020-01-01T00:00:00Z")
    error = refused(hub.get("/v1/a2a/discover", token=made["key"]), 401, "AUTHORIZATION_ERROR")
    assert error["details"]["reason"] == "expired"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"scopes": ["a2a:call"]}, "name"),
        ({"name": "x"}, "scopes"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": ["a2a:everything"]}, "scopes"),
        ({"name": "x", "scopes": ["has space"]}, "scopes"),
        ({"name": "x", "scopes": "a2a:call"}, "scopes"),
        ({"name": "x", "scopes": ["a2a:call"], "expires_at": "soon"}, "expires_at"),
        ({"name": "x", "scopes": ["a2a:call"], "tenant": "No Spaces"}, "tenant"),
        ({"name": "x", "scopes": ["a2a:call"], "colour": "red"}, "colour"),
        ({"name": "x", "scopes": ["a2a:call"], "allow": ["nonsense"]}, "allow"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused_by_field(hub: HubProcess, body: dict[str, Any], path: str) -> None:
    error = refused(hub.post("/v1/keys", body), 400, "VALIDATION_ERROR")
    assert path in error["message"]
    assert failing_paths(error)


def test_an_unknown_key_is_404(hub: HubProcess) -> None:
    refused(hub.request("DELETE", "/v1/keys/nobody"), 404, "NOT_FOUND")
    refused(hub.post("/v1/keys/nobody/rotate", {}), 404, "NOT_FOUND")


@pytest.mark.req("P-62")
def test_neither_keys_nor_secrets_nor_credentials_are_on_disk(hub: HubProcess, agent: PlatformAgent) -> None:
    made = _made(hub)
    answer = join(hub, agent, credentials={"type": "bearer", "token": fresh("planted-credential")})
    hub.call("echo", {}, answer["id"], token=made["key"])
    secrets = [made["key"], made["signing_secret"], answer["token"], answer["signing_secret"], "planted-credential"]
    secrets += [secret.split("_")[-1] for secret in secrets[:4]]
    files = [path for path in Path(hub.data).rglob("*") if path.is_file()]
    assert any(path.name == "hub.db" for path in files)
    for path in [*files, hub.log]:
        content = path.read_bytes()
        assert [secret for secret in secrets if secret.encode() in content] == [], path


def test_a_tenants_agents_keys_and_calls_are_its_own(hub: HubProcess, agent: PlatformAgent) -> None:
    ours = _made(hub, tenant="acme", scopes=["a2a:call", "a2a:register"])["key"]
    admin = _made(hub, tenant="acme", scopes=["a2a:admin"])["key"]
    theirs = _made(hub)["key"]
    answer = join(hub, agent, token=ours)
    call_id = hub.call("echo", {}, answer["id"], token=ours).json["id"]
    refused(hub.call("echo", {}, answer["id"], token=theirs), 404, "AGENT_NOT_FOUND")
    refused(hub.call("echo", {}, answer["uuid"], token=theirs), 404, "AGENT_NOT_FOUND")
    refused(hub.get(f"/v1/a2a/call/{call_id}/status", token=theirs), 404, "CALL_NOT_FOUND")
    assert answer["id"] not in hub.get("/v1/a2a/discover?limit=100", token=theirs).body.decode()
    assert {each["tenant"] for each in hub.get("/v1/keys", token=admin).json["items"]} == {"acme"}
    body = {"name": "x", "scopes": ["a2a:call"], "tenant": "default"}
    refused(hub.post("/v1/keys", body, token=admin), 403, "AUTHORIZATION_ERROR")
    # The same id in another tenant is another agent.
    assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=answer["id"])}).status == 201


def test_guessing_is_slowed_down(tmp_path: Path) -> None:
    from tests.support.hub import running_hub

    with running_hub(tmp_path / "data") as hub:
        good = hub.new_key("a2a:call")
        assert hub.get("/v1/a2a/discover", token=good).status == 200
        statuses = [hub.get("/v1/a2a/discover", token=f"wrong-{n}").status for n in range(25)]
        assert statuses[:20] == [401] * 20
        assert set(statuses[20:]) == {429}
        reply = hub.get("/v1/a2a/discover", token="wrong")
        refused(reply, 429, "RATE_LIMITED")
        assert 0 < int(reply.headers["retry-after"]) <= 60
        # Who proved himself lately is not locked out by his neighbour.
        assert hub.get("/v1/a2a/discover", token=good).status == 200
