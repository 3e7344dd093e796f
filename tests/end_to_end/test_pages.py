from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.end_to_end.world import join, refused
from tests.support.hub import ADMIN_TOKEN, HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent

NOBODY = {"Authorization": ""}
NOTHING: dict[str, Any] = {}
READY = {"store": "ok", "draining": False, "pressure": 0, "storage": "ok", "integrity": "not checked yet"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/healthz", {"status": "ok"}),
        ("/readyz", {"status": "ready", "checks": READY}),
        ("/health", {"status": "healthy", "agent": "dragoman"}),
    ],
)
def test_the_pages_of_operation_need_no_key(hub: HubProcess, path: str, expected: object) -> None:
    for headers in (NOBODY, {"Authorization": "Bearer wrong"}):
        reply = hub.get(path, headers=headers)
        assert (reply.status, reply.json) == (200, expected)
        assert reply.headers["content-type"] == "application/json"


def test_the_root_says_what_this_is(hub: HubProcess) -> None:
    shown = hub.get("/", headers=NOBODY).json
    assert (shown["name"], shown["status"]) == ("dragoman", "running")
    assert shown["links"]["api"].endswith("/openapi.json")


def test_the_public_keys_show_nothing_private(hub: HubProcess) -> None:
    for key in hub.get("/.well-known/jwks.json", headers=NOBODY).json["keys"]:
        assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("EC", "P-256", "ES256", "sig")
        assert "d" not in key


def test_the_api_is_described_as_it_is(hub: HubProcess, agent: PlatformAgent) -> None:
    described = hub.get("/openapi.json", headers=NOBODY).json
    assert described["openapi"] == "3.1.0"
    answer = join(hub, agent)
    call = hub.call("echo", {"a": 1}, answer["id"]).json
    schemas = described["components"]

    def fits(name: str, value: Any) -> bool:
        schema = {"$ref": f"#/components/schemas/{name}", "components": schemas}
        return jsonschema_rs.validator_for(schema).is_valid(value)

    assert fits("CallAnswer", call)
    assert fits("CallAnswer", hub.call("echo", {}, "agt_nobody").json)
    assert fits("RegistryAnswer", answer)
    assert fits("Discovery", hub.get("/v1/a2a/discover").json)
    assert fits("PlatformCard", hub.get(f"/v1/a2a/agents/{answer['id']}/card").json)
    assert fits("Items", hub.get("/v1/agents").json)
    assert not fits("CallRequest", {"skill": 5})


def test_every_path_that_is_described_is_there(hub: HubProcess) -> None:
    paths: dict[str, dict[str, Any]] = hub.get("/openapi.json", headers=NOBODY).json["paths"]
    for path, methods in paths.items():
        for method in methods:
            place = path.replace("{agent}", "x").replace("{call}", "x").replace("{key}", "x").replace("{trace}", "x")
            if path == "/v1/calls/feed":
                place += "?topics=none"  # it has no end where it is not refused
            reply = hub.request(method.upper(), place, NOTHING if method in ("post", "patch") else None)
            assert reply.status in (200, 400, 404), (method, path)
            if reply.status == 404:
                assert reply.json["error"]["code"] in ("AGENT_NOT_FOUND", "CALL_NOT_FOUND", "NOT_FOUND")
                assert "There is nothing at" not in reply.json["error"]["message"]
                assert "is not offered on" not in reply.json["error"]["message"]


def test_the_settings_in_force_are_shown_without_their_secrets(hub: HubProcess) -> None:
    reply = hub.get("/v1/settings")
    settings = {each["setting"]: each for each in reply.json["items"]}
    assert str(settings["port"]["value"]) == str(hub.port)
    assert settings["port"]["source"] == "flag --port"
    assert settings["limits.depth"] == {"setting": "limits.depth", "value": 64, "source": "default"}
    assert ADMIN_TOKEN.encode() not in reply.body


def test_agents_are_listed_page_by_page(hub: HubProcess, agent: PlatformAgent) -> None:
    owner = hub.new_key("a2a:register")
    mine = {join(hub, agent, token=owner)["id"] for _ in range(7)}
    seen: list[str] = []
    cursor = ""
    while True:
        page = hub.get(f"/v1/agents?mine=true&limit=3{cursor}", token=owner).json
        assert len(page["items"]) <= 3
        seen += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(seen) == sorted(mine)
    refused(hub.get("/v1/agents?cursor=rubbish", token=owner), 400, "VALIDATION_ERROR")


def test_with_auth_none_nobody_needs_a_key(tmp_path: Path, agent: PlatformAgent) -> None:
    with running_hub(tmp_path / "data", auth="none") as hub:
        assert hub.token is None
        name = join(hub, agent)["id"]
        assert hub.call("echo", {"a": 1}, name).json["result"] == {"a": 1}
        assert hub.get("/v1/keys").status == 200
        assert hub.call("echo", {}, name, headers={"Host": "evil.example"}).status == 421
