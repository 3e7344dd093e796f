"""Calling a tool of an MCP server: the request, and what its answer means.

A tool call is no task: it cannot be asked for later. So its answer is in the reply, as JSON or as the last of some
events; what is told before it is how far it is.
"""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.agent_errors import failed, refused_by
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import RpcError, read_reply, unreadable
from dragoman.dialects.mcp.content import parts_of, words_of
from dragoman.dialects.mcp.protocol import (
    ALONE,
    HEADERS,
    META,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    METHOD_HEADER,
    NAME_HEADER,
    PROGRESS_TOKEN,
    SESSION_HEADER,
    TRACE_MEMBERS,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    header_value,
    member,
    notification_bytes,
    request_bytes,
    text_in,
)
from dragoman.dialects.sse import SseEvent, SseParser, is_stream
from dragoman.model.content import Artifact, Data, Message, Role, Text
from dragoman.model.errors import (
    AgentError,
    BadAgentReply,
    DragomanError,
    InputRefused,
    NotSupported,
)
from dragoman.model.events import ArtifactChunk, StatusChanged
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.states import TaskState

CLIENT: Final[JsonObject] = {"name": "dragoman", "version": "1.0.0"}  # of how it calls tools, not of the hub
_SENDING: Final = frozenset({Verb.SEND, Verb.STREAM})
_KEPT: Final[dict[int, type[DragomanError]]] = {-32602: InputRefused}
_EVENT_BYTES: Final = 64 * 1024 * 1024  # of an answer that is there as a whole: its size was judged when it came
_LARGEST: Final = 1e15  # of what progress is counted in
_SHOWN: Final = 4000  # of the words with which a tool failed
_decode = msgspec.json.Decoder().decode


# -- asking


def stands_alone(version: str | None) -> bool:
    """Whether requests of that revision need no session."""
    return version in ALONE


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb. A call that stands alone is cancelled by who stops listening, so nothing is sent."""
    url, task = outgoing.endpoint.url or "", outgoing.task
    alone = stands_alone(outgoing.endpoint.version)
    if outgoing.verb in _SENDING:
        return _call(outgoing, url, alone=alone)
    if outgoing.verb is Verb.CANCEL and not alone:
        params: JsonObject = {"requestId": task.id}
        if outgoing.reason:
            params["reason"] = outgoing.reason
        body = notification_bytes("notifications/cancelled", params)
        return HttpRequest(method="POST", url=url, headers={**HEADERS, **outgoing.headers}, body=body)
    return None


def own_meta(version: str) -> JsonObject:
    """What every request that stands alone says of its sender."""
    return {META_VERSION: version, META_CLIENT: CLIENT, META_CAPABILITIES: {}}


def alone_headers(version: str, method: str, name: str | None = None) -> Headers:
    """The same for those on the way, who read no bodies."""
    headers = {**HEADERS, VERSION_HEADER: version.encode(), METHOD_HEADER: method.encode()}
    if name is not None:
        headers[NAME_HEADER] = header_value(name)
    return headers


def _call(outgoing: Outgoing, url: str, *, alone: bool) -> HttpRequest:
    task, method = outgoing.task, "tools/call"
    name, version = task.skill or "", outgoing.endpoint.version or ""
    meta: JsonObject = {PROGRESS_TOKEN: task.id}
    for traced in TRACE_MEMBERS:
        said = outgoing.headers.get(traced.encode())
        if said is not None:
            meta[traced] = said.decode("ascii", "ignore")
    headers: Headers = HEADERS
    if alone:
        meta |= own_meta(version)
        headers = alone_headers(version, method, name)
    params: JsonObject = {"name": name, "arguments": _arguments(outgoing.message), META: meta}
    body = request_bytes(method, task.id, params)
    return HttpRequest(method="POST", url=url, headers={**headers, **outgoing.headers}, body=body)


def _arguments(message: Message | None) -> JsonObject:
    """The one object that the message was made to fit."""
    for part in () if message is None else message.parts:
        if isinstance(part, Data) and is_object(part.value):
            return part.value
    return {}


# -- hearing


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. Raises BadAgentReply for rubbish, for a session that is over, and for another revision."""
    refused = refused_by(reply, at)
    if refused is not None:
        return refused
    if session_over(outgoing.headers, reply):
        raise BadAgentReply(
            "The server knows the session no longer.", reason="session_over", agent_status=reply.status, reopen=True
        )
    if not is_stream(reply.headers):
        return answered(read_reply(reply), at) or _nothing(reply)
    listener = McpListener(outgoing)
    for event in SseParser(_EVENT_BYTES).feed(reply.body):
        heard = listener.hear(event, at)
        if heard.settled:
            return heard
    raise _nothing_said()


