"""Encrypted payloads: they open for their target and their message, and for nothing else."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe
from joserfc.jwk import ECKey, OKPKey

from dragoman.model.secret import Secret
from dragoman.security.jwe import NotDecrypted, decrypt_payload, encrypt_payload, new_sealing_key

SENDER, TO, ID = "alice", "bob", "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b01"
BOUND: Final = {"sender": SENDER, "to": TO, "message_id": ID}
PAYLOAD: Final[dict[str, Any]] = {
    "task_id": "t1",
    "task_type": "echo",
    "title": "secret",
    "description": "more",
    "payload": {"n": 1},
    "priority": "high",
}
PRIVATE, PUBLIC = new_sealing_key("k1")


def _p256() -> tuple[Secret, dict[str, Any]]:
    key = ECKey.generate_key("P-256", private=True)
    named = {"kid": "p1", "use": "enc"}
    return Secret(json.dumps({**key.as_dict(private=True), **named})), {**key.as_dict(private=False), **named}


@pytest.mark.parametrize("algorithm", ["ECDH-ES", "ECDH-ES+A256KW"])
@pytest.mark.parametrize("pair", [(PRIVATE, PUBLIC), _p256()], ids=["X25519", "P-256"])
def test_what_was_encrypted_opens_for_its_message(pair: tuple[Secret, dict[str, Any]], algorithm: str) -> None:
    sealed = encrypt_payload(PAYLOAD, pair[1], **BOUND, algorithm=algorithm)
    assert set(sealed) == {"jwe", "task_id", "task_type", "priority"}
    assert "secret" not in json.dumps(sealed)
    assert decrypt_payload(sealed, pair[0], **BOUND) == PAYLOAD
    assert decrypt_payload(sealed, [new_sealing_key("k0")[0], pair[0]], **BOUND) == PAYLOAD


@pytest.mark.parametrize("moved", [{"sender": "mallory"}, {"to": "carol"}, {"message_id": "other"}])
def test_it_does_not_open_in_another_message(moved: dict[str, str]) -> None:
    sealed = encrypt_payload(PAYLOAD, PUBLIC, **BOUND)
    with pytest.raises(NotDecrypted, match="another message"):
        decrypt_payload(sealed, PRIVATE, **{**BOUND, **moved})


@pytest.mark.parametrize(("name", "value"), [("sender", "mallory"), ("message_id", "other")])
def test_nor_when_its_header_is_edited_to_fit(name: str, value: str) -> None:
    sealed = encrypt_payload(PAYLOAD, PUBLIC, **BOUND)
    moved = {**BOUND, name: value}
    edited = _with_header(sealed["jwe"], apu=_text(moved["sender"]), apv=_text(f"{TO}.{moved['message_id']}"))
    with pytest.raises(NotDecrypted, match="does not open"):
        decrypt_payload({**sealed, "jwe": edited}, PRIVATE, **moved)


@given(at=st.integers(min_value=0), bit=st.integers(0, 5))
def test_no_edited_byte_passes(at: int, bit: int) -> None:
    sealed = encrypt_payload(PAYLOAD, PUBLIC, **BOUND)
    compact = bytearray(sealed["jwe"].encode())
    place = at % len(compact)
    compact[place] ^= 1 << bit
    text = compact.decode("latin-1")
    if _same_pieces(text, sealed["jwe"]):
        return  # Of the last letter of a piece some bits mean nothing.
    with pytest.raises(NotDecrypted):
        decrypt_payload({**sealed, "jwe": text}, PRIVATE, **BOUND)


def test_what_stands_in_clear_equals_what_was_encrypted() -> None:
    sealed = encrypt_payload(PAYLOAD, PUBLIC, **BOUND)
    for edit in ({"task_id": "t2"}, {"priority": "low"}, {"deadline": "2026-01-01T00:00:00Z"}, {"title": "secret"}):
        with pytest.raises(NotDecrypted, match="plaintext"):
            decrypt_payload({**sealed, **edit}, PRIVATE, **BOUND)


@pytest.mark.parametrize(
    ("header", "key", "allowed"),
    [
        ({"zip": "DEF"}, OKPKey.import_key(PUBLIC), ["ECDH-ES", "A256GCM", "DEF"]),
        ({"enc": "A128GCM"}, OKPKey.import_key(PUBLIC), ["ECDH-ES", "A128GCM"]),
        ({"enc": "A256CBC-HS512"}, OKPKey.import_key(PUBLIC), ["ECDH-ES", "A256CBC-HS512"]),
        ({"alg": "ECDH-ES+A128KW"}, OKPKey.import_key(PUBLIC), ["ECDH-ES+A128KW", "A256GCM"]),
        ({"kid": "other"}, OKPKey.import_key(PUBLIC), ["ECDH-ES", "A256GCM"]),
    ],
    ids=["zip", "A128GCM", "CBC", "A128KW", "kid"],
)
def test_no_other_way_of_encrypting_is_taken(header: dict[str, str], key: Any, allowed: list[str]) -> None:
    whole = {"alg": "ECDH-ES", "enc": "A256GCM", "kid": "k1", "apu": _text(SENDER), "apv": _text(f"{TO}.{ID}")}
    compact = jwe.encrypt_compact({**whole, **header}, msgspec.json.encode(PAYLOAD), key, algorithms=allowed)
    with pytest.raises(NotDecrypted, match=r"expected|for the key"):
        decrypt_payload({"jwe": compact}, PRIVATE, **BOUND)


@pytest.mark.parametrize("alg", ["dir", "A256KW", "RSA-OAEP", "PBES2-HS256+A128KW", "none"])
def test_the_algorithm_is_none_that_the_message_chooses(alg: str) -> None:
    sealed = encrypt_payload(PAYLOAD, PUBLIC, **BOUND)
    with pytest.raises(NotDecrypted, match="expected alg"):
        decrypt_payload({**sealed, "jwe": _with_header(sealed["jwe"], alg=alg)}, PRIVATE, **BOUND)


@pytest.mark.parametrize(
    "payload", [{}, {"jwe": 7}, {"jwe": ""}, {"jwe": "a.b.c"}, {"jwe": "a.b.c.d.e"}, {"jwe": "é....."}]
)
def test_rubbish_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(NotDecrypted):
        decrypt_payload(payload, PRIVATE, **BOUND)


def test_a_key_of_another_kind_is_no_key_to_encrypt_with() -> None:
    for key in ({**PUBLIC, "crv": "Ed25519"}, {"kty": "oct", "k": "AAAA", "kid": "k"}, {**PUBLIC, "kid": None}):
        with pytest.raises(ValueError, match="key"):
            encrypt_payload(PAYLOAD, key, **BOUND)


def _text(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _with_header(compact: str, **edits: str) -> str:
    first, *rest = compact.split(".")
    header = json.loads(urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    return ".".join([_text(json.dumps({**header, **edits})), *rest])


def _same_pieces(one: str, other: str) -> bool:
    def pieces(text: str) -> list[bytes]:
        return [urlsafe_b64decode(piece.encode("latin-1") + b"==") for piece in text.split(".")]

    try:
        return pieces(one) == pieces(other)
    except ValueError:
        return False
