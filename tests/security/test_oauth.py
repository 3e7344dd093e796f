"""OAuth 2 at a real hub: tokens for keys, what they open over every transport, and what clients are told before."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from websockets.exceptions import InvalidStatus

from tests.end_to_end.world import eventually, fresh, join, refused, repeats, tracebacks
from tests.support.envelope_socket import joined, peer
from tests.support.hub import HubProcess, running_hub
from tests.support.oauth import ask, client_of, grant, token_for
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.raw_connected import connect
from tests.support.sse_client import sse

NOBODY: Final = {"Authorization": ""}
EVERY_SCOPE: Final = ("a2a:call", "a2a:receive", "a2a:register", "a2a:admin")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("oauth") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture(scope="module")
def asked_wrongly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Another hub: who shows too much that is wrong is left waiting."""
    with running_hub(tmp_path_factory.mktemp("wrongly") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        agent.respond = repeats
        yield agent


def claims_of(token: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return said


# -- the endpoint


@pytest.mark.req("V-13")
def test_a_key_gets_a_token_by_the_form_or_by_basic(hub: HubProcess) -> None:
    key = hub.new_key("a2a:call", "a2a:register", "a2a:admin")
    by_form = ask(hub, grant(key))
    by_basic = ask(hub, {"grant_type": "client_credentials"}, basic=client_of(key))
    for reply in (by_form, by_basic):
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
        said = reply.json
        assert set(said) == {"access_token", "token_type", "expires_in", "scope"}
        assert (said["token_type"], said["expires_in"], said["scope"]) == ("Bearer", 900, "a2a:call a2a:register")
        keys = KeySet.import_key_set(hub.get("/.well-known/jwks.json", NOBODY).json)
        token = jwt.decode(said["access_token"], keys, algorithms=["ES256"])
        assert token.header["typ"] == "at+jwt"
        claims = token.claims
        assert claims["iss"] == claims["aud"] == f"http://localhost:{hub.port}"
        assert (claims["sub"], claims["client_id"]) == (f"key_{client_of(key)[0]}", client_of(key)[0])
        assert (claims["tid"], claims["exp"] - claims["iat"]) == ("default", 900)
    assert claims_of(by_form.json["access_token"])["jti"] != claims_of(by_basic.json["access_token"])["jti"]


@pytest.mark.req("V-13", "P-28")
def test_a_token_has_the_scopes_it_was_asked_for_and_never_more_than_its_key(hub: HubProcess) -> None:
    key = hub.new_key("a2a:call", "a2a:admin", "news:read")
    narrow = ask(hub, grant(key, scope="a2a:call")).json
    assert narrow["scope"] == "a2a:call"
    assert hub.get("/v1/keys", token=narrow["access_token"]).status == 403
    plain = ask(hub, grant(key)).json
    assert plain["scope"] == "a2a:call news:read"  # an administrator's rights are had by asking alone
    assert hub.get("/v1/keys", token=plain["access_token"]).status == 403
    asked = token_for(hub, key, scope="a2a:admin")
    assert hub.get("/v1/keys", token=asked).status == 200
    for beyond in ("a2a:register", "a2a:call a2a:register", "unknown", "A2A:CALL"):
        reply = ask(hub, grant(key, scope=beyond))
        assert (reply.status, reply.json["error"]) == (400, "invalid_scope")
    alone = ask(hub, grant(hub.new_key("a2a:admin")))
    assert (alone.status, alone.json["error"]) == (400, "invalid_scope")


def test_a_token_is_for_this_hub_alone(hub: HubProcess) -> None:
    key, own = hub.new_key("a2a:call"), f"http://localhost:{hub.port}"
    for resource in (own, f"{own}/", f"{own}/agents/x/", [own, f"{own}/v1/a2a/call"]):
        assert ask(hub, grant(key, resource=resource)).status == 200
    for resource in ("https://else.example", f"{own}.else.example", f"{own}@else.example", f"{own}/#x", [own, "x"]):
        reply = ask(hub, grant(key, resource=resource))
        assert (reply.status, reply.json["error"]) == (400, "invalid_target")


@pytest.mark.req("V-13")
def test_wrong_requests_are_refused_in_the_words_of_the_standard(tmp_path: Path) -> None:
    with running_hub(tmp_path / "data") as hub:
        _refuses_wrong_requests(hub)


def _refuses_wrong_requests(hub: HubProcess) -> None:
    key, other = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    client_id, secret = client_of(key)
    once = {"grant_type": "client_credentials"}
    wrong: list[tuple[int, str, Any]] = [
        (400, "invalid_request", {"client_id": client_id, "client_secret": secret}),
        (400, "invalid_request", {}),
        (400, "invalid_request", b"\xff=\xff"),
        (400, "invalid_request", b"&".join(b"a%d=1" % number for number in range(100))),
        (400, "invalid_request", b"x=" + b"y" * 20_000),
        (400, "invalid_request", {**grant(key), "scope": ["a2a:call", "a2a:call"]}),
        (400, "invalid_request", {**grant(key), "client_secret": [secret, secret]}),
        (400, "unsupported_grant_type", {**grant(key), "grant_type": "password"}),
        (401, "invalid_client", once),
        (401, "invalid_client", {**once, "client_id": client_id}),
        (401, "invalid_client", {**once, "client_secret": secret}),
        (401, "invalid_client", {**grant(key), "client_secret": other}),
        (401, "invalid_client", {**grant(key), "client_id": client_of(other)[0]}),
        (401, "invalid_client", {**grant(key), "client_secret": secret[:-1]}),
        (401, "invalid_client", {**grant(key), "client_secret": "' OR '1'='1"}),
        (401, "invalid_client", {**grant(key), "client_secret": "é"}),
    ]
    for status, error, fields in wrong:
        reply = ask(hub, fields)
        assert (reply.status, reply.json["error"]) == (status, error), fields
        assert reply.headers["cache-control"] == "no-store"
        assert secret not in reply.body.decode()
        assert ("www-authenticate" in reply.headers) == (status == 401)
    both = ask(hub, grant(key), basic=client_of(key))
    assert (both.status, both.json["error"]) == (400, "invalid_request")
    wrong_basic = ask(hub, once, basic=(client_id, other))
    assert (wrong_basic.status, wrong_basic.json["error"]) == (401, "invalid_client")
    assert wrong_basic.headers["www-authenticate"].startswith("Basic ")
    as_json = hub.post("/oauth/token", grant(key), NOBODY)
    assert (as_json.status, as_json.json["error"]) == (400, "invalid_request")
    assert hub.get("/oauth/token", NOBODY).status == 404
    # Only the header and the form are looked at.
    in_query = hub.post(
        f"/oauth/token?client_id={client_id}&client_secret={secret}&grant_type=client_credentials",
        b"",
        {**NOBODY, "Content-Type": "application/x-www-form-urlencoded"},
    )
    assert in_query.json["error"] == "invalid_request"


def test_who_guesses_is_left_waiting(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_hub(tmp_path_factory.mktemp("guessing") / "data") as hub:
        key = hub.new_key("a2a:call")
        other = hub.new_key("a2a:call")
        assert [ask(hub, {**grant(key), "client_secret": other}).status for _ in range(10)] == [401] * 10
        once, basic = {"grant_type": "client_credentials"}, (client_of(key)[0], other)
        assert [ask(hub, once, basic=basic).status for _ in range(10)] == [401] * 10
        limited = ask(hub, grant(key))
        assert (limited.status, limited.json["error"]) == (429, "temporarily_unavailable")
        assert int(limited.headers["retry-after"]) >= 1


def test_a_token_ends_with_its_key_however_it_ends(hub: HubProcess) -> None:
    for end in ("revoke", "rotate"):
        key = hub.new_key("a2a:call")
        token = token_for(hub, key)
        assert hub.get("/v1/agents", token=token).status == 200
        if end == "revoke":
            hub.request("DELETE", f"/v1/keys/{client_of(key)[0]}")
        else:
            hub.post(f"/v1/keys/{client_of(key)[0]}/rotate", {"overlap_s": 0})
        assert eventually(lambda token=token: hub.get("/v1/agents", token=token).status == 401, "it is refused")
        assert ask(hub, grant(key)).json["error"] == "invalid_client"
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 120))
    short = ask(hub, grant(hub.new_key("a2a:call", expires_at=soon))).json
    assert 100 <= short["expires_in"] <= 120


@pytest.mark.req("P-28")
def test_a_token_is_its_key_to_others_with_its_limits(hub: HubProcess, agent: PlatformAgent) -> None:
    target, other = (join(hub, agent, id=fresh("agt_limited"))["id"] for _ in range(2))
    key = hub.new_key("a2a:call", allow=[f"{target}:*"])
    token = token_for(hub, key)
    called = hub.call("echo", {"n": 1}, target, token=token)
    assert called.status == 200
    assert hub.call("echo", {"n": 1}, other, token=token).status == 403
    # The same principal: its calls are seen by key and by token.
    assert hub.get(f"/v1/a2a/call/{called.json['id']}/status", token=key).status == 200
    assert hub.get(f"/v1/a2a/call/{called.json['id']}/status", token=hub.new_key("a2a:call")).status == 404
    assert hub.get("/v1/agents", {"X-Api-Key": token, **NOBODY}).status == 401  # a token is no key
    strangers = hub.get("/v1/agents", {"X-Api-Key": hub.new_key("a2a:call"), "Authorization": f"Bearer {token}"})
    assert strangers.status == 401


# -- every transport


@pytest.mark.req("E-28")
def test_a_token_counts_over_http_streams_and_sockets_and_dies_there_too(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent, id=fresh("agt_over"))["id"]
    name, key = joined(hub)
    token = token_for(hub, key)
    bearer = {"Authorization": f"Bearer {token}"}
    body = {"skill": "echo", "input": {"n": 1}, "target_agent_id": target}
    assert hub.post("/v1/a2a/call", body, token=token).status == 200
    with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=bearer) as stream:
        assert stream.status == 200
    with peer(hub, name, token=token) as worker:
        # The sender is who the token says, and nobody else.
        assert worker.ask(worker.assignment(target, {"n": 2}))["status"] == "success"
        refusal = worker.ask({**worker.assignment(target, {"n": 3}), "from": target})
        assert (refusal["status"], refusal["payload"]["error_code"]) == ("error", "CAPABILITY_MISMATCH")
    hub.request("DELETE", f"/v1/keys/{client_of(key)[0]}")
    assert eventually(lambda: hub.post("/v1/a2a/call", body, token=token).status == 401, "it is refused")
    with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=bearer) as stream:
        assert stream.status == 401
    with pytest.raises(InvalidStatus) as refused_socket, peer(hub, name, token=token):
        pass
    assert refused_socket.value.response.status_code == 401
    assert "resource_metadata=" in refused_socket.value.response.headers["WWW-Authenticate"]


