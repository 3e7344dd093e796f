"""Payloads that only the receiver can read: one compact JWE, and beside it what the hub needs to pass it on.

The hub never opens them. Towards another agent of this dialect the message goes on as it came, under the same names and
id, for the ciphertext is bound to them; towards any other dialect it is one data part.
"""

from typing import Literal

import msgspec

from dragoman.dialects.envelope.checks import Checked, bad_field, payload_of
from dragoman.dialects.envelope.wire import PriorityWord, StatusWord, Word
from dragoman.model.content import Data, Part
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.sealed import (
    CLEAR,
    MEDIA_TYPE,
    MEMBER,
    MESSAGE_ID,
    RECEIVER,
    SENDER,
    header_of,
    header_problem,
    sealed_part,
)


class SealedAssignment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A task whose content is encrypted."""

    jwe: str
    task_id: Word
    task_type: Word | None = None
    priority: PriorityWord | None = None
    deadline: str | None = None


class SealedReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a task stands, all else encrypted."""

    jwe: str
    task_id: Word
    status: StatusWord


class SealedCompletion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """That a task is over, all else encrypted."""

    jwe: str
    task_id: Word
    status: Literal["completed", "failed"]


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """An encrypted message as it goes on: under its own id and names, with its payload as it came."""

    message_id: str
    sender: str
    to: str
    payload: JsonObject


_ASSIGNMENTS = msgspec.json.Decoder(SealedAssignment)
_REPORTS = msgspec.json.Decoder(SealedReport)
_COMPLETIONS = msgspec.json.Decoder(SealedCompletion)


def sealed_assignment(message: Checked, problem: BadParams) -> tuple[SealedAssignment, Part]:
    """An assignment that was encrypted, and its one part. Raises `problem` where it was not, BadParams where it is
    encrypted in a way that is not taken."""
    _refuse_plain(message, problem)
    asked = payload_of(message, _ASSIGNMENTS)
    return asked, _part(message, asked.jwe, asked)


def sealed_update(message: Checked, problem: BadParams) -> tuple[SealedReport, Part]:
    """A report that was encrypted, likewise."""
    _refuse_plain(message, problem)
    told = payload_of(message, _REPORTS)
    return told, _part(message, told.jwe, told)


def sealed_completion(message: Checked, problem: BadParams) -> tuple[SealedCompletion, Part]:
    """The end of a task that was encrypted, likewise."""
    _refuse_plain(message, problem)
    told = payload_of(message, _COMPLETIONS)
    return told, _part(message, told.jwe, told)


def letter_of(parts: tuple[Part, ...]) -> Letter | None:
    """The encrypted message that these parts were, in an envelope; None where they were not."""
    part = sealed_part(parts)
    if part is None or part.metadata is None:
        return None
    about = part.metadata
    names = [about.get(name) for name in (MESSAGE_ID, SENDER, RECEIVER)]
    clear: Json = about.get(CLEAR)
    if not is_object(clear) or not all(isinstance(name, str) for name in names):
        return None
    message_id, sender, to = map(str, names)
    return Letter(message_id=message_id, sender=sender, to=to, payload={**clear, MEMBER: part.value[MEMBER]})


def _refuse_plain(message: Checked, problem: BadParams) -> None:
    """Raises the problem that a payload has where it is not encrypted."""
    try:
        payload: Json = msgspec.json.decode(message.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        payload = None
    if not is_object(payload) or MEMBER not in payload:
        raise problem


def _part(message: Checked, jwe: str, payload: SealedAssignment | SealedReport | SealedCompletion) -> Part:
    sender, to = message.written
    header = header_of(jwe)
    if header is None:
        raise bad_field("payload.jwe", "expected a compact JWE with alg, enc, kid, apu and apv")
    problem = header_problem(header, sender=sender, to=to, message_id=message.message_id)
    if problem is not None:
        raise bad_field("payload.jwe", problem)
    clear = msgspec.to_builtins(payload)
    del clear[MEMBER]
    about: JsonObject = {SENDER: sender, RECEIVER: to, MESSAGE_ID: message.message_id, CLEAR: clear}
    return Data(value={MEMBER: jwe}, media_type=MEDIA_TYPE, metadata=about)
