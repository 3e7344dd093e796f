"""The document's validation rules: first the envelope, then the payload that its type demands.

Whether somebody has the id that `from` or `to` names is not checked here: that needs the registry.
"""

from datetime import datetime
from hashlib import sha256
from typing import Final, TypeVar

import msgspec

from dragoman.dialects.envelope.wire import TYPES, VERSION, Envelope, read_moment, read_party
from dragoman.dialects.uuids import is_uuid4
from dragoman.model.errors import BadFrame, BadParams, DragomanError, NotJson, UnknownMethod, VersionNotSupported
from dragoman.model.json import Json, JsonObject

MAX_MESSAGE_ID: Final = 128

Shape = TypeVar("Shape")

_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_any = msgspec.json.Decoder().decode
_SHORT: Final = {"Object missing required field `": "required", "Object contains unknown field `": "unknown field"}


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """An envelope whose own members are in order."""

    message_id: str
    at: datetime  # by the sender's clock
    sender: str
    to: str
    type: str
    payload: msgspec.Raw
    written: tuple[str, str]  # `from` and `to`, letter for letter
    signature: str | None

    @property
    def key(self) -> str:
        """What makes the message the same one when it comes again."""
        return f"{self.sender} {self.message_id}"

    @property
    def digest(self) -> bytes:
        """What it says, to tell a repeat from another message under the same id."""
        return sha256(self.type.encode() + b"\n" + bytes(self.payload)).digest()


def decoded(body: bytes) -> Envelope:
    """The envelope, its members unseen. Raises NotJson, BadFrame."""
    try:
        return _decode_envelope(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # Out here, or the decoder's error would hang on the next one, and on that every frame that holds the body.
    problem: DragomanError = NotJson()
    try:
        _decode_any(body)
        problem = BadFrame("A message is one JSON object.")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    raise problem


def checked(envelope: Envelope, *, lenient_ids: bool) -> Checked:
    """The envelope with every member in order. Raises VersionNotSupported, BadFrame, UnknownMethod."""
    if envelope.version is not None and envelope.version != VERSION:
        raise VersionNotSupported(f"version: only {VERSION} is spoken here.", supported_versions=[VERSION])
    _refuse_missing(envelope)
    message_id = _message_id(envelope.message_id, lenient=lenient_ids)
    at = read_moment(envelope.timestamp)
    if at is None or at.tzinfo is None:
        raise _wrong("timestamp", "ISO 8601, date and time with Z or an offset")
    sender, to = _party("from", envelope.sender), _party("to", envelope.to)
    if envelope.type not in TYPES:
        raise UnknownMethod(f"type: one of {', '.join(TYPES)}", supported_types=list(TYPES))
    if not bytes(envelope.payload).startswith(b"{"):
        raise _wrong("payload", "a JSON object")
    if envelope.signature is not None and not isinstance(envelope.signature, str):
        raise _wrong("signature", "text, or null")
    return Checked(
        message_id=message_id,
        at=at,
        sender=sender,
        to=to,
        type=envelope.type,
        payload=envelope.payload,
        written=(str(envelope.sender), str(envelope.to)),
        signature=envelope.signature or None,
    )


def payload_of(message: Checked, decoder: "msgspec.json.Decoder[Shape]") -> Shape:
    """The payload as its type demands it. Raises BadParams naming the wrong, missing or unknown field."""
    read = payload_or_problem(message, decoder)
    if isinstance(read, BadParams):
        raise read
    return read


def payload_or_problem(message: Checked, decoder: "msgspec.json.Decoder[Shape]") -> Shape | BadParams:
    """The same, with the problem as an answer."""
    # Not raised where the decoder's error is caught, or that would hang on it, and every frame that holds the body.
    try:
        return decoder.decode(message.payload)
    except msgspec.ValidationError as error:
        return _bad_payload(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bad_field("payload", "unreadable")


def bad_field(path: str, rule: str) -> BadParams:
    """A wrong field, named by its path."""
    return BadParams(f"{path}: {rule}", errors=[{"path": path, "message": rule}])


def _refuse_missing(envelope: Envelope) -> None:
    members: JsonObject = {
        "version": envelope.version,
        "message_id": envelope.message_id,
        "timestamp": envelope.timestamp,
        "from": envelope.sender,
        "to": envelope.to,
        "type": envelope.type,
        "payload": bytes(envelope.payload) or None,
    }
    missing = [name for name, value in members.items() if value is None]
    if missing:
        errors = [{"path": name, "message": "required"} for name in missing]
        raise BadFrame(f"{', '.join(missing)}: required", errors=errors)


def _message_id(value: Json, *, lenient: bool) -> str:
    if isinstance(value, str) and (
        is_uuid4(value.removeprefix("msg-")) or (lenient and 0 < len(value) <= MAX_MESSAGE_ID)
    ):
        return value
    raise _wrong("message_id", f"any text of 1 to {MAX_MESSAGE_ID} characters" if lenient else "a UUID of version 4")


def _party(name: str, value: Json) -> str:
    party = read_party(value)
    if party is None:
        raise _wrong(name, "a UUID of version 4, or an agent's id")
    return party


def _wrong(member: str, rule: str) -> BadFrame:
    return BadFrame(f"{member}: expected {rule}", errors=[{"path": member, "message": f"expected {rule}"}])


def _bad_payload(said: str) -> BadParams:
    rule, _, at = said.partition(" - at `")
    path = "payload" + at.rstrip("`").removeprefix("$")
    for opening, short in _SHORT.items():
        if rule.startswith(opening):
            path, rule = f"{path}.{rule[len(opening) : -1]}", short
    return bad_field(path, rule.replace("`", ""))
