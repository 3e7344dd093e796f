"""Which credential an agent is shown that is called without a hub, where it comes from, and where it never goes."""

import asyncio
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from dragoman import A2AClient, KeyManager, errors
from dragoman.dialects import DIALECTS
from dragoman.dialects.text import id_of_name
from dragoman.model.json import is_object
from dragoman.sdk.direct.direct import direct
from dragoman.sdk.direct.proof import refuse_plain
from dragoman.sdk.testing.moved_clock import MovedClock
from tests.support.matrix import agent_of
from tests.support.run import run
from tests.support.speaking import StubAgent, json_answer, serving
from tests.support.stub_server import StubHandler, on_free_port

KEY, CLIENT, SECRET = "planted-key-1", "the-client", "planted-secret-2"
Scheme = dict[str, Any]


class Tokens:
    """A token endpoint: what it was asked, and what it gives."""

    def __init__(self) -> None:
        self.url = ""
        self.forms: list[dict[str, list[str]]] = []
        self.lasts_s: int | None = 3600
        self.refuses = False

    @property
    def last(self) -> str:
        return f"token-{len(self.forms)}"

    def answer(self, form: str) -> tuple[int, dict[str, Any]]:
        self.forms.append(parse_qs(form))
        if self.refuses:
            return 401, {"error": "invalid_client", "error_description": f"wrong: {form}"}
        lasts = {} if self.lasts_s is None else {"expires_in": self.lasts_s}
        return 200, {"access_token": self.last, "token_type": "bearer", **lasts}


@contextmanager
def token_endpoint() -> Generator[Tokens]:
    tokens = Tokens()

    class Handler(StubHandler):
        def _serve(self) -> None:
            assert self.headers["Content-Type"] == "application/x-www-form-urlencoded"
            self.say_json(*tokens.answer(self.read_body().decode()))

        do_POST = _serve  # noqa: N815 - the name the parent calls

    with on_free_port(Handler) as url:
        tokens.url = f"{url}/oauth/token"
        yield tokens


