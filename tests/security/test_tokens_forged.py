"""Goal S4, tokens: of the ways in which a token can be forged none opens anything, and the real ones do.

Over the wire against a hub that trusts an issuer of ours, and against the hub's own tokens; then every check of the
verifier by itself: taken out, it lets something in.
"""

import base64
import http.client
import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from dragoman.security import jwt_verify
from tests.end_to_end.world import tracebacks
from tests.support.forged_tokens import KID, TestIssuer, b64, forged, good
from tests.support.hub import HubProcess, running_hub
from tests.support.security_figures import Figures
from tests.support.stub_server import StubHandler, on_free_port

NOW: Final = 1_800_000_000
ISSUER: Final = TestIssuer("https://login.example", "https://hub.example", NOW)
ELSEWHERE: Final = "http://127.0.0.1:9"
FORGED: Final = forged(ISSUER, ELSEWHERE)
GOOD: Final = good(ISSUER)
_addresses = itertools.count(2)


def taken(module: ModuleType, token: str) -> bool:
    """Whether a verifier takes a token."""
    keys = module.published_keys(ISSUER.jwks, ("ES256", "RS256"))
    now = datetime.fromtimestamp(NOW, UTC)
    said = module.verified_claims(token, keys=keys, issuer=ISSUER.issuer, audience=ISSUER.audience, now=now)
    return said is not None


@pytest.mark.parametrize("name", GOOD)
def test_a_good_token_is_taken(name: str) -> None:
    assert taken(jwt_verify, GOOD[name])


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_not_taken(name: str) -> None:
    assert not taken(jwt_verify, FORGED[name])


# Each check: the words of the verifier that make it, what stands there without it, and what is then let in.
CHECKS: Final = {
    "size": ("len(token) > MOST_BYTES or ", "", "over 8 KiB"),
    "headers": (" or not REFUSED_HEADERS.isdisjoint(header)", "", "embedded jwk, by the right key"),
    "crit": ('{"crit", ', "{", "crit of nothing"),
    "kind": ("shown is None or shown.kind != kind", "shown is None", "an ID token"),
    "key": ("keys.get(shown.kid)", "keys.get(shown.kid) or next(iter(keys.values()))", "kid unknown"),
    "kid letters": ("keys.get(shown.kid)", "keys.get(shown.kid.lower())", "kid in other letters"),
    "algorithm": (
        "registry = jws.JWSRegistry(algorithms=[self.algorithm], strict_check_header=False)",
        'registry = jws.JWSRegistry(algorithms=["ES256", "RS256", "PS256"], strict_check_header=False)',
        "another algorithm than its key's",
    ),
    "issuer": ('claims.get("iss") != issuer or ', "", "another issuer"),
    "issuer, all of it": (
        'claims.get("iss") != issuer',
        'not claims["iss"].startswith(issuer)',
        "an issuer that begins alike",
    ),
    "audience": (' or not _is_for(claims.get("aud"), audience)', "", "another audience"),
    "audience, all of it": ("else said == audience", "else said.startswith(audience)", "an audience that begins alike"),
    "expiry": ("at < expires + LEEWAY_S and ", "", "expired"),
    "beginning": ("begins - LEEWAY_S <= at and ", "", "begins later"),
    "issue": (" and issued - AHEAD_S <= at", "", "issued in the future"),
    "truth is no time": (" and not isinstance(value, bool)", "", "issued truly"),
    "subject": ("not isinstance(subject, str) or not subject or ", "", "an empty name"),
    "id token": (" or not ID_TOKEN_CLAIMS.isdisjoint(claims)", "", "about who signed in"),
    "signature": ("return claims if key.signed(shown.text) else None", "return claims", "a stranger's signature"),
}  # fmt: skip


def without(old: str, new: str) -> ModuleType:
    """The verifier with one of its checks taken out."""
    source = Path(jwt_verify.__file__).read_text()
    assert old in source, old
    changed = source.replace(old, new)
    if "JWSRegistry" in old:  # The algorithm is fixed twice over: before the signature is looked at, too.
        changed = changed.replace(" or shown.algorithm != key.algorithm", "")
    module = ModuleType("jwt_verify_changed")
    exec(compile(changed, "jwt_verify_changed", "exec"), module.__dict__)  # noqa: S102 - our own source, changed
    return module


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_keeps_something_out(name: str) -> None:
    old, new, let_in = CHECKS[name]
    changed = without(old, new)
    assert taken(changed, FORGED[let_in])
    assert all(taken(changed, token) for token in GOOD.values())


