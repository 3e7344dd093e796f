import base64
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.end_to_end.world import fresh, join, refused, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

FIELDS = {"id", "name", "skills", "rating", "response_time_p95_ms", "availability"}


def _found(hub: HubProcess, query: str, **how: Any) -> list[str]:
    reply = hub.get(f"/v1/a2a/discover?{query}", **how)
    assert reply.status == 200, reply.body
    return [each["id"] for each in reply.json["agents"]]


@pytest.mark.req("P-06")
def test_agents_are_found_by_skill_and_rating_with_their_figures(hub: HubProcess, agent: PlatformAgent) -> None:
    wanted = fresh("search")
    name = join(hub, agent, skills=[skill(wanted), skill("summarize")])["id"]
    join(hub, agent, skills=[skill("other")])
    page = hub.get(f"/v1/a2a/discover?skill={wanted}&min_rating=4.0").json
    assert page["total"] == 1
    assert page["next_cursor"] is None
    assert "total_exceeded" not in page
    (found,) = page["agents"]
    assert set(found) >= FIELDS
    assert (found["id"], found["name"], found["skills"]) == (name, "Echo", [wanted, "summarize"])
    assert (found["rating"], found["response_time_p95_ms"], found["availability"]) == (4.5, 0, 1.0)
    assert _found(hub, f"skill={wanted}&min_rating=4.6") == []
    assert hub.get("/v1/a2a/discover?skill=nobody-has-this").json == {"agents": [], "total": 0, "next_cursor": None}


@pytest.mark.req("P-06")
def test_the_total_is_counted_up_to_a_thousand_and_says_when_there_are_more(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    wanted = fresh("crowd")
    path = f"/v1/a2a/discover?skill={wanted}&limit=1"

    def register(_: int) -> None:
        join(hub, agent, skills=[skill(wanted)])

    with ThreadPoolExecutor(8) as at_once:
        list(at_once.map(register, range(1000)))
    page = hub.get(path).json
    assert (page["total"], page.get("total_exceeded")) == (1000, None)
    register(0)
    page = hub.get(path).json
    assert (page["total"], page["total_exceeded"]) == (1000, True)


@pytest.mark.req("P-45")
def test_agents_are_found_by_each_of_the_other_filters(hub: HubProcess, agent: PlatformAgent) -> None:
    wanted, tag, word = fresh("skill"), fresh("tag"), fresh("Zebra")
    streaming = {"streaming": True, "a2a": True, "memory": False}
    name = join(hub, agent, name=word, skills=[skill(wanted)], tags=[tag], capabilities=streaming)["id"]
    other = join(hub, agent, skills=[skill(wanted)])["id"]
    mine = f"skill={wanted}"
    assert _found(hub, mine) == [name, other]
    assert _found(hub, f"q={word}") == [name]
    assert _found(hub, f"{mine}&tag={tag}") == [name]
    assert _found(hub, f"{mine}&tag={tag}&tag=another") == []
    assert _found(hub, f"{mine}&capability=streaming") == [name]
    assert _found(hub, f"{mine}&dialect=platform") == [name, other]
    assert _found(hub, f"{mine}&dialect=a2a-1.0") == []
    assert _found(hub, f"{mine}&max_p95_ms=10&min_availability=0.5") == [name, other]
    assert hub.request("PATCH", f"/v1/agents/{other}", {"status": "paused"}).status == 200
    assert _found(hub, mine) == [name]
    assert _found(hub, f"{mine}&status=active") == [name]
    assert _found(hub, f"{mine}&status=paused") == [other]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=ten",
        "limit=%C2%B2",
        "limit=-1",
        "limit=000000000000" + "9" * 4000,
        "min_rating=6",
        "min_rating=nan",
        "min_rating=good",
        "min_availability=2",
        "max_p95_ms=-5",
        "max_p95_ms=1.5",
        "max_p95_ms=000000000000" + "9" * 40,
        "max_p95_ms=000000000000" + "9" * 5000,
        "status=asleep",
        "colour=red",
        "cursor=rubbish",
        "cursor=%00",
        "cursor=" + base64.urlsafe_b64encode(b'{"offset":-1}').decode(),
        "cursor=" + base64.urlsafe_b64encode(b'{"offset":"many"}').decode(),
        "cursor=" + base64.urlsafe_b64encode(b"[]").decode(),
        "cursor=" + base64.urlsafe_b64encode(b'{"offset":1e400}').decode(),
        "cursor=" + base64.urlsafe_b64encode(b'{"offset":%d}' % 10**30).decode(),
        "cursor=" + base64.urlsafe_b64encode(b'{"offset":1,"after":["x",1]}').decode(),
        "cursor=" + base64.urlsafe_b64encode(b'{"offset":1,"after":[%d,"x"]}' % 10**400).decode(),
    ],
)
def test_a_search_that_makes_no_sense_is_400(hub: HubProcess, query: str) -> None:
    error = refused(hub.get(f"/v1/a2a/discover?{query}"), 400, "VALIDATION_ERROR")
    assert query.partition("=")[0] in error["message"]


