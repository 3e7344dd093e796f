"""Signatures of requests and callbacks, two forms over the raw body, and how they are checked.

    X-Signature: sha256=<hex>      keyed with the secret as text; does not cover the time, so it can be replayed
    webhook-signature: v1,<base64> Standard Webhooks: keyed with the decoded secret, over "id.timestamp.body"

Needs only the base install: agents use it too. Whether a mark was seen before is for the caller to look up.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from dragoman.model.http import Headers
from dragoman.model.secret import Secret

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
WINDOW_S: Final = 300  # how far a timestamp may lie from now, either way
REMEMBER_S: Final = 600  # how long a mark must be remembered: the whole width of the window
_WEBHOOK: Final = "webhook-id "


class SignatureProblem(StrEnum):
    """Why a signed request is refused, in the words of the answer."""

    MISSING = "signature_missing"
    INVALID = "signature_invalid"
    OUT_OF_RANGE = "timestamp_out_of_range"
    REPLAYED = "replayed"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a check: a problem, or the marks that must not have been seen before (none: unsigned)."""

    problem: SignatureProblem | None = None
    marks: tuple[str, ...] = ()

    @property
    def covers_time(self) -> bool:
        """Whether a signature of the second form is there, and right."""
        return any(mark.startswith(_WEBHOOK) for mark in self.marks)


def new_signing_secret(random: bytes) -> Secret:
    """`whsec_` and the base64 of 32 random bytes."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a signing secret is made of {SECRET_BYTES} random bytes, got {len(random)}")
    return Secret(PREFIX + base64.b64encode(random).decode())


def x_signature(secret: Secret, body: bytes) -> str:
    """The value of X-Signature."""
    return "sha256=" + hmac.new(secret.reveal().encode(), body, "sha256").hexdigest()


def webhook_signature(secret: Secret, id: str, timestamp: int, body: bytes) -> str:
    """One value of webhook-signature; raises ValueError for a secret that is not `whsec_` and base64."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_webhook_key(secret), signed, "sha256")).decode()


def sign_headers(
    secret: Secret, *, id: str, timestamp: int, body: bytes, previous: Secret | None = None
) -> dict[bytes, bytes]:
    """Both forms; while a secret is being rotated, `previous` signs the second form beside the new one."""
    return {
        b"x-signature": x_signature(secret, body).encode(),
        b"x-timestamp": str(timestamp).encode(),
        **webhook_headers(secret, id=id, timestamp=timestamp, body=body, previous=previous),
    }


def webhook_headers(
    secret: Secret, *, id: str, timestamp: int, body: bytes, previous: Secret | None = None
) -> dict[bytes, bytes]:
    """The second form alone: what a caller signs its requests with, each under an id of its own."""
    if not id or not id.isascii() or not id.isprintable() or " " in id:
        raise ValueError(f"a webhook-id is visible ASCII, got {id!r}")
    signatures = [webhook_signature(each, id, timestamp, body) for each in (secret, previous) if each is not None]
    return {
        b"webhook-id": id.encode(),
        b"webhook-timestamp": str(timestamp).encode(),
        b"webhook-signature": " ".join(signatures).encode(),
    }


def verify_x_signature(secrets: Sequence[Secret], signature: bytes, body: bytes) -> bool:
    """Whether an X-Signature is right under any of the secrets, in constant time."""
    # All are tried, so that the time does not tell which secret is in use.
    return any([hmac.compare_digest(x_signature(secret, body).encode(), signature) for secret in secrets])


def verify_webhook(secrets: Sequence[Secret], *, id: bytes, timestamp: bytes, signature: bytes, body: bytes) -> bool:
    """Whether one of the `v1` values of webhook-signature is right under any of the secrets; others are ignored."""
    signed = id + b"." + timestamp + b"." + body
    right = [b"v1," + base64.b64encode(hmac.digest(_webhook_key(secret), signed, "sha256")) for secret in secrets]
    given = [value for value in signature.split(b" ") if value.startswith(b"v1,")]
    return any([hmac.compare_digest(a, b) for a in right for b in given[:8]])


def check(
    headers: Headers,
    body: bytes,
    *,
    secrets: Sequence[Secret],
    now: datetime,
    required: bool = False,
    strict: bool = False,
) -> Checked:
    """Check every signature that is present, signature before time.

    `required`: there must be one, of the second form. `strict`: the first form alone is never enough.
    """
    webhook, first_form = headers.get(b"webhook-signature"), headers.get(b"x-signature")
    if webhook is None and (required or (strict and first_form is not None)):
        return Checked(problem=SignatureProblem.MISSING)
    marks: list[str] = []
    if webhook is not None:
        id, timestamp = headers.get(b"webhook-id", b""), headers.get(b"webhook-timestamp", b"")
        if not id or not verify_webhook(secrets, id=id, timestamp=timestamp, signature=webhook, body=body):
            return Checked(problem=SignatureProblem.INVALID)
        if not _in_window(timestamp, now):
            return Checked(problem=SignatureProblem.OUT_OF_RANGE)
        marks.append(_WEBHOOK + id.decode("latin-1"))
    if first_form is not None:
        timestamp = headers.get(b"x-timestamp", b"")
        if not verify_x_signature(secrets, first_form, body):
            return Checked(problem=SignatureProblem.INVALID)
        if not _in_window(timestamp, now):
            return Checked(problem=SignatureProblem.OUT_OF_RANGE)
        # Also beside webhook-id: else a copy stripped of its webhook headers would pass as a new request.
        marks.append(f"x-signature {first_form.decode('latin-1')} {timestamp.decode('latin-1')}")
    return Checked(marks=tuple(marks))


def _webhook_key(secret: Secret) -> bytes:
    text = secret.reveal()
    if not text.startswith(PREFIX):
        raise ValueError("a signing secret begins with whsec_")
    try:
        return base64.b64decode(text[len(PREFIX) :], validate=True)
    except binascii.Error:
        # Without the cause: its traceback could show the secret.
        raise ValueError("a signing secret is whsec_ and base64") from None


def _in_window(timestamp: bytes, now: datetime) -> bool:
    # Digits only: int() also takes signs, blanks and underscores.
    if not timestamp.isdigit() or len(timestamp) > 12:
        return False
    return abs(now.timestamp() - int(timestamp)) <= WINDOW_S