def test_an_agent_connects_with_a_token_and_calls_with_the_one_it_gets(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent, id=fresh("agt_reached"))["id"]
    key = hub.new_key("a2a:receive", "a2a:register", "a2a:call", allow=[f"{target}:*"])
    session = connect(hub, fresh("agt_tok"), token_for(hub, key))
    own: str = session.answer["token"]
    assert (claims_of(own)["client_id"], claims_of(own)["agent_id"]) == (client_of(key)[0], session.answer["agent_id"])
    assert hub.call("echo", {}, target, token=own).status == 200
    assert hub.call("echo", {}, "agt_other", token=own).status in (403, 404)
    assert hub.get("/v1/keys", token=own).status == 403
    hub.request("DELETE", f"/v1/keys/{client_of(key)[0]}")
    assert eventually(lambda: hub.call("echo", {}, target, token=own).status == 401, "it is refused")


def test_the_hubs_word_to_an_agent_does_not_open_the_hub(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent, id=fresh("agt_word"))["id"]
    assert hub.call("echo", {}, target).status == 200
    shown = agent.requests[-1][1]["authorization"].removeprefix("Bearer ")
    assert claims_of(shown)["aud"] == target
    assert hub.get("/v1/agents", token=shown).status == 401


# -- what clients are told