@pytest.mark.parametrize("name", ["q", "skill", "tag", "capability", "dialect"])
@pytest.mark.parametrize(
    "value",
    ['"', "*", "a*", "AND", "NOT (", "NEAR(a b)", "a:b", "%00", "%ff", "'; --", "\\", "%F0%9F%A6%93", "x" * 4000],
)
def test_a_filter_is_only_words_never_a_query(hub: HubProcess, name: str, value: str) -> None:
    reply = hub.get(f"/v1/a2a/discover?{name}={urllib.parse.quote(value, safe='%')}")
    assert reply.status == 200, reply.body


@pytest.mark.req("P-07")
def test_pages_visit_every_agent_once_while_others_register(hub: HubProcess, agent: PlatformAgent) -> None:
    wanted = fresh("paged")
    ids = {join(hub, agent, skills=[skill(wanted)])["id"] for _ in range(45)}
    first = hub.get(f"/v1/a2a/discover?skill={wanted}").json
    assert (len(first["agents"]), first["total"]) == (20, 45)
    seen = [each["id"] for each in first["agents"]]
    cursor = first["next_cursor"]
    assert base64.urlsafe_b64decode(cursor + "==").startswith(b'{"offset":20')
    while cursor is not None:
        # One before everything seen and one after it: neither moves the others.
        join(hub, agent, skills=[skill(wanted)], id=fresh("agt_aaa"))
        ids.add(join(hub, agent, skills=[skill(wanted)], id=fresh("agt_zzz"))["id"])
        page = hub.get(f"/v1/a2a/discover?skill={wanted}&limit=10&cursor={cursor}").json
        seen += [each["id"] for each in page["agents"]]
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen))
    assert set(seen) >= {name for name in ids if "zzz" not in name}
    assert not [name for name in seen if "aaa" in name]


@pytest.mark.req("P-07")
def test_a_bare_offset_is_taken_as_a_cursor(hub: HubProcess, agent: PlatformAgent) -> None:
    wanted = fresh("offset")
    ids = [join(hub, agent, skills=[skill(wanted)])["id"] for _ in range(25)]
    assert sorted(_found(hub, f"skill={wanted}&cursor=eyJvZmZzZXQiOjIwfQ==")) == sorted(ids)[20:]
    assert sorted(_found(hub, f"skill={wanted}&limit=100")) == sorted(ids)


@pytest.mark.req("X-12")
def test_without_a_token_only_open_agents_are_found_and_called(hub: HubProcess, agent: PlatformAgent) -> None:
    nobody = {"Authorization": ""}
    wanted = fresh("open")
    protected = join(hub, agent, skills=[skill(wanted)])["id"]
    opened = join(hub, agent, skills=[skill(wanted)], open=True)["id"]
    hidden = join(hub, agent, skills=[skill(wanted)], open=True, private=True)["id"]
    assert _found(hub, f"skill={wanted}", headers=nobody) == [opened]
    assert hub.get("/v1/a2a/discover?limit=100", headers=nobody).json["total"] == 1
    assert hub.call(wanted, {"a": 1}, opened, headers=nobody).json["result"] == {"a": 1}
    assert hub.call(wanted, {"a": 2}, headers=nobody).json["result"] == {"a": 2}
    for name in (protected, hidden, "agt_nobody"):
        reply = hub.call(wanted, {}, name, headers=nobody)
        refused(reply, 401, "AUTHORIZATION_ERROR")
        assert reply.headers["www-authenticate"].startswith("Bearer")
    refused(hub.post("/v1/a2a/registry", {"agent_card": agent.card()}, nobody), 401, "AUTHORIZATION_ERROR")
    assert hub.request("PATCH", f"/v1/agents/{opened}", {"open": False}).json["open"] is False
    refused(hub.call(wanted, {}, opened, headers=nobody), 401, "AUTHORIZATION_ERROR")
    refused(hub.get(f"/v1/a2a/discover?skill={wanted}", headers=nobody), 401, "AUTHORIZATION_ERROR")


def test_an_agent_that_requires_scopes_of_its_callers_cannot_be_open(hub: HubProcess, agent: PlatformAgent) -> None:
    card = agent.card(id=fresh(), authentication={"type": "bearer", "scopes_required": ["a2a:call", "news:read"]})
    refused(hub.post("/v1/a2a/registry", {"agent_card": card, "open": True}), 400, "VALIDATION_ERROR")
    hub.register(card)
    reply = hub.request("PATCH", f"/v1/agents/{card['id']}", {"open": True})
    refused(reply, 400, "VALIDATION_ERROR")


def test_anonymous_callers_do_not_share_keys_and_see_a_call_only_by_its_id(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    name = join(hub, agent, open=True)["id"]
    once = {"Authorization": "", "Idempotency-Key": "the-same", "X-Request-ID": "the-same"}
    first, second = (hub.call("echo", {"a": 1}, name, headers=once).json for _ in range(2))
    assert first["id"] != second["id"]
    assert hub.get(f"/v1/a2a/call/{first['id']}/status", headers={"Authorization": ""}).json["result"] == {"a": 1}
    refused(hub.get("/v1/a2a/call/a2a_call_guessed/status", headers={"Authorization": ""}), 401, "AUTHORIZATION_ERROR")
    hub.request("PATCH", f"/v1/agents/{name}", {"open": False})
