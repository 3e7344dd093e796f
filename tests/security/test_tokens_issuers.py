"""Tokens of other issuers: what their claims mean here, and when their keys are fetched."""

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dragoman.config import SettingError, load
from dragoman.hub.issuers import Issuers
from dragoman.model.issuer import Issuer
from dragoman.security.tokens import Access
from tests.contracts.manual_clock import ManualClock
from tests.end_to_end.world import fresh, join, repeats, tracebacks
from tests.support.forged_tokens import KID, TestIssuer, ec_jwk
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.run import run
from tests.support.stub_server import StubHandler, on_free_port

HUB: Final = "https://hub.example"
LOGIN: Final = "https://login.example"
JWKS: Final = "https://login.example/keys"


class World:
    """Issuers under a clock that a test moves, and the document that they publish."""

    def __init__(self, **setting: Any) -> None:
        self.clock = ManualClock()
        self.issuer = TestIssuer(LOGIN, HUB, self.clock.now().timestamp())
        self.document: bytes | None = json.dumps(self.issuer.jwks).encode()
        self.fetched = 0
        self.asked = asyncio.Event()
        self.gate: asyncio.Event | None = None
        trusted = msgspec.convert({"issuer": LOGIN, "jwks_uri": JWKS, **setting}, Issuer)
        self.issuers = Issuers(
            [trusted], own=lambda _token, _now: None, audience=HUB, fetch=self._fetch, clock=self.clock, spawn=_spawn
        )

    async def _fetch(self, url: str) -> bytes | None:
        assert url == JWKS
        self.fetched += 1
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        return self.document

    async def access(self, header: dict[str, Any] | None = None, **claims: Any) -> Access | None:
        """What a token made now is taken for."""
        self.issuer.now = int(self.clock.now().timestamp())
        return await self.issuers.access(self.issuer.token(header, **claims), self.clock.now())


def _spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    return asyncio.ensure_future(work)


def meant(setting: dict[str, Any], header: dict[str, Any] | None = None, **claims: Any) -> Access | None:
    return run(World(**setting).access(header, **claims))


def test_a_caller_of_another_issuer_has_a_name_that_none_of_ours_can_have() -> None:
    found = meant({}, sub="agt_victim", client_id="k7f2Qx0aZ91b", agent_id="agt_victim")
    assert found is not None
    # No key of ours, no agent of ours: whatever it says besides.
    assert (found.sub, found.tid, found.client_id, found.agent_id) == (
        "login.example|agt_victim",
        "default",
        None,
        None,
    )
    named = meant({"name": "corp"}, sub="bob")
    assert named is not None and named.sub == "corp|bob"


@pytest.mark.parametrize("subject", ["two words", "línea", "a\r\nb", "x" * 201, "\u202e"])
def test_a_name_that_cannot_stand_in_a_header_is_refused(subject: str) -> None:
    assert meant({}, sub=subject) is None


def test_the_scopes_are_those_of_the_token_within_those_of_the_setting() -> None:
    every = "a2a:call a2a:receive a2a:register a2a:admin news:read"
    meanings: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
        ({}, {"scope": every}, "a2a:call a2a:receive a2a:register news:read"),
        ({"scopes": ["a2a:call"]}, {"scope": every}, "a2a:call news:read"),
        ({"scopes": ["a2a:admin"]}, {"scope": every}, "a2a:admin news:read"),
        ({"scope_claim": "scp"}, {"scope": every, "scp": ["a2a:call"]}, "a2a:call"),
        # One word of a list that hides another: it is two.
        ({"scope_claim": "roles"}, {"roles": ["a2a:call", "x a2a:admin"]}, "a2a:call x"),
        ({"scope_claim": "roles"}, {"roles": [1, None, {}]}, ""),
        ({}, {"scope": None}, ""),
    )
    for setting, claims, expected in meanings:
        found = meant(setting, **claims)
        assert found is not None and found.scope == expected