def test_the_documents_lead_from_a_refusal_to_a_token(hub: HubProcess) -> None:
    own = f"http://localhost:{hub.port}"
    refusal = hub.get("/v1/agents", NOBODY)
    challenge = refusal.headers["www-authenticate"]
    assert challenge == f'Bearer resource_metadata="{own}/.well-known/oauth-protected-resource"'
    resource = hub.get(challenge.split('"')[1].removeprefix(own), NOBODY).json
    assert (resource["resource"], resource["bearer_methods_supported"]) == (own, ["header"])
    assert resource["scopes_supported"] == list(EVERY_SCOPE)
    (issuer,) = resource["authorization_servers"]
    server = hub.get("/.well-known/oauth-authorization-server", NOBODY).json
    assert (server["issuer"], server["token_endpoint"]) == (issuer, f"{own}/oauth/token")
    assert server["jwks_uri"] == f"{own}/.well-known/jwks.json"
    assert server["grant_types_supported"] == ["client_credentials"]
    assert server["token_endpoint_auth_methods_supported"] == ["client_secret_basic", "client_secret_post"]
    assert server["scopes_supported"] == list(EVERY_SCOPE)
    assert server["response_types_supported"] == []


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}


def _message(kind: str) -> dict[str, Any]:
    part = {"text": "x"} if kind == "1.0" else {"kind": "text", "text": "x"}
    role = "ROLE_USER" if kind == "1.0" else "user"
    return {"message": {"messageId": "m", "role": role, "parts": [part]}}


