"""JSON-RPC at URLs that several dialects share: the method's name tells which one is spoken.

A method that two of them have (`tasks/get`) goes by the id of the task it names: each dialect's ids begin in their own
way. Nothing is looked up for it. Several requests at once are taken apart here, and their answers put together.
"""

from collections.abc import Awaitable, Sequence
from typing import Final

import msgspec

from dragoman.dialects.dialect import Dialect, Exchange
from dragoman.dialects.jsonrpc import RPC_ERRORS, Frame, error_reply, read_frame, require_json
from dragoman.dialects.refusals import JSON_HEADERS
from dragoman.hub.files import Files
from dragoman.hub.handle import Hub
from dragoman.model.answers import Answer
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadFrame, DragomanError, UnknownMethod, WrongMediaType
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_array, is_object
from dragoman.model.operations import Operation, Unreadable
from dragoman.observe.trace import trace_beside
from dragoman.server.exchange import Reply, Spoken, spoken_of, worded
from dragoman.server.streaming import StreamReply

MOST_AT_ONCE: Final = 50
_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Named(msgspec.Struct, gc=False):
    """Of the params only what may name a task."""

    id: msgspec.Raw = msgspec.Raw(b"")
    taskId: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815 - the wire's own name


_decode_named = msgspec.json.Decoder(_Named).decode


class Unclaimed(msgspec.Struct, frozen=True):
    """A request that no dialect claims: it can only be refused."""

    frame: Frame
    operation: Unreadable

    def reply(self, answer: Answer) -> HttpReply:
        """There is no answer."""
        raise AssertionError(f"an unclaimed request is not answered: {type(answer).__name__}")

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal in the words that all these dialects share."""
        return error_reply(self.frame.id, error, RPC_ERRORS)


class Asked(msgspec.Struct, frozen=True):
    """One request, and whose dialect it is in."""

    exchange: Exchange
    spoken: Spoken

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal."""
        return self.exchange.refuse(error)


