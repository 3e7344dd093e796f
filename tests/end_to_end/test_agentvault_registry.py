"""AgentVault's registry API on a real hub: cards submitted, listed, looked up, changed, deactivated and checked."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.end_to_end.agentvault_world import called, error, example, last_words, mount, text
from tests.end_to_end.world import RFC_3339, fresh, join, tracebacks
from tests.support.agents import agentvault
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent
from tests.support.speaking import StubAgent

CARDS = "/api/v1/agent-cards"


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with agentvault.agent(fresh("card")) as stub:
        yield stub


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub with 30 cards: every third in one trusted environment, every fifth in another, every second tagged."""
    with running_hub(tmp_path_factory.mktemp("shelf") / "data") as hub:
        for number in range(30):
            card = _card(f"shelf/card-{number:02}", name=f"Card {number}", description="A card about fish")
            card["tags"] = [
                "numbered",
                *(["even"] if number % 2 == 0 else []),
                *(["tenth"] if number % 10 == 0 else []),
            ]
            if number % 3 == 0:
                card["capabilities"]["teeDetails"] = {"type": "Intel SGX"}
            elif number % 5 == 0:
                card["capabilities"]["teeDetails"] = {"type": "AMD SEV"}
            assert hub.post(f"{CARDS}/", {"card_data": card}).status == 201
        yield hub
    assert tracebacks(hub) == []


def _card(hri: str, **more: Any) -> dict[str, Any]:
    card: dict[str, Any] = example("agent-card-none")
    card |= {"humanReadableId": hri, "url": "http://127.0.0.1:65000/a2a/", **more}
    return card


def _submit(hub: HubProcess, card: dict[str, Any], token: str = "") -> dict[str, Any]:
    reply = hub.post(f"{CARDS}/", {"card_data": card}, token=token)
    assert reply.status == 201, reply.body
    record: dict[str, Any] = reply.json
    return record


def _list(hub: HubProcess, **query: Any) -> dict[str, Any]:
    reply = hub.get(f"{CARDS}?{urlencode(query, doseq=True)}")
    assert reply.status == 200, reply.body
    page: dict[str, Any] = reply.json
    assert set(page) == {"items", "pagination"}
    assert set(page["pagination"]) == {"total_items", "limit", "offset", "total_pages", "current_page"}
    for item in page["items"]:
        assert set(item) == {"id", "name", "description"}
    return page


def _total(hub: HubProcess, **query: Any) -> int:
    page = _list(hub, **query)
    assert len(page["items"]) == page["pagination"]["total_items"]
    return len(page["items"])


def _refused(reply: Reply, status: int) -> str:
    assert reply.status == status, reply.body
    assert set(reply.json) == {"detail"}
    detail: str = reply.json["detail"]
    return detail


@pytest.mark.req("V-32")
@pytest.mark.parametrize("path", [CARDS, f"{CARDS}/"])
def test_cards_are_listed_at_both_paths(shelf: HubProcess, path: str) -> None:
    page = shelf.get(path)
    assert page.status == 200
    assert len(page.json["items"]) == 30
    assert page.json["pagination"] == {
        "total_items": 30,
        "limit": 100,
        "offset": 0,
        "total_pages": 1,
        "current_page": 1,
    }


@pytest.mark.req("V-32")
@pytest.mark.parametrize("word", ["skip", "offset"])
def test_pages_follow_each_other_without_gap_or_repetition(shelf: HubProcess, word: str) -> None:
    seen: list[str] = []
    for offset in range(0, 40, 7):
        page = _list(shelf, limit=7, **{word: offset})
        assert page["pagination"]["offset"] == offset
        assert page["pagination"]["total_items"] == 30
        assert page["pagination"]["total_pages"] == 5
        assert page["pagination"]["current_page"] == offset // 7 + 1
        seen += [item["id"] for item in page["items"]]
    assert len(seen) == len(set(seen)) == 30


@pytest.mark.req("V-32")
def test_every_filter_narrows_the_list(shelf: HubProcess) -> None:
    assert _total(shelf, tags="even") == 15
    assert _total(shelf, tags=["even", "tenth"]) == 3
    assert _total(shelf, tags=["even", "nobody has this"]) == 0
    assert _total(shelf, search="fish") == 30
    assert _total(shelf, search="fish 7") == 1
    assert _total(shelf, has_tee="true") == 14
    assert _total(shelf, has_tee="false") == 16
    assert _total(shelf, tee_type="Intel SGX") == 10
    assert _total(shelf, tee_type="amd sev") == 4
    assert _total(shelf, tee_type="amd sev", tags="even") == 2
    assert _total(shelf, tee_type="amd sev", has_tee="false") == 0


@pytest.mark.req("V-32")
@pytest.mark.parametrize(
    "query", ["limit=0", "limit=251", "limit=x", "skip=-1", "search=" + "x" * 101, "has_tee=maybe"]
)
def test_a_filter_out_of_bounds_is_422(shelf: HubProcess, query: str) -> None:
    assert query.partition("=")[0] in _refused(shelf.get(f"{CARDS}?{query}"), 422)
    assert shelf.get(f"{CARDS}?limit=250&search={'x' * 100}").status == 200


