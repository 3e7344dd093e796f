"""Calling a dotted agent: under the document's names, or under 0.3's, which is what the published server speaks."""

from datetime import datetime
from typing import Final

from dragoman.dialects.agent_errors import failed, refused_by
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import RpcError, read_reply, request_body, shows, unreadable
from dragoman.dialects.kinds import (
    JSON_OR_STREAM,
    SENDING,
    error_of,
    has_no_stream,
    hear_object,
    restored_events,
    sent_once,
    sent_params,
    with_history,
)
from dragoman.dialects.listening import TaskListener
from dragoman.dialects.shapes import unwrapped
from dragoman.dialects.times import wire_time
from dragoman.model.errors import BadAgentReply, NotSupported
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject, is_object

SLASH: Final = "slash"  # the version of an endpoint that has refused the document's names
SLASH_STREAM: Final = "slash-stream"  # and of one that has refused them for streams, and was asked for nothing else
_UNKNOWN_METHOD: Final = -32601
# Neither has a word for listening to a task that was sent before.
_DOTTED: Final = {
    Verb.SEND: "message.send",
    Verb.STREAM: "message.stream",
    Verb.GET: "task.get",
    Verb.CANCEL: "task.cancel",
}
_SLASH: Final = {
    Verb.SEND: "message/send",
    Verb.STREAM: "message/stream",
    Verb.GET: "tasks/get",
    Verb.CANCEL: "tasks/cancel",
}
_FELL_OVER: Final = -32603


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to get or cancel."""
    task, message = outgoing.task, outgoing.message
    method = (_SLASH if _by_slash(outgoing) else _DOTTED).get(outgoing.verb)
    if method is None:
        return None
    headers = {**JSON_OR_STREAM, **outgoing.headers}
    params: JsonObject
    if outgoing.verb in SENDING and message is not None:
        params = sent_params(outgoing, message)
        headers[b"idempotency-key"] = sent_once(outgoing)
        if message.at is not None:
            params["message"]["timestamp"] = wire_time(message.at)
    elif task.remote is None or task.remote.task_id is None:
        return None
    else:
        params = {"taskId": task.remote.task_id, "id": task.remote.task_id}
        if outgoing.verb is Verb.CANCEL and outgoing.reason:
            params["reason"] = outgoing.reason
    body = request_body(method, task.id, params)
    return HttpRequest(method="POST", url=outgoing.endpoint.url or "", headers=headers, body=body)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error of the protocol is a failed task with the agent's words; rubbish raises.

    So does an agent that does not know the method by its first name: under the other it may. One that knows no name of
    streams may know all else by the first names, so the two are found out one by one.
    """
    refused = refused_by(reply, at)
    if refused is not None:
        return refused
    result = read_reply(reply)
    if isinstance(result, RpcError):
        if result.code == _UNKNOWN_METHOD and not _by_slash(outgoing):
            other = SLASH_STREAM if outgoing.verb is Verb.STREAM else SLASH
            raise BadAgentReply(result.message, reason="unknown_method", agent_code=result.code, try_version=other)
        if has_no_stream(outgoing, result.code):
            raise NotSupported(result.message)
        return failed(at, error_of(result))
    if not is_object(result):
        raise unreadable(reply)
    return hear_object(outgoing, result, at)


def listen(outgoing: Outgoing) -> TaskListener:
    """Who hears the agent's stream."""
    return TaskListener(outgoing, adapt=_adapted, restore=restored_events)


def probe(url: str) -> HttpRequest:
    """A task.get for an id that nobody has."""
    unknown = "dragoman-probe-no-such-task"
    body = request_body("task.get", "dragoman-probe", {"taskId": unknown, "id": unknown})
    return HttpRequest(method="POST", url=url, headers=JSON_OR_STREAM, body=body)


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer shows that a dotted card tells the truth: any JSON-RPC answer that is no collapse does.

    Even one that says the method is unknown: the published server knows it by its other name alone.
    """
    return shows(reply, lambda result: not (isinstance(result, RpcError) and result.code == _FELL_OVER))


def _by_slash(outgoing: Outgoing) -> bool:
    version = outgoing.endpoint.version
    return version == SLASH or (version == SLASH_STREAM and outgoing.verb is Verb.STREAM)


def _adapted(value: JsonObject) -> JsonObject:
    """A task with its turns where A2A has them, bare or wrapped; any other object as it is."""
    kind, inner = unwrapped(value)
    return with_history(inner) if kind == "task" else value
