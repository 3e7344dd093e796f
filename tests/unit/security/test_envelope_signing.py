"""Signatures on envelopes, made here and checked by hand, and the other way round."""

import base64
import json
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from dragoman.security.envelope_signing import new_sender_key, sender_keys, sign_envelope, verify_envelope

ENVELOPE: Final[dict[str, Any]] = {
    "version": "1.0.0",
    "to": "b",
    "from": "a",
    "payload": {"z": [1, True, None], "a": "\u20ac\n"},
    "signature": None,
}
CANONICAL: Final = '{"from":"a","payload":{"a":"\u20ac\\n","z":[1,true,null]},"to":"b","version":"1.0.0"}'.encode()
SEED: Final = bytes(range(32))


def _jwk(raw: bytes, **more: str) -> dict[str, Any]:
    x = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return {"kty": "OKP", "crv": "Ed25519", "x": x, **more}


@pytest.mark.req("E-32")
def test_what_is_signed_is_the_canonical_form_of_all_but_the_signature() -> None:
    by_hand = Ed25519PrivateKey.from_private_bytes(SEED)
    signature = base64.b64encode(by_hand.sign(CANONICAL)).decode()
    public = _jwk(by_hand.public_key().public_bytes_raw())
    for body in (ENVELOPE, {**ENVELOPE, "signature": signature}, dict(reversed(ENVELOPE.items()))):
        assert verify_envelope(json.dumps(body, indent=2).encode(), signature, [public])
    private, own = new_sender_key("k1")
    signed = sign_envelope(ENVELOPE, private)
    key = Ed25519PrivateKey.from_private_bytes(_seed(private.reveal()))
    key.public_key().verify(base64.b64decode(signed["signature"]), CANONICAL)
    assert verify_envelope(json.dumps(signed).encode(), signed["signature"], [public, own])
    assert not verify_envelope(json.dumps(signed).encode(), signed["signature"], [public])


@pytest.mark.req("E-32")
@given(member=st.sampled_from(["version", "to", "from", "payload", "extra"]), value=st.integers(0, 9))
def test_no_member_can_be_changed(member: str, value: int) -> None:
    private, public = new_sender_key("k1")
    signed = sign_envelope(ENVELOPE, private)
    assert not verify_envelope(json.dumps({**signed, member: value}).encode(), signed["signature"], [public])


@pytest.mark.parametrize("signature", ["", "AAAA", "no base64", "A" * 88, "é" * 88])
def test_rubbish_is_no_signature(signature: str) -> None:
    _, public = new_sender_key("k1")
    assert not verify_envelope(json.dumps(ENVELOPE).encode(), signature, [public])


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b'{"n": 18014398509481985}', b"\xff"])
def test_what_has_no_canonical_form_is_not_signed(body: bytes) -> None:
    _, public = new_sender_key("k1")
    assert not verify_envelope(body, base64.b64encode(bytes(64)).decode(), [public])


def test_only_keys_to_sign_with_count() -> None:
    _, public = new_sender_key("k1")
    broken = _jwk(b"short")
    others = ({**public, "use": "enc"}, {**public, "crv": "X25519"}, {"kty": "RSA"})
    assert sender_keys([*others, public, broken]) == (public, broken)
    private, own = new_sender_key("k2")
    signed = sign_envelope(ENVELOPE, private)
    assert verify_envelope(json.dumps(signed).encode(), signed["signature"], [broken, own])


def _seed(private_jwk: str) -> bytes:
    d = json.loads(private_jwk)["d"]
    return base64.urlsafe_b64decode(d + "=" * (-len(d) % 4))