def test_the_tenant_is_the_settings_or_the_claims() -> None:
    fixed = meant({"tenant": "acme"}, tid="other")
    claimed = meant({"tenant_claim": "org"}, org="acme-2")
    assert fixed is not None and claimed is not None
    assert (fixed.tid, claimed.tid) == ("acme", "acme-2")
    for wrong in (None, "", "Acme", "../x", 7, "a" * 64):
        assert meant({"tenant_claim": "org"}, org=wrong) is None


def test_unmarked_tokens_count_only_where_the_setting_says_so_and_id_tokens_never() -> None:
    unmarked = {"typ": "JWT"}
    assert meant({}, unmarked) is None
    assert meant({"typ": "JWT"}, unmarked) is not None
    assert meant({"typ": "JWT"}) is None
    assert meant({"typ": "JWT"}, unmarked, nonce="n") is None
    assert meant({"typ": "JWT"}, unmarked, at_hash="h") is None


def test_the_algorithms_of_the_setting_are_all_there_are() -> None:
    assert meant({"algs": ["ES256"]}) is not None
    assert meant({"algs": ["RS256"]}) is None


def test_keys_are_fetched_once_in_ten_minutes_and_for_unknown_ones_once_a_minute() -> None:
    async def scenario() -> None:
        world = World()
        assert [await world.access() is not None for _ in range(3)] == [True] * 3
        assert world.fetched == 1
        world.clock.advance(59)
        assert await world.access({"kid": "new"}) is None
        assert world.fetched == 1  # fetched less than a minute ago
        world.clock.advance(1)
        document = world.issuer.jwks
        document["keys"].append(ec_jwk(world.issuer.key, "new"))
        world.document = json.dumps(document).encode()
        assert await world.access({"kid": "new"}) is not None
        assert await world.access({"kid": "none"}) is None
        assert world.fetched == 2
        world.clock.advance(599)
        assert await world.access() is not None
        assert world.fetched == 2
        world.clock.advance(1)
        assert await world.access() is not None
        assert world.fetched == 3

    run(scenario())


def test_a_key_that_is_published_no_more_is_out_within_ten_minutes_and_without_keys_nobody_is_in() -> None:
    async def scenario() -> None:
        world = World()
        assert await world.access() is not None
        for document in (
            None,
            b"",
            b"[]",
            b"[" * 5000,
            b'{"keys": [{"kty": "oct", "k": "AA", "kid": "issuer-key-1"}]}',
        ):
            world.document = document
            world.clock.advance(600)
            assert await world.access() is None
        world.document = json.dumps(world.issuer.jwks).encode()
        assert await world.access() is None  # A failed fetch is tried again, but not by everybody who comes.
        world.clock.advance(5)
        assert await world.access() is not None
        world.document = json.dumps({"keys": [ec_jwk(world.issuer.stranger, "other")]}).encode()
        world.clock.advance(600)
        assert await world.access() is None

    run(scenario())


def test_many_who_come_at_once_wait_for_one_fetch_and_one_who_leaves_takes_nobody_along() -> None:
    async def scenario() -> None:
        world = World()
        world.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(world.access()) for _ in range(20)]
        await world.asked.wait()
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        world.gate.set()
        assert all([await each is not None for each in waiting[1:]])
        assert world.fetched == 1

    run(scenario())


# -- the setting


def test_issuers_are_set_in_the_file_or_as_json_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(f'[[issuers]]\nissuer = "{LOGIN}"\njwks_uri = "{JWKS}"\nalgs = ["ES384"]\n')
    (read,) = load({}, {}, file).issuers
    (given,) = load({}, {"DRAGOMAN_ISSUERS": json.dumps([{"issuer": LOGIN, "jwks_uri": JWKS}])}, None).issuers
    assert (read.issuer, read.algs, given.jwks_uri, given.algs) == (LOGIN, ("ES384",), JWKS, ("ES256", "RS256"))


