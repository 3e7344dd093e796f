"""Answers that no application gives: the request was refused before it became one.

Each is a complete HTTP answer, made at import, that ends the connection. The codes are the hub's own; no dialect can
put them into its words, because which dialect the client speaks is not known yet.
"""

from http import HTTPStatus
from typing import Final

import msgspec


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """One way to say no: a code to count it by, and the bytes of the answer."""

    code: str
    status: int
    wire: bytes


class Refused(Exception):
    """Raised inside the parser to stop it; carries the answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


def refusal(status: HTTPStatus, code: str, message: str) -> Refusal:
    """The complete answer for that status."""
    body = msgspec.json.encode({"error": {"code": code, "message": message}})
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return Refusal(code=code, status=status.value, wire=head.encode("ascii") + body)


BAD_FRAMING: Final = refusal(HTTPStatus.BAD_REQUEST, "INVALID_REQUEST", "This is not a well-formed HTTP/1.1 request.")
BAD_HOST: Final = refusal(HTTPStatus.BAD_REQUEST, "INVALID_HOST", "Send exactly one Host header.")
BAD_TRANSFER_ENCODING: Final = refusal(
    HTTPStatus.BAD_REQUEST,
    "INVALID_TRANSFER_ENCODING",
    "The only transfer encoding taken is chunked, once, in HTTP/1.1.",
)
HEADER_TOO_LARGE: Final = refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADER_TOO_LARGE", "The header has too many lines or bytes."
)
URL_TOO_LONG: Final = refusal(HTTPStatus.REQUEST_URI_TOO_LONG, "URL_TOO_LONG", "The URL is too long.")
HEADER_TIMEOUT: Final = refusal(
    HTTPStatus.REQUEST_TIMEOUT, "REQUEST_TIMEOUT", "The header did not arrive in time; send the request again."
)
BODY_TIMEOUT: Final = refusal(
    HTTPStatus.REQUEST_TIMEOUT, "REQUEST_TIMEOUT", "The body did not arrive in time; send the request again."
)
