"""Nothing is public by accident: all that is served, asked in every way that a stranger may try."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from dragoman.security.keys import new_key
from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import eventually, tracebacks
from tests.security.asking import Request, line_of, listed, request_for
from tests.security.expected import ANY, CARD, EXPECTED, PUBLIC
from tests.support.agent_server import AgentServer
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.reach import Reached, everything
from tests.support.security_figures import Figures
from tests.support.served_agent import AGENT_ID
from tests.support.stranger import Said, ask

NOBODY: Final = "nobody-0000"
UNKNOWN_UUID: Final = "00000000-0000-4000-8000-000000000000"
REFUSED: Final = frozenset({400, 401, 403, 404, 405, 421})
# What was decided to be public, beside the cards at agents' own places; metrics on a hub for its own machine alone.
_LISTED: Final = """
/ /healthz /readyz /health /openapi.json /docs /llms.txt /schemas/agent-card/v1 /.well-known/jwks.json
/agents/.well-known/agent-card.json /agents/.well-known/agent.json
/oauth/token /.well-known/oauth-authorization-server /.well-known/oauth-protected-resource
/metrics
"""
PUBLIC_PATHS: Final = frozenset(_LISTED.split())


class World(msgspec.Struct, frozen=True):
    """A hub without an open agent, and credentials that are not good enough."""

    hub: HubProcess
    agent: str
    reached: tuple[Reached, ...]
    weak: str  # a key that may look around, and no more
    other: str
    revoked: str
    expired: str
    elsewhere: str  # a token of another hub, that has this one's name in it
    forged: str  # a key of the right form that was never made
    uuid: str = ""
    served: tuple[Reached, ...] = ()  # whether the table knows it or not
    alone: bool = False  # it is the server of one agent

    def ask(self, request: Request, *lines: str, path: str = "", host: str | None = None) -> Said:
        """Send it with these header lines; to another path, or under another name, where one is given."""
        said = (*request.lines, *lines)
        return ask(self.hub.port, request.method, path or request.path, said, request.body, host=host)


def _bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


def world_of(hub: HubProcess, agent: str, reached: tuple[Reached, ...]) -> World:
    """Everything that a walk needs, of a hub and an agent at it."""
    revoked = hub.post("/v1/keys", {"name": "gone", "scopes": ["a2a:call", "a2a:admin"]}).json
    assert hub.request("DELETE", f"/v1/keys/{revoked['key_id']}").status == 200
    soon = datetime.now(UTC) + timedelta(milliseconds=50)
    expired = hub.new_key("a2a:call", "a2a:admin", expires_at=soon.isoformat())
    eventually(lambda: datetime.now(UTC) > soon, "the key has expired")
    forged = new_key(lambda count: bytes(range(count))).key
    weak, other = hub.new_key("weather"), hub.new_key("a2a:call", "a2a:admin")
    return World(hub, agent, reached, weak, other, revoked["key"], expired, _elsewhere(hub, agent), forged.reveal())


def _elsewhere(hub: HubProcess, agent: str) -> str:
    """A token that says all that one of this hub's says, signed by somebody else."""
    now = int(datetime.now(UTC).timestamp())
    claims = {"iss": hub.url, "aud": hub.url, "sub": agent, "tenant": "default", "tid": "default", "iat": now}
    claims |= {"exp": now + 900, "nbf": now, "scope": "a2a:call a2a:admin", "jti": "1", "client_id": "k"}
    key = ECKey.generate_key("P-256", parameters={"kid": hub.get("/.well-known/jwks.json").json["keys"][0]["kid"]})
    return jwt.encode({"alg": "ES256", "kid": key.kid, "typ": "at+jwt"}, claims, key)


