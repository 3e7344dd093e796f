"""How the hub proves itself to agents: each kind of credential at an agent that demands it, and where it never goes."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects import DIALECTS
from tests.end_to_end.world import failing_paths, fresh, refused
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.locked_agent import CLIENT, LockedAgent, TokenEndpoint, locked_agent
from tests.support.matrix import agent_of, caller_of
from tests.support.speaking import Content
from tests.support.sse_client import sse

SECRET = "planted-secret-7f3a"
KINDS: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "bearer", "token": SECRET}, "authorization", f"Bearer {SECRET}"),
    ({"type": "apiKey", "token": SECRET}, "x-api-key", SECRET),
    ({"type": "apiKey", "token": SECRET, "header": "X-Agent-Key", "in": "header"}, "x-agent-key", SECRET),
    (
        {"type": "basic", "username": "u", "password": SECRET},
        "authorization",
        "Basic dTpwbGFudGVkLXNlY3JldC03ZjNh",
    ),
]


def shows(header: str, value: str) -> Any:
    def takes(headers: Mapping[str, str]) -> bool:
        return headers.get(header) == value

    return takes


def call(hub: HubProcess, agent: str, **more: Any) -> Reply:
    return hub.call("talk", {"text": "hi"}, agent, **more)


def enter(hub: HubProcess, agent: str, credentials: dict[str, Any]) -> Reply:
    return hub.request("PATCH", f"/v1/agents/{agent}", {"credentials": credentials})


def credential(hub: HubProcess, agent: str) -> Any:
    return hub.get(f"/v1/agents/{agent}").json["credential"]


@pytest.mark.parametrize(("given", "header", "value"), KINDS)
def test_each_kind_opens_the_agent_that_demands_it(
    hub: HubProcess, given: dict[str, Any], header: str, value: str
) -> None:
    with locked_agent(shows(header, value)) as agent:
        name = hub.register(agent.card(), id=fresh("lock"))["id"]
        assert call(hub, name).status != 200
        assert enter(hub, name, given).status == 200
        assert call(hub, name).json["result"] == {"text": "hi"}
        by_url = hub.register(None, url=agent.url, id=fresh("url"), credentials=given)["id"]
        assert call(hub, by_url).json["result"] == {"text": "hi"}
        origin = agent.url
    assert credential(hub, name) == {"set": True, "type": given["type"], "origin": origin}
    assert SECRET not in hub.get(f"/v1/agents/{name}").body.decode()


def test_an_agent_without_a_credential_gets_none_and_one_of_the_hubs_own_where_its_owner_wants_that(
    hub: HubProcess,
) -> None:
    with locked_agent(lambda _: True) as agent:
        name = hub.register(agent.card(), id=fresh("lock"))["id"]
        assert credential(hub, name) == {"set": False}
        for given, shown in (({"type": "none"}, ""), ({"type": "hub-jwt"}, "Bearer eyJ")):
            assert enter(hub, name, given).status == 200
            assert call(hub, name).status == 200
            headers = agent.requests[-1][0]
            assert headers.get("authorization", "")[: len(shown) or None] == shown
            assert credential(hub, name)["type"] == given["type"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"type": "secret"}, "credentials"),
        ({"type": "bearer"}, "credentials.token"),
        ({"type": "bearer", "token": "two words"}, "credentials"),
        ({"type": "bearer", "token": "a\r\nX-Evil: b"}, "credentials"),
        ({"type": "bearer", "token": "t", "username": "u"}, "credentials.username"),
        ({"type": "apiKey", "token": "t", "in": "query"}, "credentials.in"),
        ({"type": "apiKey", "token": "t", "header": "Content-Length"}, "credentials.header"),
        ({"type": "apiKey", "token": "t", "header": "X-Forwarded-For"}, "credentials.header"),
        ({"type": "basic", "username": "a:b", "password": "p"}, "credentials.username"),
        ({"type": "oauth2", "client_id": "c", "client_secret": "s"}, "credentials.token_url"),
        (
            {"type": "oauth2", "client_id": "c", "client_secret": "s", "token_url": "http://169.254.169.254/t"},
            "credentials.token_url",
        ),
        ({"type": "mtls", "certificate": "x", "key": "y"}, "credentials"),  # not over http
    ],
)
def test_what_cannot_be_sent_is_refused_and_changes_nothing(hub: HubProcess, given: dict[str, Any], path: str) -> None:
    with locked_agent(shows("authorization", f"Bearer {SECRET}")) as agent:
        name = hub.register(agent.card(), id=fresh("lock"), credentials={"type": "bearer", "token": SECRET})["id"]
        reply = enter(hub, name, given)
        assert reply.status == 400, reply.body
        assert failing_paths(reply.json["error"]) == {path}
        assert call(hub, name).status == 200


@pytest.mark.parametrize("given", [each[0] for each in KINDS])
def test_a_credential_goes_nowhere_but_to_the_origin_it_was_stored_for(hub: HubProcess, given: dict[str, Any]) -> None:
    with locked_agent(lambda _: True) as first, locked_agent(lambda _: True) as second:
        name = hub.register(first.card(), id=fresh("lock"), credentials=given)["id"]
        assert call(hub, name).status == 200
        hub.register(second.card(), id=name)
        error = refused(call(hub, name), 503, "AGENT_UNAVAILABLE")
        assert error["details"]["reason"] == "credential_suspended"
        assert "owner has to enter it again" in error["message"]
        assert first.url not in json.dumps(error)
        assert second.requests == []
        shown = credential(hub, name)
        assert (shown["origin"], first.url in shown["suspended"], second.url in shown["suspended"]) == (
            first.url,
            True,
            True,
        )
        # Looking again at the agent does not take it there either.
        hub.post(f"/v1/agents/{name}/probe", {})
        assert all(SECRET not in str(request) for request in second.requests)
        second.requests.clear()
        assert enter(hub, name, given).status == 200
        assert call(hub, name).status == 200
        assert SECRET in str(second.requests) or given["type"] == "basic"
        assert "suspended" not in credential(hub, name)


def test_an_agent_cannot_take_its_owners_credential_along(hub: HubProcess) -> None:
    """Its own key may move it; what the owner stored stays behind."""
    with locked_agent(lambda _: True) as first, locked_agent(lambda _: True) as second:
        answer = hub.register(first.card(), id=fresh("lock"), credentials=KINDS[0][0])
        moved = hub.post("/v1/a2a/registry", {"agent_card": second.card(), "id": answer["id"]}, token=answer["token"])
        assert moved.status == 200, moved.body
        assert call(hub, answer["id"]).status == 503
        assert second.requests == []


def test_a_planted_credential_that_follows_its_agent_is_found(tmp_path: Path) -> None:
    with (
        running_hub(tmp_path / "data", planted="credential_follows_its_agent") as planted,
        pytest.raises(AssertionError),
    ):
        test_a_credential_goes_nowhere_but_to_the_origin_it_was_stored_for(planted, KINDS[0][0])


def test_only_its_owner_learns_that_there_is_one(hub: HubProcess) -> None:
    with locked_agent(lambda _: True) as agent:
        name = hub.register(agent.card(), id=fresh("lock"), credentials=KINDS[0][0])["id"]
    other = hub.new_key("a2a:call", "a2a:register")
    assert "credential" not in hub.get(f"/v1/agents/{name}", token=other).json
    assert hub.request("PATCH", f"/v1/agents/{name}", {"credentials": KINDS[1][0]}, token=other).status == 403
    assert "credential" not in str([item.keys() for item in hub.get("/v1/agents").json["items"]])


@pytest.mark.req("X-14")
@pytest.mark.parametrize("target", list(DIALECTS))
def test_the_callers_credential_reaches_nobody_in_any_pair(hub: HubProcess, target: str) -> None:
    key = hub.new_key("a2a:call", "a2a:receive", "a2a:register")
    with agent_of(DIALECTS[target])() as agent:
        body = {"agent_card": agent.card, "id": fresh("pair"), "dialect": target, "credentials": KINDS[0][0]}
        reply = hub.post("/v1/a2a/registry", body, token=key)
        assert reply.status == 201, reply.body
        if hasattr(agent, "token"):
            setattr(agent, "token", reply.json["token"])  # noqa: B010 - of agents that report to the hub alone
        for caller in DIALECTS.values():
            seen = caller_of(caller)(hub.url, key).call(reply.json["id"], Content(text="hello"))
            assert seen.state == "completed", (caller.slug, seen)
        calls = [request for request in agent.requests if request[0] == "POST"]
    assert len(calls) >= len(DIALECTS)
    assert all(headers.get("authorization") == f"Bearer {SECRET}" for _, _, headers, _ in calls)
    said = str(agent.requests)
    assert key not in said
    assert key.rpartition("_")[2] not in said


# -- OAuth2


@pytest.fixture
def tokens() -> TokenEndpoint:
    return TokenEndpoint(SECRET)


@pytest.fixture
def guarded(tokens: TokenEndpoint) -> Iterator[LockedAgent]:
    with locked_agent(tokens.takes, tokens=tokens) as agent:
        yield agent


def client_of(agent: LockedAgent, **more: Any) -> dict[str, Any]:
    return {
        "type": "oauth2",
        "client_id": CLIENT,
        "client_secret": SECRET,
        "token_url": f"{agent.url}/token",
        **more,
    }


@pytest.mark.parametrize("how", ["body", "basic"])
def test_a_token_is_got_with_the_client_and_kept(
    hub: HubProcess, guarded: LockedAgent, tokens: TokenEndpoint, how: str
) -> None:
    given = client_of(guarded, client_auth=how, scopes=["read", "talk"], audience="agents")
    name = hub.register(guarded.card(), id=fresh("oauth"), credentials=given)["id"]
    for _ in range(3):
        assert call(hub, name).json["result"] == {"text": "hi"}
    ((_, form),) = tokens.asked
    assert (form["grant_type"], form["scope"], form["audience"]) == (["client_credentials"], ["read talk"], ["agents"])
    assert ("client_secret" in form) is (how == "body")
    assert all("client_secret" not in str(request) for request in guarded.requests)
    assert credential(hub, name) == {"set": True, "type": "oauth2", "origin": guarded.url}


def test_an_agent_behind_oauth_is_registered_by_its_url(hub: HubProcess, guarded: LockedAgent) -> None:
    name = hub.register(None, url=guarded.url, id=fresh("oauth"), credentials=client_of(guarded))["id"]
    assert call(hub, name).status == 200


def test_a_refused_token_is_renewed_once(hub: HubProcess, guarded: LockedAgent, tokens: TokenEndpoint) -> None:
    name = hub.register(guarded.card(), id=fresh("oauth"), credentials=client_of(guarded))["id"]
    assert call(hub, name).status == 200
    tokens.valid.clear()
    assert call(hub, name).status == 200
    assert len(tokens.asked) == 2
    shown = [headers["authorization"] for headers, _ in guarded.requests]
    assert len(shown) == 3
    assert shown[0] == shown[1] != shown[2]
    # One that is never taken is renewed once in each call, and the call tells what the agent said.
    guarded.takes = shows("authorization", "nothing")
    error = refused(call(hub, name), 502, "AGENT_ERROR")
    assert error["details"]["reason"] == "agent_refused_hub"
    assert len(tokens.asked) == 3
    assert len(guarded.requests) == 5


def test_a_stream_is_begun_again_with_a_new_token(hub: HubProcess, guarded: LockedAgent, tokens: TokenEndpoint) -> None:
    name = hub.register(guarded.card(), id=fresh("oauth"), credentials=client_of(guarded))["id"]
    for _ in range(2):
        tokens.valid.clear()
        body = {"skill": "talk", "input": {"text": "hi"}, "target_agent_id": name}
        with sse(f"{hub.url}/v1/a2a/call/stream", body, headers={"Authorization": f"Bearer {hub.token}"}) as stream:
            assert "hi" in str([item.data for item in stream])
    assert {asked["method"] for _, asked in guarded.requests} == {"SendStreamingMessage"}
    assert len(tokens.asked) == 2


@pytest.mark.parametrize("lasts_s", [30, 0, None])
def test_a_token_is_kept_no_longer_than_it_lasts(
    hub: HubProcess, guarded: LockedAgent, tokens: TokenEndpoint, lasts_s: int | None
) -> None:
    tokens.lasts_s = lasts_s
    name = hub.register(guarded.card(), id=fresh("oauth"), credentials=client_of(guarded))["id"]
    assert call(hub, name).status == 200
    assert call(hub, name).status == 200
    assert len(tokens.asked) == (2 if lasts_s == 0 else 1)


def test_without_a_token_the_agent_is_not_called(hub: HubProcess, guarded: LockedAgent, tokens: TokenEndpoint) -> None:
    name = hub.register(guarded.card(), id=fresh("oauth"), credentials=client_of(guarded))["id"]
    tokens.broken = True
    error = refused(call(hub, name), 503, "AGENT_UNAVAILABLE")
    assert error["message"].endswith("from its token endpoint (invalid_client).")
    assert SECRET not in json.dumps(error)
    assert guarded.requests == []
    assert credential(hub, name)["problem"] == error["message"]


def test_a_token_endpoint_that_the_card_moves_gets_nothing(
    hub: HubProcess, guarded: LockedAgent, tokens: TokenEndpoint
) -> None:
    """Where the card names the token endpoint, the client is bound to that, too."""
    tokens.lasts_s = 0  # Each call needs one.

    def card(token_url: str) -> dict[str, Any]:
        flow: dict[str, Any] = {"clientCredentials": {"tokenUrl": token_url, "scopes": {}}}
        return guarded.card(securitySchemes={"o": {"oauth2SecurityScheme": {"flows": flow}}})

    given = client_of(guarded)
    del given["token_url"]
    name = hub.register(card(f"{guarded.url}/token"), id=fresh("oauth"), credentials=given)["id"]
    assert call(hub, name).status == 200
    thief = TokenEndpoint(SECRET)
    with locked_agent(lambda _: True, tokens=thief) as elsewhere:
        hub.register(card(f"{elsewhere.url}/token"), id=name)
        refused(call(hub, name), 503, "AGENT_UNAVAILABLE")
        assert elsewhere.url in credential(hub, name)["suspended"]
        assert thief.asked == []
        assert enter(hub, name, given).status == 200
        guarded.takes = thief.takes
        assert call(hub, name).status == 200
    assert len(thief.asked) == 1
    assert len(tokens.asked) == 1
