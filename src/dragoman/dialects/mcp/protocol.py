"""The Model Context Protocol's own words, which both halves use: revisions, headers, and what stands in `_meta`.

until 2025-11-25   a handshake opens a session; what is cancelled is told so
from 2026-07-28    every request stands for itself; who closes a stream cancels what it was for
"""

import re
from base64 import b64encode
from typing import Final

import msgspec

from dragoman.model.http import JSON_TYPE, Headers
from dragoman.model.json import Json, JsonObject, is_object

SLUG: Final = "mcp"

SESSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # revisions that begin by a handshake
ALONE: Final = ("2026-07-28",)  # revisions whose every request stands for itself
NEWEST_SESSION: Final = SESSIONS[-1]
NEWEST_ALONE: Final = ALONE[-1]
UNSAID: Final = "2025-03-26"  # what is spoken by who names no revision (2025-06-18, Transports)

VERSION_HEADER: Final = b"mcp-protocol-version"
SESSION_HEADER: Final = b"mcp-session-id"
METHOD_HEADER: Final = b"mcp-method"
NAME_HEADER: Final = b"mcp-name"

META: Final = "_meta"
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 - the protocol's word for what progress is told under
TRACE_MEMBERS: Final = ("traceparent", "tracestate")

UNSUPPORTED_VERSION: Final = -32022
HEADER_MISMATCH: Final = -32020
INVALID_PARAMS: Final = -32602

HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"accept": b"application/json, text/event-stream"}
_PLAIN: Final = re.compile(r"(?!=\?base64\?)[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_encode = msgspec.json.Encoder().encode


def header_value(text: str) -> bytes:
    """A name as it stands in a header: as it is, or in base64 where a header could not hold it so."""
    if _PLAIN.fullmatch(text) is not None:
        return text.encode()
    return b"=?base64?" + b64encode(text.encode()) + b"?="


def request_bytes(method: str, request_id: str, params: JsonObject) -> bytes:
    """One request."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_bytes(method: str, params: JsonObject | None = None) -> bytes:
    """One notification, which wants no answer."""
    shown: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        shown["params"] = params
    return _encode(shown)


def member(value: Json, name: str) -> JsonObject:
    """An object inside an object; an empty one where there is none."""
    found: Json = value.get(name) if is_object(value) else None
    return found if is_object(found) else {}


def text_in(value: JsonObject, name: str) -> str:
    """A text inside an object; an empty one where there is none."""
    found: Json = value.get(name)
    return found if isinstance(found, str) else ""