@pytest.fixture(scope="module", params=["a hub", "the server of one agent"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("reach")
    alone = request.param != "a hub"
    with ExitStack() as stack:
        made = AgentServer if alone else HubProcess
        hub = made(folder / "data", auth="token").start()
        stack.callback(hub.stop)
        agent = AGENT_ID if alone else Everyone(hub, stack).agent("platform").id
        served = everything(folder / "same", one_agent=alone)
        known = world_of(hub, agent, listed(served))
        uuid: str = hub.get(f"/v1/agents/{agent}").json["uuid"]
        yield msgspec.structs.replace(known, alone=alone, uuid=uuid, served=served)
        assert tracebacks(hub) == []


Way = Callable[[World, Request], Said]
# Wrong credentials: whatever looks at one refuses them.
UNKNOWN: Final[dict[str, Way]] = {
    "garbage": lambda world, request: world.ask(request, _bearer("garbage")),
    "a key that was never made": lambda world, request: world.ask(request, _bearer(world.forged)),
    "a revoked key": lambda world, request: world.ask(request, _bearer(world.revoked)),
    "an expired key": lambda world, request: world.ask(request, _bearer(world.expired)),
    "another hub's token": lambda world, request: world.ask(request, _bearer(world.elsewhere)),
    "the admin token as a password": lambda world, request: world.ask(request, f"Authorization: Basic {ADMIN_TOKEN}"),
    "two credentials": lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), f"X-Api-Key: {world.other}"),
    "a good one and garbage": lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), "X-Api-Key: garbage"),
}
# Wrong requests: refused whoever asks, and whatever is asked.
MALFORMED: Final[dict[str, tuple[set[int], Way]]] = {
    "a foreign Host": ({421}, lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), host="evil.example")),
    "a Host with a path": (
        {421},
        lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), host="evil.example/v1"),
    ),
    "two Hosts": ({400}, lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), "Host: evil.example")),
    "no Host": ({400}, lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), host="")),
    "a foreign Origin": (
        {403},
        lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), "Origin: https://evil.example"),
    ),
    "a credential twice": (
        {400, 422},  # in the words of each dialect
        lambda world, request: world.ask(request, _bearer(ADMIN_TOKEN), _bearer(ADMIN_TOKEN)),
    ),
}
# Other ways to write a path, without a credential: they reach nothing that the plain path would not show.
TRICKS: Final[dict[str, Callable[[str], str]]] = {
    "two slashes": lambda path: f"/{path}",
    "dots": lambda path: f"/x/..{path}",
    "escaped dots": lambda path: f"/x/%2e%2e{path}",
    "behind a public page": lambda path: f"/healthz/..{path}",
    "a semicolon": lambda path: f"{path.partition('?')[0]};x=/healthz",
    "with its authority": lambda path: f"http://127.0.0.1{path}",
}


def _request(world: World, reached: Reached, id: str | None = None) -> Request:
    """The request as a stranger makes it: of an agent that is there, and of other things that are not."""
    line = line_of(reached)
    return request_for(
        reached,
        id=id or (world.agent if line.names == "agent" else NOBODY),
        agent=world.agent,
        sender=world.agent,
        uuid=world.uuid,
    )


def _one_of_each(world: World) -> list[Reached]:
    return list({reached.key: reached for reached in world.reached}.values())


Named = TypeVar("Named")


def _some(world: World, ways: Mapping[str, Named], full: bool) -> Iterator[tuple[str, Named, Reached]]:
    """Everything in every way; or one path of each thing, in some of the ways, by turns."""
    if full:
        yield from ((name, way, reached) for name, way in ways.items() for reached in world.reached)
        return
    named = tuple(ways.items())
    turns = 2 if world.alone else 4
    for number, reached in enumerate(_one_of_each(world)):
        yield from ((*named[(number + turn) % len(named)], reached) for turn in range(turns))


def _looks(world: World, reached: Reached) -> bool:
    """Whether a credential is looked at."""
    return line_of(reached).access != PUBLIC or reached.path == "/" or (world.alone and reached.path == "/health")


def test_everything_that_is_served_has_a_line_and_every_line_is_served(world: World) -> None:
    served = {reached.key for reached in world.served}
    assert served - EXPECTED.keys() == set(), "write a line into tests/security/expected.py"
    assert EXPECTED.keys() - served == set()


def test_what_is_public_is_what_was_decided(world: World) -> None:
    public = {reached.path for reached in world.reached if line_of(reached).access == PUBLIC}
    assert public <= PUBLIC_PATHS
    cards = {reached.key for reached in world.reached if line_of(reached).access == CARD}
    others = {key for key in cards if not key.endswith("card")}
    assert others == {"GET /agents/{agent}", "GET /agents/{agent}/health"}


@pytest.mark.req("P-05", "X-12")
def test_without_a_credential_only_what_is_public_is_answered(world: World, figures: Figures) -> None:
    wrong = accidents(world)
    figures("S3", asked_without_credential=len(world.reached), answered_by_accident=len(wrong))
    assert wrong == []


def accidents(world: World) -> list[str]:
    """What a stranger is answered, and was not to be; or is not, and was to be."""
    wrong: list[str] = []
    for reached in world.reached:
        said = world.ask(_request(world, reached))
        if (said.status == 401) is (line_of(reached).access in (PUBLIC, CARD)) or said.status >= 500:
            wrong.append(f"{reached}: {said.status}")
    return wrong


