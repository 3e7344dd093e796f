"""Signatures: the published vector, an independent library, and everything that must not pass."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from dragoman.model.secret import Secret
from dragoman.security.signing import (
    Checked,
    SignatureProblem,
    check,
    new_signing_secret,
    sign_headers,
    verify_webhook,
    verify_x_signature,
    webhook_signature,
    x_signature,
)

VECTOR: dict[str, str] = json.loads(Path(__file__).with_name("signature-vector.json").read_text())
SECRET = Secret(VECTOR["secret"])
BODY = VECTOR["raw_body"].encode()
AT = int(VECTOR["webhook-timestamp"])
NOW = datetime.fromtimestamp(AT, UTC)
OTHER = new_signing_secret(bytes(range(32)))


def signed(body: bytes = BODY, *, at: int = AT) -> dict[bytes, bytes]:
    return sign_headers(SECRET, id=VECTOR["webhook-id"], timestamp=at, body=body)


def without(headers: dict[bytes, bytes], *prefixes: bytes) -> dict[bytes, bytes]:
    return {name: value for name, value in headers.items() if not name.startswith(prefixes)}


def test_both_forms_equal_the_published_vector() -> None:
    names = ("x-signature", "x-timestamp", "webhook-id", "webhook-timestamp", "webhook-signature")
    assert signed() == {name.encode(): VECTOR[name].encode() for name in names}


@given(body=st.text(max_size=300), secret=st.binary(min_size=32, max_size=32))
def test_the_standard_webhooks_library_makes_the_same_signature(body: str, secret: bytes) -> None:
    ours = new_signing_secret(secret)
    theirs = Webhook(ours.reveal())
    assert webhook_signature(ours, "msg_1", AT, body.encode()) == theirs.sign("msg_1", NOW, body)


def test_the_standard_webhooks_library_accepts_ours_and_we_accept_its() -> None:
    library = Webhook(SECRET.reveal())
    now = datetime.now(UTC)
    headers = sign_headers(SECRET, id="msg_1", timestamp=int(now.timestamp()), body=BODY)
    text = {name.decode(): value.decode() for name, value in headers.items()}
    assert library.verify(BODY, text) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        library.verify(BODY + b" ", text)
    theirs = {
        b"webhook-id": b"msg_2",
        b"webhook-timestamp": b"%d" % int(now.timestamp()),
        b"webhook-signature": library.sign("msg_2", now, BODY.decode()).encode(),
    }
    assert check(theirs, BODY, secrets=[SECRET], now=now) == Checked(marks=("webhook-id msg_2",))


def test_a_new_secret_holds_its_32_bytes() -> None:
    text = new_signing_secret(b"x" * 32).reveal()
    assert text.startswith("whsec_") and base64.b64decode(text[6:]) == b"x" * 32
    with pytest.raises(ValueError, match="32 random bytes, got 31"):
        new_signing_secret(b"x" * 31)


def test_during_rotation_the_second_form_carries_both_and_the_first_the_new_one() -> None:
    headers = sign_headers(OTHER, id="cb_1", timestamp=AT, body=BODY, previous=SECRET)
    assert headers[b"webhook-signature"].count(b"v1,") == 2
    for secrets in ([OTHER], [SECRET]):
        assert check(without(headers, b"x-"), BODY, secrets=secrets, now=NOW).problem is None
    assert headers[b"x-signature"] == x_signature(OTHER, BODY).encode()


def test_a_receiver_that_rotates_takes_both_secrets() -> None:
    assert check(signed(), BODY, secrets=[OTHER, SECRET], now=NOW).problem is None
    assert check(signed(), BODY, secrets=[OTHER], now=NOW).problem is SignatureProblem.INVALID
    assert check(signed(), BODY, secrets=[], now=NOW).problem is SignatureProblem.INVALID


@pytest.mark.parametrize("form", [b"x-", b"webhook-"])
@pytest.mark.parametrize(
    ("off_s", "problem"),
    [
        (299, None),
        (-299, None),
        (300, None),
        (301, SignatureProblem.OUT_OF_RANGE),
        (-301, SignatureProblem.OUT_OF_RANGE),
    ],
)
def test_a_signature_counts_for_300_seconds_either_way(
    form: bytes, off_s: int, problem: SignatureProblem | None
) -> None:
    headers = {name: value for name, value in signed().items() if name.startswith(form)}
    assert check(headers, BODY, secrets=[SECRET], now=NOW + timedelta(seconds=off_s)).problem is problem


@pytest.mark.parametrize(
    "timestamp", [b"", b"+1704979200", b" 1704979200", b"1_704979200", b"17e8", b"9" * 40, b"\xd9\xa1"]
)
def test_an_odd_timestamp_is_out_of_range_or_unsigned(timestamp: bytes) -> None:
    first = {**without(signed(), b"webhook-"), b"x-timestamp": timestamp}
    second = {**without(signed(), b"x-"), b"webhook-timestamp": timestamp}
    assert check(first, BODY, secrets=[SECRET], now=NOW).problem is SignatureProblem.OUT_OF_RANGE
    assert check(second, BODY, secrets=[SECRET], now=NOW).problem is SignatureProblem.INVALID


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-signature", b"sha256=" + b"0" * 64),
        (b"x-signature", b""),
        (b"x-signature", VECTOR["x-signature"].upper().encode()),
        (b"webhook-signature", b"v1,"),
        (b"webhook-signature", b""),
        (b"webhook-signature", VECTOR["webhook-signature"].encode()[:-1]),
        (b"webhook-signature", VECTOR["webhook-signature"].replace("v1,", "v1a,").encode()),
        (b"webhook-signature", b"\xff\xfe"),
        (b"webhook-id", b"cb_a2a_call_abc124"),
        (b"webhook-id", b""),
        (b"webhook-timestamp", b"1704979201"),
    ],
)
def test_one_wrong_form_spoils_the_other(name: bytes, value: bytes) -> None:
    headers = {**signed(), name: value}
    assert check(headers, BODY, secrets=[SECRET], now=NOW).problem is SignatureProblem.INVALID


@given(at=st.integers(0, len(BODY) - 1), bit=st.integers(0, 7))
def test_no_edited_body_passes_either_form(at: int, bit: int) -> None:
    edited = BODY[:at] + bytes([BODY[at] ^ 1 << bit]) + BODY[at + 1 :]
    headers = signed()
    assert not verify_x_signature([SECRET], headers[b"x-signature"], edited)
    id, timestamp, signature = headers[b"webhook-id"], headers[b"webhook-timestamp"], headers[b"webhook-signature"]
    assert verify_webhook([SECRET], id=id, timestamp=timestamp, signature=signature, body=BODY)
    assert not verify_webhook([SECRET], id=id, timestamp=timestamp, signature=signature, body=edited)


def test_an_unsigned_request_passes_unless_one_is_required() -> None:
    assert check({}, BODY, secrets=[SECRET], now=NOW) == Checked()
    assert check({}, BODY, secrets=[SECRET], now=NOW, strict=True) == Checked()
    assert check({}, BODY, secrets=[SECRET], now=NOW, required=True).problem is SignatureProblem.MISSING


def test_where_one_is_required_or_in_strict_mode_only_the_second_form_counts() -> None:
    first, second = without(signed(), b"webhook-"), without(signed(), b"x-")
    assert check(first, BODY, secrets=[SECRET], now=NOW).problem is None
    assert check(first, BODY, secrets=[SECRET], now=NOW, required=True).problem is SignatureProblem.MISSING
    assert check(first, BODY, secrets=[SECRET], now=NOW, strict=True).problem is SignatureProblem.MISSING
    assert check(second, BODY, secrets=[SECRET], now=NOW, required=True, strict=True).problem is None
    assert check(signed(), BODY, secrets=[SECRET], now=NOW, required=True, strict=True).problem is None


def test_a_copy_stripped_to_the_first_form_leaves_a_mark_that_was_seen() -> None:
    whole = check(signed(), BODY, secrets=[SECRET], now=NOW)
    stripped = check(without(signed(), b"webhook-"), BODY, secrets=[SECRET], now=NOW)
    assert len(whole.marks) == 2
    assert set(stripped.marks) <= set(whole.marks) and stripped.marks


@pytest.mark.parametrize("id", ["", "a b", "a\r\nx: y", "é"])
def test_an_id_that_does_not_fit_a_header_is_not_signed(id: str) -> None:
    with pytest.raises(ValueError, match="webhook-id"):
        sign_headers(SECRET, id=id, timestamp=AT, body=BODY)


@pytest.mark.parametrize("text", ["whsec_a", "whsec_!!!!", "MDEyMzQ1"])
def test_a_broken_secret_is_named_but_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="signing secret") as error:
        webhook_signature(Secret(text), "id", AT, BODY)
    assert text not in str(error.value)