class Batch(msgspec.Struct, frozen=True):
    """Several requests at once."""

    members: tuple[Asked, ...]
    spoken: Spoken

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal of all of them."""
        return self.members[0].refuse(error)


class RpcRoute:
    """A URL where JSON-RPC of some dialects is spoken."""

    def __init__(self, dialects: Sequence[Dialect], *, cap: int, hub: Hub, files: Files) -> None:
        self._dialects = tuple(dialects)
        self._only = self._dialects[0] if len(self._dialects) == 1 else None
        self._handle = hub.handle
        self._files = files
        self._spoken = {dialect.slug: spoken_of(dialect) for dialect in dialects}
        self._by_method: dict[str, list[Dialect]] = {}
        for dialect in dialects:
            for method in dialect.methods:
                self._by_method.setdefault(method, []).append(dialect)
        self._sole = {method: claimed[0] for method, claimed in self._by_method.items() if len(claimed) == 1}
        self._beginning = [(each.methods_begin, each) for each in dialects if each.methods_begin]
        self.name = "rpc"
        self.cap = cap
        self.public = False

    def read(self, request: HttpRequest) -> Asked | Batch:
        """The request in its dialect; never raises."""
        if request.body[:1] != b"{":
            several = self._several(request)
            if several is not None:
                return several
        return self._one(request)

    def said(self, asked: Asked | Batch) -> tuple[Operation | None, Spoken]:
        """What one request asks, in whose words; of several none speaks for the others."""
        return asked.exchange.operation if isinstance(asked, Asked) else None, asked.spoken

    def answer(self, asked: Asked | Batch, caller: Caller, arrival: Arrival) -> Awaitable[Answer | HttpReply]:
        """The hub's answer; to several requests the reply."""
        if isinstance(asked, Asked):
            return self._handle(caller, asked.exchange.operation, arrival)
        return self._answer_all(asked, caller, arrival)

    def worded(self, asked: Asked | Batch, given: Answer | HttpReply) -> Reply:
        """The same in the dialect's words."""
        if type(given) is HttpReply:  # An `isinstance` that fails is dear.
            return given
        if isinstance(asked, Asked):
            return worded(asked.exchange, given, asked.spoken, self._files)
        raise AssertionError("several answers are put together before")

    async def _answer_all(self, asked: Batch, caller: Caller, arrival: Arrival) -> HttpReply:
        replies: list[HttpReply] = []
        for index, member in enumerate(asked.members):
            task_id = f"{member.spoken.task_prefix}{arrival.task_id.rpartition('-')[2]}{index:02}"
            own = msgspec.structs.replace(arrival, task_id=task_id, trace=trace_beside(arrival.trace, task_id))
            try:
                reply = self.worded(member, await self.answer(member, caller, own))
                if isinstance(reply, StreamReply):
                    reply.body.close()
                    raise BadFrame("A stream cannot be one of several answers: ask for it alone.")
            except DragomanError as error:
                reply = member.refuse(error)
            replies.append(reply)
        bodies = [reply.body for reply in replies if reply.body]
        if not bodies:
            return HttpReply(status=204)
        return HttpReply(status=200, headers=JSON_HEADERS, body=b"[" + b",".join(bodies) + b"]")

    def _one(self, request: HttpRequest) -> Asked:
        dialect = self._only
        if dialect is not None and dialect.read is not None:
            return Asked(dialect.read(request), self._spoken[dialect.slug])
        frame = read_frame(request.body)
        dialect = self._sole.get(frame.method) or self._dialect_of(frame, request)
        if dialect is None or dialect.read is None:
            return _unclaimed(frame, request)
        read_framed = dialect.read_framed
        exchange = dialect.read(request) if read_framed is None else read_framed(request, frame)
        return Asked(exchange, self._spoken[dialect.slug])

    def _dialect_of(self, frame: Frame, request: HttpRequest) -> Dialect | None:
        if frame.error is not None:
            return self._by_shape(request)
        claimed = self._by_method.get(frame.method)
        if claimed is None:
            return next((each for begin, each in self._beginning if frame.method.startswith(begin)), None)
        named = _task_named(frame)
        return next((each for each in claimed if named.startswith(each.task_prefix)), claimed[0])

    def _by_shape(self, request: HttpRequest) -> Dialect | None:
        """The dialect whose own, unframed body this is, or that the request's headers name."""
        try:
            body: Json = _decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            body = None
        for dialect in self._dialects:
            if dialect.owns_body is not None and is_object(body) and dialect.owns_body(body):
                return dialect
            if dialect.owns_request is not None and dialect.owns_request(request):
                return dialect
        return None

    def _several(self, request: HttpRequest) -> Asked | Batch | None:
        """The requests of an array, if every one of them may come so; the refusal of any other array."""
        try:
            body: Json = _decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if not is_array(body):
            return None
        if not 0 < len(body) <= MOST_AT_ONCE:
            return _refused(f"A batch has 1 to {MOST_AT_ONCE} requests.")
        members: list[Asked] = []
        for index, raw in enumerate(_decode_members(request.body)):
            own = msgspec.structs.replace(request, body=bytes(raw), id=f"{request.id}{index:02}")
            member = self._one(own)
            if not member.spoken.batches and not isinstance(member.exchange, Unclaimed):
                return _refused("Requests of this dialect come one at a time.")
            members.append(member)
        speaking = next((member for member in members if member.spoken.batches), None)
        if speaking is None:
            return _refused("Requests of this dialect come one at a time.")
        return Batch(tuple(members), speaking.spoken)


NOBODY: Final = Spoken(slug="", task_prefix="req_", inline=True, batches=False)


def _task_named(frame: Frame) -> str:
    try:
        named = _decode_named(frame.params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return bytes(named.id or named.taskId).decode("utf-8", "replace").strip('" ')


def _unclaimed(frame: Frame, request: HttpRequest) -> Asked:
    error = frame.error
    if error is None:
        error = UnknownMethod(f"There is no method {frame.method[:100]!r} here.", method=frame.method[:100])
    try:
        require_json(request)
    except WrongMediaType as wrong:
        error = wrong
    return Asked(Unclaimed(frame, Unreadable(error=error.with_traceback(None))), NOBODY)


def _refused(message: str) -> Asked:
    return Asked(Unclaimed(Frame(), Unreadable(error=BadFrame(message))), NOBODY)