def calls(agent: str) -> dict[str, tuple[str, dict[str, Any], dict[str, str]]]:
    """One call in each dialect: path, body, headers."""
    vault = {"message": {"role": "user", "parts": [{"type": "text", "content": "x"}]}}
    work: dict[str, Any] = {"taskId": "t", "action": "echo", "sender": "me", "input": {}}
    envelope: dict[str, Any] = {
        "version": "1.0.0",
        "message_id": "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02",
        "timestamp": "2026-01-12T10:00:00Z",
        "from": "me",
        "to": agent,
        "type": "task_assignment",
        "payload": {"task_id": "t", "task_type": "echo", "title": "x", "description": "x", "payload": {}},
        "signature": None,
    }
    version = {"A2A-Version": "1.0"}
    return {
        "platform": ("/v1/a2a/call", {"skill": "echo", "input": {}, "target_agent_id": agent}, {}),
        "platform stream": ("/v1/a2a/call/stream", {"skill": "echo", "input": {}, "target_agent_id": agent}, {}),
        "envelope": ("/a2a/messages", envelope, {}),
        "dotted": (f"/agents/{agent}/dotted", rpc("message.send", _message("dotted")), {}),
        "directory": (f"/agents/{agent}/directory", rpc("a2a/task", work), {}),
        "agentvault": (f"/agents/{agent}/agentvault/", rpc("tasks/send", vault), {}),
        "a2a-0.3": (f"/agents/{agent}/a2a-0.3", rpc("message/send", _message("0.3")), {}),
        "a2a-1.0": (f"/agents/{agent}/a2a-1.0", rpc("SendMessage", _message("1.0")), version),
        "a2a-1.0 stream": (f"/agents/{agent}/a2a-1.0", rpc("SendStreamingMessage", _message("1.0")), version),
        "a2a-1.0 REST": (f"/agents/{agent}/a2a-1.0/message:send", _message("1.0"), version),
    }


CODES: Final = {"agentvault": (-32002, -32003)}


@pytest.mark.req("V-27", "R-09", "D-26")
@pytest.mark.parametrize("dialect", list(calls("x")))
def test_every_dialect_says_how_to_get_in_and_what_is_missing(
    asked_wrongly: HubProcess, agent: PlatformAgent, dialect: str
) -> None:
    hub = asked_wrongly
    target = join(hub, agent, id=fresh("agt_shut"))["id"]
    path, body, headers = calls(target)[dialect]
    own = f'resource_metadata="http://localhost:{hub.port}/.well-known/oauth-protected-resource"'
    nobody = hub.post(path, body, {**headers, **NOBODY})
    wrong = hub.post(path, body, headers, token="a.b.c")
    poor = hub.post(path, body, headers, token=token_for(hub, hub.new_key("a2a:register")))
    assert [reply.status for reply in (nobody, wrong, poor)] == [401, 401, 403]
    assert nobody.headers["www-authenticate"] == f"Bearer {own}"
    assert wrong.headers["www-authenticate"] == f'Bearer {own}, error="invalid_token"'
    assert poor.headers["www-authenticate"] == f'Bearer {own}, error="insufficient_scope", scope="a2a:call"'
    if dialect in CODES:
        assert (wrong.json["error"]["code"], poor.json["error"]["code"]) == CODES[dialect]


