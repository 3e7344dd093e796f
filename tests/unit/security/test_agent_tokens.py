"""The tokens that agents get when they connect: who takes one as what, and for how long."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman.model.json import JsonObject
from dragoman.security.tokens import (
    NAMES_CALLER,
    SigningKey,
    mint_agent_jwt,
    mint_hub_jwt,
    new_signing_key,
    public_jwks,
    verified_claims,
)

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
HUB = "https://hub.example"
KEY = new_signing_key()


def minted(key: SigningKey = KEY, **more: Any) -> str:
    claims: dict[str, Any] = {
        "issuer": HUB,
        "agent_id": "agt_a",
        "tenant": "acme",
        "scopes": ("a2a:receive", "a2a:call"),
        "key_id": "k1",
        "allow": ("x:*",),
        "now": NOW,
        **more,
    }
    return mint_agent_jwt(key, **claims)


def read(token: str, **more: Any) -> JsonObject | None:
    wanted: dict[str, Any] = {
        "jwks": public_jwks([KEY]),
        "issuer": HUB,
        "audience": HUB,
        "now": NOW,
        **more,
    }
    return verified_claims(token, **wanted)


def test_a_token_says_which_agent_it_is_and_what_it_may() -> None:
    claims = read(minted())
    assert claims is not None
    assert (claims["sub"], claims["tenant"], claims["scope"]) == ("agt_a", "acme", "a2a:call a2a:receive")
    assert (claims["key"], claims["allow"]) == ("k1", ["x:*"])
    bare = read(minted(key_id=None, allow=()))
    assert bare is not None and "key" not in bare and "allow" not in bare


@pytest.mark.parametrize(
    "wrong",
    [
        {"now": NOW + timedelta(minutes=15)},
        {"now": NOW - timedelta(minutes=1)},
        {"issuer": "https://other.example"},
        {"audience": "https://other.example"},
        {"kind": NAMES_CALLER},
        {"jwks": public_jwks([new_signing_key()])},
        {"jwks": {"keys": []}},
        {"jwks": {"keys": [{"kty": "oct"}]}},
    ],
)
def test_a_token_counts_only_where_and_when_it_is_meant(wrong: dict[str, Any]) -> None:
    assert read(minted()) is not None
    assert read(minted(), **wrong) is None


def test_the_hubs_word_to_an_agent_is_no_way_in() -> None:
    to_agent = mint_hub_jwt(KEY, issuer=HUB, subject="agt_a", audience=HUB, scope="a2a:call", chain=(), now=NOW)
    assert read(to_agent) is None
    assert read(to_agent, kind=NAMES_CALLER) is not None


def test_what_is_no_token_is_none() -> None:
    head, claims, signature = minted().split(".")
    unsigned = "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0"
    forged = (f"{head}.{claims}.", f"{unsigned}.{claims}.", f"{head}.{claims[:-2]}.{signature}", "a.b.c", "..", "")
    for token in (*forged, "x" * 10_000, "é.é.é", f"{head}.{claims}.{signature}.x"):
        assert read(token) is None