# -- over the wire


class Keys:
    """A server that publishes keys, and notes who asks."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {"keys": []}
        self.asked: list[str] = []


@pytest.fixture(scope="module")
def forger() -> Iterator[tuple[Keys, str]]:
    keys = Keys()

    class Handler(StubHandler):
        def _serve(self) -> None:
            keys.asked.append(self.path)
            self.say_json(200, keys.document)

        do_GET = _serve  # noqa: N815 - the name the parent calls

    with on_free_port(Handler) as url:
        yield keys, url


@pytest.fixture(scope="module")
def trusted(
    tmp_path_factory: pytest.TempPathFactory, forger: tuple[Keys, str]
) -> Iterator[tuple[HubProcess, TestIssuer]]:
    keys, url = forger
    folder = tmp_path_factory.mktemp("forged")
    issuer = TestIssuer("https://login.example", "https://hub.example", time.time())
    keys.document = issuer.jwks
    settings = folder / "hub.toml"
    settings.write_text(
        f'[[issuers]]\nissuer = "{issuer.issuer}"\njwks_uri = "{url}/issuer.json"\naudience = "{issuer.audience}"\n'
    )
    with running_hub(folder / "data", flags=("--config", str(settings))) as hub:
        yield hub, issuer
    assert tracebacks(hub) == []


def shown(hub: HubProcess, token: str) -> int:
    """The status that a token gets, from an address of its own: wrong ones are counted against theirs."""
    source = f"127.0.{next(_addresses) // 250}.{next(_addresses) % 250 + 1}"
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30, source_address=(source, 0))
    try:
        connection.request("GET", "/v1/agents", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        challenge = answer.getheader("WWW-Authenticate")
        assert (answer.status == 401) == (challenge is not None), challenge
        return answer.status
    finally:
        connection.close()


@pytest.mark.req("P-28")
def test_no_forged_token_of_a_trusted_issuer_opens_the_hub(
    trusted: tuple[HubProcess, TestIssuer], forger: tuple[Keys, str], figures: Figures
) -> None:
    hub, issuer = trusted
    keys, url = forger
    tried = forged(issuer, url)
    assert {name: shown(hub, token) for name, token in good(issuer).items()} == dict.fromkeys(GOOD, 200)
    accepted = [name for name, token in tried.items() if shown(hub, token) != 401]
    assert accepted == []
    assert set(keys.asked) == {"/issuer.json"}  # never where a token says
    figures("S4", forged_tokens=len(tried), accepted=len(accepted))


def test_no_forged_token_of_the_hubs_own_opens_it(trusted: tuple[HubProcess, TestIssuer], figures: Figures) -> None:
    hub, _ = trusted
    key = hub.new_key("a2a:call")
    form = f"grant_type=client_credentials&client_id={key.split('_')[1]}&client_secret={key}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""}
    real: str = hub.post("/oauth/token", form, headers).json["access_token"]
    assert shown(hub, real) == 200
    head, body, signature = real.split(".")
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, body))
    published = hub.get("/.well-known/jwks.json").json["keys"][0]
    assert (published["kid"], published["alg"]) == (header["kid"], "ES256")
    # Whoever has all but the hub's key: its public half, a good token, and keys of its own.
    own = TestIssuer(claims["iss"], claims["aud"], time.time())
    theirs = {"kid": header["kid"]}
    tried = [
        f"{b64(json.dumps({**header, 'alg': 'none'}).encode())}.{body}.",
        f"{head}.{body}.",
        f"{head}.{b64(json.dumps({**claims, 'scope': 'a2a:admin'}).encode())}.{signature}",
        f"{head}.{body}.{signature[:-4]}",
        own.with_secret(json.dumps(published).encode()),
        own.signed(own.key, theirs, claims),
        own.signed(own.key, {**theirs, "jwk": own.jwks["keys"][0]}, claims),
        own.signed(own.key, {"kid": KID, "jwk": own.jwks["keys"][0]}, claims),
        own.signed(own.key, {"kid": KID, "jku": "http://127.0.0.1:9/jwks.json"}, claims),
        own.signed(own.key, {"kid": "' OR '1'='1"}, claims),
    ]
    assert [shown(hub, token) for token in tried] == [401] * len(tried)
    figures("S4", forged_tokens=len(tried), accepted=0)
