"""Calling an agent of A2A 0.3 over JSON-RPC: what is asked, and what its answers mean."""

from datetime import datetime
from typing import Final

from dragoman.dialects.a2a_v03.version import VERSION
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import RpcError, request_body, shows
from dragoman.dialects.kinds import (
    JSON_OR_STREAM,
    SENDING,
    hear_object,
    heard_result,
    restored_events,
    sent_once,
    sent_params,
)
from dragoman.dialects.listening import TaskListener
from dragoman.dialects.shapes import may_hold_doubles, whole_numbers
from dragoman.model.http import Headers, HttpReply, HttpRequest

# Never 1.0: servers of both versions then refuse the methods of 0.3.
HEADERS: Final[Headers] = {**JSON_OR_STREAM, b"a2a-version": VERSION.encode()}
_METHODS: Final = {
    Verb.SEND: "message/send",
    Verb.STREAM: "message/stream",
    Verb.GET: "tasks/get",
    Verb.CANCEL: "tasks/cancel",
}


def ask_rpc(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to get or to cancel."""
    task, asked = outgoing.task, outgoing.asked
    headers = {**HEADERS, **outgoing.headers}
    if outgoing.verb is Verb.SUBSCRIBE:
        return None  # `features_of` says why.
    if outgoing.verb in SENDING and outgoing.message is not None:
        params = sent_params(outgoing, outgoing.message)
        headers[b"idempotency-key"] = sent_once(outgoing)
        if asked.extensions:
            headers[b"x-a2a-extensions"] = ",".join(asked.extensions).encode()
    elif task.remote is None or task.remote.task_id is None:
        return None
    else:
        params = {"id": task.remote.task_id}
    body = request_body(_METHODS[outgoing.verb], task.id, params)
    return HttpRequest(method="POST", url=outgoing.endpoint.url or "", headers=headers, body=body)


def hear_rpc(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error of the protocol is a failed task with the agent's words; rubbish raises."""
    result = heard_result(outgoing, reply, at)
    if isinstance(result, Heard):
        return result
    # Servers that are built on protobuf know no integers.
    return hear_object(outgoing, whole_numbers(result) if may_hold_doubles(reply.body) else result, at)


def listen_rpc(outgoing: Outgoing) -> TaskListener:
    """Who hears the agent's stream."""
    return TaskListener(outgoing, restore=restored_events)


def probe(url: str) -> HttpRequest:
    """A message/send without a message: whoever knows the method says what is missing, and nobody starts to work."""
    return HttpRequest(method="POST", url=url, headers=JSON_OR_STREAM, body=request_body("message/send", "probe", {}))


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer shows that the method is spoken: only a complaint about the params does."""
    return shows(reply, lambda result: isinstance(result, RpcError) and result.code in (-32602, -32600))