@pytest.mark.req("R-09")
@pytest.mark.parametrize("dialect", ["platform", "dotted", "directory", "agentvault", "a2a-0.3", "a2a-1.0"])
def test_a_token_calls_in_every_dialect(hub: HubProcess, agent: PlatformAgent, dialect: str) -> None:
    target = join(hub, agent, id=fresh("agt_every"))["id"]
    path, body, headers = calls(target)[dialect]
    reply = hub.post(path, body, headers, token=token_for(hub, hub.new_key("a2a:call")))
    assert reply.status == 200, reply.body
    assert "error" not in reply.json, reply.body


@pytest.mark.req("D-26", "V-29", "V-09")
def test_cards_of_protected_agents_name_the_token_endpoint_and_those_of_open_ones_do_not(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    shut, open_ = (join(hub, agent, id=fresh("agt_card"), open=each)["id"] for each in (False, True))
    token_url = f"http://localhost:{hub.port}/oauth/token"
    flows = ("securitySchemes", "oauth2", "flows", "clientCredentials")
    newer = ("securitySchemes", "oauth2", "oauth2SecurityScheme", "flows", "clientCredentials")
    cards: dict[str, tuple[str | int, ...]] = {
        "agent-card": flows,
        "a2a-0.3/.well-known/agent-card.json": flows,
        "a2a-1.0/.well-known/agent-card.json": newer,
        "agentvault/agent-card.json": ("authSchemes", 1),
    }
    for path, way in cards.items():
        flow: Any = hub.get(f"/agents/{shut}/{path}", NOBODY).json
        for step in way:
            flow = flow[step]
        assert (flow["tokenUrl"], list(flow["scopes"])) == (token_url, ["a2a:call"]), path
        assert "oauth2" not in json.dumps(hub.get(f"/agents/{open_}/{path}", NOBODY).json), path


# -- the keys that sign


def test_an_administrator_has_the_signing_key_followed(hub: HubProcess) -> None:
    token = token_for(hub, hub.new_key("a2a:call"))
    (first,) = hub.get("/v1/signing-keys").json["items"]
    two = hub.post("/v1/signing-keys/rotate", {})
    assert two.status == 200
    assert [(item["signs"], item["kid"] == first["kid"]) for item in two.json["items"]] == [
        (True, True),
        (False, False),
    ]
    published = [key["kid"] for key in hub.get("/.well-known/jwks.json", NOBODY).json["keys"]]
    assert published[:-1] == [item["kid"] for item in two.json["items"]]  # the last is that of cards, and stays
    assert hub.get("/v1/agents", token=token).status == 200
    (now,) = hub.post("/v1/signing-keys/rotate", {"now": True}).json["items"]
    assert now["kid"] not in published and now["signs"]
    assert hub.get("/v1/agents", token=token).status == 401  # also where it was remembered
    assert hub.get("/v1/agents", token=token_for(hub, hub.new_key("a2a:call"))).status == 200
    # They are the hub's, not a tenant's.
    refused(hub.get("/v1/signing-keys", token=hub.new_key("a2a:admin")), 403, "AUTHORIZATION_ERROR")
    refused(hub.post("/v1/signing-keys/rotate", {}, token=hub.new_key("a2a:admin")), 403, "AUTHORIZATION_ERROR")


def test_keys_and_tokens_outlive_the_process(tmp_path_factory: pytest.TempPathFactory) -> None:
    hub = HubProcess(tmp_path_factory.mktemp("again") / "data").start()
    try:
        token = token_for(hub, hub.new_key("a2a:call"))
        two = hub.post("/v1/signing-keys/rotate", {}).json
        hub.kill()
        hub.start()
        assert hub.get("/v1/signing-keys").json == two
        assert hub.get("/v1/agents", token=token).status == 200
    finally:
        hub.stop()


@pytest.mark.req("R-09")
def test_without_authentication_no_token_is_needed(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_hub(tmp_path_factory.mktemp("open") / "data", auth="none") as hub:
        assert hub.get("/v1/agents").status == 200
        assert hub.get("/v1/keys", token="a.b.c").status == 200