@pytest.mark.req("V-32", "V-35")
def test_a_deactivated_card_is_listed_only_when_asked_for(hub: HubProcess) -> None:
    tag = fresh("tag")
    kept, gone = (_submit(hub, _card(f"tests/{fresh('card')}", tags=[tag])) for _ in range(2))
    reply = hub.request("DELETE", f"{CARDS}/{gone['id']}")
    assert (reply.status, reply.body) == (204, b"")
    assert [item["id"] for item in _list(hub, tags=tag)["items"]] == [kept["id"]]
    assert {item["id"] for item in _list(hub, tags=tag, active_only="false")["items"]} == {kept["id"], gone["id"]}
    record = hub.get(f"{CARDS}/{gone['id']}").json
    assert record["is_active"] is False
    assert hub.request("PUT", f"{CARDS}/{gone['id']}", {"is_active": True}).json["is_active"] is True
    assert _total(hub, tags=tag) == 2


@pytest.mark.req("V-32")
def test_ones_own_cards_are_listed_for_those_who_say_who_they_are(hub: HubProcess, agent: PlatformAgent) -> None:
    join(hub, agent, open=True)  # a stranger sees this one, but has none of his own
    mine, yours = (hub.new_key("a2a:register", "a2a:call") for _ in range(2))
    record = _submit(hub, _card(f"tests/{fresh('card')}"), mine)
    listed = hub.get(f"{CARDS}?owned_only=true", token=mine).json
    assert [item["id"] for item in listed["items"]] == [record["id"]]
    assert hub.get(f"{CARDS}?owned_only=true", token=yours).json["items"] == []
    _refused(hub.get(f"{CARDS}?owned_only=true", {"Authorization": ""}), 401)


@pytest.mark.req("V-32", "X-12")
def test_strangers_see_open_agents_alone(hub: HubProcess, agent: PlatformAgent) -> None:
    join(hub, agent, name="Closed")
    opened = join(hub, agent, name="Opened", open=True)
    reply = hub.get(CARDS, {"Authorization": ""})
    assert reply.status == 200
    assert opened["uuid"] in {item["id"] for item in reply.json["items"]}
    assert "Closed" not in {item["name"] for item in reply.json["items"]}


@pytest.mark.req("V-33", "V-34")
def test_a_card_is_submitted_and_found_by_every_name(hub: HubProcess, stub: StubAgent) -> None:
    record = _submit(hub, stub.card)
    shown = example("registry-record-response")
    assert set(record) == set(shown)
    assert {name: type(value) for name, value in record.items()} == {name: type(value) for name, value in shown.items()}
    assert (record["name"], record["is_active"]) == (stub.card["name"], True)
    assert 0 < record["developer_id"] < 2**31
    assert RFC_3339.fullmatch(record["created_at"])
    name = stub.card["humanReadableId"]
    assert record["card_data"]["humanReadableId"] == name
    assert record["card_data"]["url"].startswith(f"http://localhost:{hub.port}/agents/")
    for path in (f"/{record['id']}", f"/{record['id']}/", f"/id/{name}", f"/by-hri?hri={quote(name, safe='')}"):
        assert hub.get(CARDS + path).json == record
    # What was submitted here can be called, and is known to every other dialect.
    agent = record["card_data"]["url"].rstrip("/").split("/")[-2]
    assert last_words(called(hub, agent, text("hi"))) == "hi"
    assert hub.get(f"/v1/a2a/agents/{agent}/card").json["name"] == stub.card["name"]


@pytest.mark.req("V-33")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": 7}, "name"),
        ({"humanReadableId": "no-slash"}, "humanReadableId"),
        ({"url": "nowhere"}, "url"),
        ({"authSchemes": []}, "authSchemes"),
        ({"capabilities": {}}, "capabilities.a2aVersion"),
    ],
)
def test_a_bad_card_is_422(hub: HubProcess, stub: StubAgent, change: dict[str, Any], field: str) -> None:
    detail = _refused(hub.post(f"{CARDS}/", {"card_data": {**stub.card, **change}}), 422)
    assert detail.startswith(f"card_data.{field}")


@pytest.mark.req("V-33")
def test_a_submission_needs_a_body_and_a_key(hub: HubProcess, stub: StubAgent) -> None:
    _refused(hub.post(CARDS, {}), 422)
    _refused(hub.post(CARDS, b"{"), 422)
    _refused(hub.post(CARDS, {"card_data": stub.card}, {"Authorization": ""}), 401)
    _refused(hub.post(CARDS, {"card_data": stub.card}, token=hub.new_key("a2a:call")), 403)


