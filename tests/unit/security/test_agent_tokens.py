"""The tokens that agents get when they connect, and clients for their keys: who takes one as what, and for how long."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman.model.json import JsonObject
from dragoman.security.jwt_verify import published_keys, verified_claims
from dragoman.security.tokens import (
    NAMES_CALLER,
    SigningKey,
    mint_access_jwt,
    mint_hub_jwt,
    new_signing_key,
    public_jwks,
)

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
HUB = "https://hub.example"
KEY = new_signing_key()


def minted(key: SigningKey = KEY, **more: Any) -> str:
    claims: dict[str, Any] = {
        "issuer": HUB,
        "subject": "agt_a",
        "agent_id": "agt_a",
        "tenant": "acme",
        "scopes": ("a2a:receive", "a2a:call"),
        "client_id": "k1",
        "now": NOW,
        **more,
    }
    return mint_access_jwt(key, **claims)


def read(token: str, **more: Any) -> JsonObject | None:
    wanted: dict[str, Any] = {
        "keys": published_keys(public_jwks([KEY])),
        "issuer": HUB,
        "audience": HUB,
        "now": NOW,
        **more,
    }
    return verified_claims(token, **wanted)


def test_a_token_says_which_agent_it_is_and_what_it_may() -> None:
    claims = read(minted())
    assert claims is not None
    assert (claims["sub"], claims["tid"], claims["scope"]) == ("agt_a", "acme", "a2a:call a2a:receive")
    assert (claims["client_id"], claims["agent_id"]) == ("k1", "agt_a")
    bare = read(minted(client_id=None, agent_id=None))
    assert bare is not None and "client_id" not in bare and "agent_id" not in bare


@pytest.mark.parametrize(
    "wrong",
    [
        {"now": NOW + timedelta(minutes=15, seconds=30)},
        {"now": NOW - timedelta(seconds=61)},
        {"issuer": "https://other.example"},
        {"audience": "https://other.example"},
        {"kind": NAMES_CALLER},
        {"keys": published_keys(public_jwks([new_signing_key()]))},
        {"keys": published_keys({"keys": []})},
        {"keys": published_keys({"keys": [{"kty": "oct"}]})},
    ],
)
def test_a_token_counts_only_where_and_when_it_is_meant(wrong: dict[str, Any]) -> None:
    assert read(minted()) is not None
    assert read(minted(), **wrong) is None


@pytest.mark.parametrize("seconds", [-60, 0, 15 * 60 + 29])
def test_clocks_may_differ_a_little(seconds: int) -> None:
    assert read(minted(), now=NOW + timedelta(seconds=seconds)) is not None


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