@pytest.mark.parametrize(
    "wrong",
    [
        [{"issuer": LOGIN}],
        [{"issuer": LOGIN, "jwks_uri": "file:///etc/passwd"}],
        [{"issuer": LOGIN, "jwks_uri": JWKS, "algs": ["HS256"]}],
        [{"issuer": LOGIN, "jwks_uri": JWKS, "algs": ["none"]}],
        [{"issuer": LOGIN, "jwks_uri": JWKS, "algs": []}],
        [{"issuer": LOGIN, "jwks_uri": JWKS, "tenant": "../x"}],
        [{"issuer": LOGIN, "jwks_uri": JWKS, "typo": 1}],
        [{"issuer": LOGIN, "jwks_uri": JWKS}, {"issuer": f"{LOGIN}/b", "jwks_uri": JWKS}],
        [{"issuer": "http://localhost:8700", "jwks_uri": JWKS}],
        "no json",
    ],
)
def test_a_wrong_issuer_ends_the_start(wrong: object) -> None:
    with pytest.raises(SettingError, match="issuers"):
        load({}, {"DRAGOMAN_ISSUERS": wrong if isinstance(wrong, str) else json.dumps(wrong)}, None)


# -- over the wire


@pytest.fixture(scope="module")
def hub_and_issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HubProcess, TestIssuer]]:
    issuer = TestIssuer(LOGIN, "dragoman", time.time())

    class Handler(StubHandler):
        def _serve(self) -> None:
            self.say_json(200, issuer.jwks)

        do_GET = _serve  # noqa: N815 - the name the parent calls

    with on_free_port(Handler) as url:
        setting = {"issuer": LOGIN, "jwks_uri": f"{url}/keys", "audience": "dragoman", "tenant_claim": "org"}
        forbidden = {"issuer": "https://metadata.example", "jwks_uri": "http://169.254.169.254/keys"}
        hub = HubProcess(tmp_path_factory.mktemp("issuers") / "data")
        hub.start({"DRAGOMAN_ISSUERS": json.dumps([setting, forbidden])})
        try:
            yield hub, issuer
        finally:
            hub.stop()
        assert tracebacks(hub) == []


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


def test_a_caller_of_another_issuer_calls_agents_and_sees_its_own_calls_alone(
    hub_and_issuer: tuple[HubProcess, TestIssuer], agent: PlatformAgent
) -> None:
    hub, issuer = hub_and_issuer
    agent.respond = repeats
    target = join(hub, agent, id=fresh("agt_out"))["id"]
    alice, bob, poor = (
        issuer.token(sub=name, org="default", scope=scope)
        for name, scope in (("alice", "a2a:call"), ("bob", "a2a:call"), ("poor", "openid"))
    )
    called = hub.call("echo", {"n": 1}, target, token=alice)
    assert (called.status, called.json["result"]) == (200, {"n": 1})
    status = f"/v1/a2a/call/{called.json['id']}/status"
    assert [hub.get(status, token=token).status for token in (alice, bob, poor)] == [200, 404, 403]
    foreign = issuer.token(sub="alice", org="acme", scope="a2a:call")
    assert hub.get(status, token=foreign).status == 404
    assert hub.get(f"/v1/calls/{called.json['id']}").json["caller"] == "login.example|alice"


def test_keys_are_not_fetched_where_the_hub_may_not_call(hub_and_issuer: tuple[HubProcess, TestIssuer]) -> None:
    hub, issuer = hub_and_issuer
    began = time.monotonic()
    reply = hub.get("/v1/agents", token=issuer.token(iss="https://metadata.example"))
    assert (reply.status, time.monotonic() - began < 5) == (401, True)
    assert KID in issuer.jwks["keys"][0]["kid"]


def test_the_documents_name_the_issuers(hub_and_issuer: tuple[HubProcess, TestIssuer]) -> None:
    hub, _ = hub_and_issuer
    said = hub.get("/.well-known/oauth-protected-resource", {"Authorization": ""}).json
    assert said["authorization_servers"] == [said["resource"], LOGIN, "https://metadata.example"]