@pytest.mark.req("V-33")
def test_the_documented_loopback_card_is_taken_and_served_by_name(hub: HubProcess) -> None:
    card = example("agent-card-invalid-loopback-url")
    card["url"] = "http://127.0.0.1:65000/a2a/"
    record = _submit(hub, card)
    assert record["card_data"]["url"].startswith("http://localhost:")


@pytest.mark.req("V-34")
@pytest.mark.parametrize(
    "path", ["/8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02", "/no-uuid", "/id/no/body", "/by-hri?hri=no%2Fbody"]
)
def test_an_unknown_card_is_404(hub: HubProcess, path: str) -> None:
    assert _refused(hub.get(CARDS + path), 404) == example("registry-error-response")["detail"]


@pytest.mark.req("V-34")
def test_an_agent_of_another_dialect_has_a_record_too(hub: HubProcess, agent: PlatformAgent) -> None:
    uuid = join(hub, agent, name="Foreign")["uuid"]
    record = hub.get(f"{CARDS}/{uuid}").json
    assert (record["id"], record["name"]) == (uuid, "Foreign")
    assert record["card_data"]["url"].endswith("/agentvault/")
    by_name = hub.get(f"{CARDS}/id/{record['card_data']['humanReadableId']}")
    assert by_name.json == record


@pytest.mark.req("V-35")
def test_a_card_is_changed_by_its_owner(hub: HubProcess, stub: StubAgent) -> None:
    owner, other = (hub.new_key("a2a:register", "a2a:call") for _ in range(2))
    record = _submit(hub, stub.card, owner)
    path = f"{CARDS}/{record['id']}"
    changed = {**stub.card, "description": "Changed", "agentVersion": "2.0.0"}
    for method, body in (("PUT", {"card_data": changed}), ("DELETE", None)):
        _refused(hub.request(method, path, body, token=other), 403)
        _refused(hub.request(method, path, body, {"Authorization": ""}), 401)
        _refused(hub.request(method, f"{CARDS}/8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02", body, token=owner), 404)
    reply = hub.request("PUT", path, {"card_data": changed}, token=owner)
    assert reply.status == 200
    assert (reply.json["id"], reply.json["description"]) == (record["id"], "Changed")
    assert reply.json["card_data"]["agentVersion"] == "2.0.0"
    assert hub.get(path).json["description"] == "Changed"
    _refused(hub.request("PUT", path, {"card_data": {"name": "x"}}, token=owner), 422)


@pytest.mark.req("V-35")
def test_a_renamed_card_is_still_the_same_agent(hub: HubProcess, stub: StubAgent) -> None:
    record = _submit(hub, stub.card)
    renamed = f"tests/{fresh('renamed')}"
    path = f"{CARDS}/{record['id']}"
    reply = hub.request("PUT", path, {"card_data": {**stub.card, "humanReadableId": renamed}})
    assert (reply.status, reply.json["id"]) == (200, record["id"])
    assert hub.get(f"{CARDS}/id/{renamed}").json["id"] == record["id"]


@pytest.mark.req("V-35")
def test_a_deactivated_agent_is_not_called(hub: HubProcess, stub: StubAgent) -> None:
    record = _submit(hub, stub.card)
    agent = record["card_data"]["url"].rstrip("/").split("/")[-2]
    assert hub.request("DELETE", f"{CARDS}/{record['id']}").status == 204
    assert error(hub, mount(agent), "tasks/send", {"message": text("hi")})["code"] == -32000
    assert hub.request("DELETE", f"{CARDS}/{record['id']}").status == 204


@pytest.mark.req("V-36")
def test_a_card_is_checked_and_not_taken(hub: HubProcess) -> None:
    card = _card(f"tests/{fresh('checked')}")
    reply = hub.post("/api/v1/utils/validate-card", {"card_data": card})
    assert (reply.status, reply.json) == (200, {"is_valid": True, "detail": None, "validated_card_data": card})
    del card["provider"]
    bad = hub.post("/api/v1/utils/validate-card", {"card_data": card}).json
    assert (bad["is_valid"], bad["validated_card_data"]) == (False, None)
    assert bad["detail"] == "card_data.provider: required"
    _refused(hub.post("/api/v1/utils/validate-card", {}), 422)
    assert hub.get(f"{CARDS}/id/{card['humanReadableId']}").status == 404


@pytest.mark.req("X-13")
def test_a_name_that_is_taken_stays_its_owners(hub: HubProcess, stub: StubAgent) -> None:
    _submit(hub, stub.card, hub.new_key("a2a:register"))
    other = hub.new_key("a2a:register")
    _refused(hub.post(f"{CARDS}/", {"card_data": stub.card}, token=other), 403)
    body = {"agent_card": stub.card, "id": fresh()}
    assert hub.post("/v1/a2a/registry", body, token=other).status == 403


def test_everything_outlives_a_restart(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start()
    with contextlib.ExitStack() as stack:
        stack.callback(hub.kill)
        record = _submit(hub, _card("tests/lasting"))
        hub.stop()
        hub.start()
        assert hub.get(f"{CARDS}/id/tests/lasting").json["id"] == record["id"]
