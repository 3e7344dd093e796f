"""The hub's tokens towards agents, read back by the library an agent would use."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError
from joserfc.jwk import ECKey, KeySet, KeySetSerialization

from dragoman.security.tokens import (
    HubTokens,
    SigningKey,
    mint_hub_jwt,
    new_signing_key,
    public_jwks,
    restore_signing_key,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = new_signing_key()
OTHER = new_signing_key()


def published(*keys: SigningKey) -> KeySet:
    document = msgspec.convert(public_jwks(keys), type=KeySetSerialization)
    return KeySet.import_key_set(document)


def mint(chain: tuple[str, ...] = ("agt_a", "agt_b"), now: datetime = NOW) -> str:
    return mint_hub_jwt(
        KEY,
        issuer="https://hub.example",
        subject="agt_b",
        audience="agt_t",
        scope="a2a:call",
        chain=chain,
        now=now,
    )


def read(token: str, *keys: SigningKey) -> jwt.Token:
    return jwt.decode(token, published(*keys or (KEY,)), algorithms=["ES256"])


def tokens(*, most: int = 10) -> HubTokens:
    return HubTokens(lambda _: KEY, issuer="https://hub.example", most=most)


def ask(kept: HubTokens, subject: str = "agt_a", after_s: float = 0, scope: str = "a2a:call") -> str:
    now = NOW + timedelta(seconds=after_s)
    return kept.token(subject=subject, audience="agt_t", scope=scope, chain=(subject,), now=now)


def test_an_agent_can_check_a_hub_token_with_the_published_keys() -> None:
    token = read(mint(), OTHER, KEY)
    issued = int(NOW.timestamp())
    assert token.header == {"alg": "ES256", "typ": "JWT", "kid": KEY.kid}
    jti = token.claims.pop("jti")
    assert len(jti) == 32
    assert token.claims == {
        "iss": "https://hub.example",
        "sub": "agt_b",
        "aud": "agt_t",
        "scope": "a2a:call",
        "iat": issued,
        "exp": issued + 60,
        "act": {"sub": "agt_b", "act": {"sub": "agt_a"}},
    }


def test_a_first_caller_has_no_chain_and_every_token_its_own_id() -> None:
    one, other = read(mint(())), read(mint(()))
    assert "act" not in one.claims
    assert one.claims["jti"] != other.claims["jti"]


def test_another_hubs_key_does_not_verify() -> None:
    forged = SigningKey(kid=KEY.kid, private_jwk=OTHER.private_jwk)
    token = mint_hub_jwt(forged, issuer="i", subject="s", audience="a", scope="", chain=(), now=NOW)
    with pytest.raises(BadSignatureError):
        read(token)


def test_the_public_keys_hold_nothing_private() -> None:
    document = public_jwks([KEY, OTHER])
    private = msgspec.json.decode(KEY.private_jwk.reveal(), type=dict[str, str])
    assert [key["kid"] for key in document["keys"]] == [KEY.kid, OTHER.kid]
    assert set(document["keys"][0]) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
    assert private["d"] not in msgspec.json.encode(document).decode()
    assert private["d"] not in repr(KEY)


def test_the_key_id_is_the_rfc_7638_thumbprint() -> None:
    members = msgspec.json.decode(KEY.private_jwk.reveal(), type=dict[str, str | list[str]])
    assert ECKey.import_key(members).thumbprint() == KEY.kid


def test_a_stored_key_is_restored_whole() -> None:
    assert restore_signing_key(KEY.private_jwk) == KEY


def test_a_token_is_kept_for_half_its_life() -> None:
    kept = tokens()
    first = ask(kept)
    assert ask(kept, after_s=29.9) == first
    second = ask(kept, after_s=30)
    assert second != first
    assert ask(kept, after_s=59) == second


def test_a_clock_set_back_makes_a_new_token() -> None:
    kept = tokens()
    first = ask(kept)
    assert read(ask(kept, after_s=-3600)).claims["iat"] == int(NOW.timestamp()) - 3600
    assert ask(kept) != first


def test_callers_scopes_and_chains_never_share_a_token() -> None:
    kept = tokens()
    made = {ask(kept), ask(kept, "agt_b"), ask(kept, scope="a2a:call a2a:receive")}
    made.add(kept.token(subject="agt_a", audience="agt_u", scope="a2a:call", chain=("agt_a",), now=NOW))
    made.add(kept.token(subject="agt_a", audience="agt_t", scope="a2a:call", chain=("agt_x", "agt_a"), now=NOW))
    assert len(made) == 5


def test_at_its_bound_the_oldest_token_goes() -> None:
    kept = tokens(most=3)
    a, b = ask(kept, "agt_a"), ask(kept, "agt_b", after_s=20)
    renewed = ask(kept, "agt_a", after_s=40)
    ask(kept, "agt_c", after_s=40)
    ask(kept, "agt_d", after_s=40)
    assert a != renewed == ask(kept, "agt_a", after_s=41)
    assert ask(kept, "agt_b", after_s=41) != b


def test_a_new_signing_key_signs_what_comes_next_and_all_once_the_old_one_is_not_trusted() -> None:
    signing = [KEY]
    kept = HubTokens(lambda _: signing[-1], issuer="https://hub.example", most=10)
    before = ask(kept)
    signing.append(OTHER)
    assert ask(kept) == before
    assert read(ask(kept, "agt_b"), OTHER).header["kid"] == OTHER.kid
    kept.forget()
    assert read(ask(kept), OTHER).header["kid"] == OTHER.kid