def session_over(sent: Headers, reply: HttpReply) -> bool:
    """Whether a reply says that the session in which was asked, or the lack of one, is what is wrong."""
    if reply.status == 404:
        return SESSION_HEADER in sent
    if reply.status != 400:
        return False
    return b"session" in reply.body[:_SHOWN].lower() or b"not initialized" in reply.body[:_SHOWN].lower()


class McpListener:
    """Hears what a server tells before its answer, and that answer."""

    __slots__ = ("_id",)

    def __init__(self, outgoing: Outgoing) -> None:
        self._id = outgoing.task.id

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What one message says. Raises BadAgentReply for what is no JSON-RPC."""
        try:
            said: Json = _decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            said = None
        if not is_object(said):
            raise BadAgentReply("The server sent an event that is no JSON-RPC.", reason="invalid_response")
        if said.get("method") == "notifications/progress":
            return Heard(events=(progressed(member(said, "params"), at),), settled=False)
        if "method" in said or said.get("id") not in (self._id, None):
            return Heard(events=(), settled=False)
        return answered(read_reply(HttpReply(status=200, body=event.data)), at) or _nothing(HttpReply(status=200))


def answered(result: Json | RpcError, at: datetime) -> Heard | None:
    """What the answer to a call means; None for what is no answer to one."""
    if isinstance(result, RpcError):
        return failed(at, _error_of(result))
    if not is_object(result):
        return None
    if result.get("resultType") == "input_required":
        said = "The tool asks its caller something, which calls through the hub cannot answer."
        return failed(at, NotSupported(said, reason="input_required"))
    if result.get("isError") is True:
        words = words_of(result)[:_SHOWN] or "The tool failed without a word."
        return failed(at, AgentError(words, reason="tool_error"))
    if not is_array(result.get("content")) and "structuredContent" not in result:
        return None
    made = ArtifactChunk(at=at, artifact=Artifact(id=RESULT_ARTIFACT, parts=parts_of(result)))
    return Heard(events=(made, StatusChanged(at=at, state=TaskState.COMPLETED)), settled=True)


def progressed(params: JsonObject, at: datetime) -> StatusChanged:
    """How far a call is: a share where the whole is known, and the words beside it."""
    done, whole, words = _number(params.get("progress")), _number(params.get("total")), text_in(params, "message")
    share = None if done is None or whole is None or whole <= 0 else min(max(done / whole, 0.0), 1.0)
    said = Message(id="progress", role=Role.AGENT, parts=(Text(text=words),), at=at) if words else None
    return StatusChanged(at=at, state=TaskState.WORKING, progress=share, message=said)


def _number(value: Json) -> float | None:
    """A number that can be reckoned with; JSON has larger ones."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
        return None
    return float(value)


def _error_of(error: RpcError) -> DragomanError:
    """The server's error; of one that speaks another revision, that it is to be asked in that."""
    if error.code == UNSUPPORTED_VERSION and is_object(error.data):
        offered: Json = error.data.get("supported")
        for version in offered if is_array(offered) else ():
            if version in ALONE:
                raise BadAgentReply(error.message, reason="version", agent_code=error.code, try_version=version)
    return _KEPT.get(error.code, AgentError)(error.message, agent_code=error.code)


def _nothing(reply: HttpReply) -> Heard:
    raise unreadable(reply, "the answer to a tool call")


def _nothing_said() -> BadAgentReply:
    return BadAgentReply("The server's answer ended before the tool's.", reason="invalid_response")