@pytest.mark.req("P-05")
@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_wrong_credential_is_refused_wherever_one_is_looked_at(world: World, figures: Figures, full: bool) -> None:
    wrong: list[str] = []
    tried = 0
    for name, way, reached in _some(world, UNKNOWN, full):
        tried += 1
        said = way(world, _request(world, reached))
        if (said.status == 401) is not _looks(world, reached) or said.status >= 500:
            wrong.append(f"{name}, {reached}: {said.status}")
    figures("S3", wrong_credentials=tried, credentials_taken=len(wrong))
    assert wrong == []


@pytest.mark.req("P-05")
def test_a_key_without_the_scope_is_told_so(world: World, figures: Figures) -> None:
    wrong: list[str] = []
    asked = _one_of_each(world)
    for reached in asked:
        said = world.ask(_request(world, reached), _bearer(world.weak))
        if line_of(reached).access in (PUBLIC, CARD, ANY):
            if said.status == 401 or said.status >= 500:
                wrong.append(f"{reached}: {said.status}, though any key will do")
        elif said.status != 403 or world.weak in said.body.decode():
            wrong.append(f"{reached}: {said.status} {said.body[:150]!r}")
    figures("S3", without_scope=len(asked), scopes_ignored=len(wrong))
    assert wrong == []


@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_wrong_host_origin_or_header_is_refused_whoever_asks(world: World, figures: Figures, full: bool) -> None:
    wrong: list[str] = []
    tried = 0
    for name, (statuses, way), reached in _some(world, MALFORMED, full):
        tried += 1
        said = way(world, _request(world, reached))
        in_words = name == "a credential twice" and said.status == 200 and "error" in said.json  # JSON-RPC's
        if said.status not in statuses and not in_words:
            wrong.append(f"{name}, {reached}: {said.status}")
    figures("S3", wrong_hosts_and_origins=tried, hosts_taken=len(wrong))
    assert wrong == []


@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_no_other_spelling_of_a_path_leads_past_the_credential(world: World, figures: Figures, full: bool) -> None:
    wrong: list[str] = []
    tried = 0
    for name, spelled, reached in _some(world, TRICKS, full):
        if line_of(reached).access in (PUBLIC, CARD):
            continue
        request = _request(world, reached)
        tried += 1
        misleading = (f"X-Original-URL: {request.path}", "X-Rewrite-URL: /healthz", "X-Forwarded-Host: x")
        said = world.ask(request, *misleading[: tried % 4], path=spelled(request.path))
        if said.status not in REFUSED:
            wrong.append(f"{name}, {reached}: {said.status}")
    figures("S3", other_spellings=tried, spellings_answered=len(wrong))
    assert wrong == []


def test_a_credential_counts_in_its_header_alone(world: World) -> None:
    wrong: list[str] = []
    for reached in _one_of_each(world):
        if line_of(reached).access in (PUBLIC, CARD):
            continue
        request = _request(world, reached)
        mark = "&" if "?" in request.path else "?"
        path = f"{request.path}{mark}token={ADMIN_TOKEN}&access_token={ADMIN_TOKEN}&api_key={ADMIN_TOKEN}"
        said = world.ask(request, f"Cookie: token={ADMIN_TOKEN}; dragoman={ADMIN_TOKEN}", path=path)
        if said.status not in (400, 401):
            wrong.append(f"{reached}: {said.status}")
    assert wrong == []


def test_the_walk_can_be_passed_with_a_good_credential(world: World) -> None:
    """Were every request refused for its form, the walks above would prove nothing."""
    wrong: list[str] = []
    for reached in _one_of_each(world):
        if reached.method == "WS" or reached.key == "directory a2a/events":
            continue  # it would stay open
        request = _request(msgspec.structs.replace(world, uuid=UNKNOWN_UUID), reached, id=NOBODY)
        said = world.ask(request, _bearer(ADMIN_TOKEN))
        if said.status in (401, 403, 421) or said.status >= 500:
            wrong.append(f"{reached}: {said.status} {said.body[:120]!r}")
    assert wrong == []


@pytest.mark.parametrize("kind", ["a hub", "the server of one agent"])
def test_the_default_start_refuses_a_foreign_host_and_origin_without_any_setting(tmp_path: Path, kind: str) -> None:
    """Without authentication these two are all that keeps a web page out."""
    hub = (HubProcess if kind == "a hub" else AgentServer)(tmp_path / "data", auth="none").start()
    try:
        for method, path, body in (("GET", "/v1/agents", b""), ("POST", "/", b"{}"), ("WS", "/a2a/messages/ws", b"")):
            assert ask(hub.port, method, path, (), body, host="evil.example").status == 421
            assert ask(hub.port, method, path, ("Origin: https://evil.example",), body).status == 403
            assert ask(hub.port, method, path, ("Origin: null",), body).status == 403
    finally:
        hub.stop()