class Vault:
    """An AgentVault agent that repeats what it is told to whoever shows one of `takes`, and notes what was shown."""

    def __init__(self, stub: StubAgent) -> None:
        self.stub = stub
        self.url = ""
        self.takes: set[str] | None = None
        self.shown: list[tuple[str | None, str | None]] = []

    def answer(self, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        frame = {"jsonrpc": "2.0", "id": body.get("id")}
        if body["method"] != "tasks/send":
            return json_answer({**frame, "error": {"code": -32001, "message": "no such task"}})
        shown = headers.get("x-api-key"), headers.get("authorization")
        self.shown.append(shown)
        if self.takes is not None and self.takes.isdisjoint(shown):
            error = {"code": -32002, "message": "Authentication required"}
            return json_answer({**frame, "error": error}, 401)
        said = {"role": "assistant", "parts": [{"type": "text", "content": "fine"}]}
        task = {"id": "av-1", "state": "COMPLETED", "messages": [said], "artifacts": []}
        return json_answer({**frame, "result": {**task, "createdAt": WHEN, "updatedAt": WHEN}})


WHEN = "2026-01-01T00:00:00Z"


@contextmanager
def vault(*schemes: Scheme, **card: Any) -> Generator[Vault]:
    stub = StubAgent("agentvault")
    agent = Vault(stub)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "POST" and path == "/a2a/" and is_object(body) and "method" in body:
            return agent.answer(headers, body)
        found = path.endswith("agent-card.json")
        return json_answer(stub.card) if found else json_answer({"detail": "Not Found"}, 404)

    with serving(stub, handle):
        agent.url = stub.url
        stub.card = {
            "schemaVersion": "1.0",
            "humanReadableId": "Org/Echo",
            "agentVersion": "1.0.0",
            "name": "Echo",
            "description": "Repeats",
            "url": f"{stub.url}/a2a/",
            "provider": {"name": "Org"},
            "capabilities": {"a2aVersion": "0.2"},
            "authSchemes": list(schemes),
            **card,
        }
        yield agent


def keys(tmp_path: Path, *, key: str | None = None, oauth: bool = False, service: str = "org/echo") -> KeyManager:
    made = KeyManager(tmp_path / "keys.json")
    if key is not None:
        made.set_key(service, key)
    if oauth:
        made.set_oauth(service, CLIENT, SECRET)
    return made


def called(client: A2AClient) -> str:
    return run(client.call(message="hello")).text


@pytest.mark.req("V-28")
@pytest.mark.parametrize(
    ("kinds", "has_key", "has_oauth", "shown"),
    [
        (("none", "bearer", "oauth2", "apiKey"), True, True, (KEY, None)),
        (("none", "bearer", "oauth2", "apiKey"), False, True, (None, "Bearer token-1")),
        (("none", "bearer", "oauth2"), True, True, (None, "Bearer token-1")),
        (("none", "bearer", "oauth2"), True, False, (None, f"Bearer {KEY}")),
        (("bearer", "none"), False, True, (None, None)),
        (("none",), True, True, (None, None)),
    ],
)
def test_the_first_scheme_in_our_order_that_there_is_a_credential_for_is_taken(
    tmp_path: Path, kinds: tuple[str, ...], has_key: bool, has_oauth: bool, shown: tuple[str | None, str | None]
) -> None:
    with token_endpoint() as tokens:
        schemes: list[Scheme] = [
            {"scheme": kind, **({"tokenUrl": tokens.url, "scopes": ["a", "b"]} if kind == "oauth2" else {})}
            for kind in kinds
        ]
        with vault(*schemes) as agent:
            own = keys(tmp_path, key=KEY if has_key else None, oauth=has_oauth)
            assert called(A2AClient.direct(agent.url, keys=own)) == "fine"
            assert agent.shown == [shown]
            wanted = {"grant_type": ["client_credentials"], "client_id": [CLIENT], "client_secret": [SECRET]}
            assert tokens.forms == ([{**wanted, "scope": ["a b"]}] if shown[1] == "Bearer token-1" else [])


@pytest.mark.req("V-10", "V-28")
def test_the_service_identifier_goes_before_the_agents_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTVAULT_KEY_ORG_ECHO", "by-name")
    with vault({"scheme": "apiKey", "service_identifier": "Weather"}) as agent:
        assert called(A2AClient.direct(agent.url, keys=keys(tmp_path, key=KEY, service="weather"))) == "fine"
        assert agent.shown == [(KEY, None)]
    with vault({"scheme": "apiKey"}) as agent:
        assert called(A2AClient.direct(agent.url)) == "fine"
        assert agent.shown == [("by-name", None)]


@pytest.mark.req("V-28")
def test_a_token_is_kept_until_a_minute_before_its_end_and_then_renewed(tmp_path: Path) -> None:
    async def calls(client: A2AClient, clock: MovedClock, tokens: Tokens) -> list[int]:
        got: list[int] = []
        for ahead_s in (0, 3500, 60, 3539, 2):
            await clock.advance(ahead_s)
            await client.call(message="hello")
            got.append(len(tokens.forms))
        return got

    with token_endpoint() as tokens, vault({"scheme": "oauth2", "tokenUrl": tokens.url}) as agent:
        clock = MovedClock()
        client = direct(agent.url, keys=keys(tmp_path, oauth=True), clock=clock)
        # 3600 s: at 3500 it lasts, at 3560 it is renewed, which lasts until 3540 later.
        assert run(calls(client, clock, tokens)) == [1, 1, 2, 2, 3]
        assert [shown for _, shown in agent.shown] == [f"Bearer token-{n}" for n in (1, 1, 2, 2, 3)]
        assert "scope" not in tokens.forms[0]


@pytest.mark.req("V-28")
def test_many_calls_at_once_get_one_token(tmp_path: Path) -> None:
    async def many(client: A2AClient) -> None:
        await asyncio.gather(*(client.call(message="hello") for _ in range(8)))

    with token_endpoint() as tokens, vault({"scheme": "oauth2", "tokenUrl": tokens.url}) as agent:
        run(many(A2AClient.direct(agent.url, keys=keys(tmp_path, oauth=True))))
        assert len(tokens.forms) == 1


@pytest.mark.req("V-28")
@pytest.mark.parametrize("streamed", [False, True])
def test_a_token_that_the_agent_no_longer_takes_is_renewed_once(tmp_path: Path, streamed: bool) -> None:
    async def once(client: A2AClient) -> None:
        if streamed:
            assert [event.type async for event in client.stream(message="hello")][-1] == "complete"
        else:
            await client.call(message="hello")

    async def calls(client: A2AClient, agent: Vault) -> None:
        await once(client)
        agent.takes = {"Bearer token-2"}
        await once(client)
        agent.takes = {"nothing"}
        with pytest.raises(errors.NotAuthenticated, match="refused the oauth2 credential"):
            await once(client)

    with token_endpoint() as tokens, vault({"scheme": "oauth2", "tokenUrl": tokens.url}) as agent:
        run(calls(A2AClient.direct(agent.url, keys=keys(tmp_path, oauth=True)), agent))
        assert len(tokens.forms) == 3


def test_a_token_that_says_no_end_or_a_short_one_is_still_used(tmp_path: Path) -> None:
    with token_endpoint() as tokens, vault({"scheme": "oauth2", "tokenUrl": tokens.url}) as agent:
        for lasts_s in (None, 30):
            tokens.lasts_s = lasts_s
            assert called(A2AClient.direct(agent.url, keys=keys(tmp_path, oauth=True))) == "fine"
        assert len(tokens.forms) == 2


@pytest.mark.req("V-10")
def test_without_a_credential_the_refusal_says_what_is_wanted_and_where_it_is_looked_for() -> None:
    with vault({"scheme": "apiKey", "service_identifier": "Weather"}) as agent:
        agent.takes = {KEY}
        with pytest.raises(errors.NotAuthenticated) as raised:
            called(A2AClient.direct(agent.url))
    assert "Echo wants apiKey" in str(raised.value)
    assert "'weather'" in str(raised.value)


@pytest.mark.req("V-10")
def test_no_secret_shows_in_what_is_raised(tmp_path: Path) -> None:
    shown: list[str] = []
    with token_endpoint() as tokens, vault({"scheme": "oauth2", "tokenUrl": tokens.url}) as agent:
        tokens.refuses = True
        with pytest.raises(errors.NotAuthenticated, match=r"gave no token \(invalid_client\)") as refused:
            called(A2AClient.direct(agent.url, keys=keys(tmp_path, oauth=True)))
        shown.append("".join(traceback.format_exception(refused.value)) + repr(refused.value.details))
    with vault({"scheme": "apiKey"}) as agent:
        agent.takes = set()
        client = A2AClient.direct(agent.url, keys=keys(tmp_path, key=KEY))
        with pytest.raises(errors.NotAuthenticated) as wrong:
            called(client)
        shown.append("".join(traceback.format_exception(wrong.value)) + repr(wrong.value.details) + repr(client))
    assert not any(secret in text for text in shown for secret in (KEY, SECRET))


def test_no_credential_goes_over_plain_http_to_another_machine(tmp_path: Path) -> None:
    # The card is here, and names an agent elsewhere.
    with vault({"scheme": "apiKey"}, url="http://agent.invalid:8080/a2a/") as agent:
        client = A2AClient.direct(agent.url, dialect="agentvault", keys=keys(tmp_path, key=KEY))
        with pytest.raises(errors.DragomanError, match="over plain http"):
            called(client)
        assert agent.shown == []
    with vault({"scheme": "oauth2", "tokenUrl": "http://agent.invalid/token"}) as agent:
        with pytest.raises(errors.DragomanError, match="over plain http"):
            called(A2AClient.direct(agent.url, keys=keys(tmp_path, oauth=True)))
        assert agent.shown == []


@pytest.mark.parametrize("url", ["http://example.com/", "http://10.0.0.1:8080/", "http://127.0.0.1.example.com/", "x"])
def test_what_is_not_this_machine_needs_https(url: str) -> None:
    with pytest.raises(errors.DragomanError):
        refuse_plain(url)


@pytest.mark.parametrize("url", ["https://example.com/", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]:9/"])
def test_this_machine_and_https_may_be_shown_a_credential(url: str) -> None:
    refuse_plain(url)


IN_HEADER = {
    "a2a-1.0": {"apiKeySecurityScheme": {"location": "header", "name": "X-Own-Key"}},
    "a2a-0.3": {"type": "apiKey", "in": "header", "name": "X-Own-Key"},
}


@pytest.mark.parametrize("slug", IN_HEADER)
def test_an_official_agents_scheme_names_the_header(slug: str, tmp_path: Path) -> None:
    with agent_of(DIALECTS[slug])() as stub:
        stub.card["securitySchemes"] = {"own": IN_HEADER[slug]}
        own = keys(tmp_path, key=KEY, service=id_of_name(str(stub.card["name"])))
        run(A2AClient.direct(stub.url, keys=own).call(skill="echo", message="x"))
        assert [headers["x-own-key"] for _, _, headers, _ in stub.requests if "x-own-key" in headers] == [KEY]
