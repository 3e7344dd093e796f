"""How to see whether a URL really speaks A2A 1.0: ask for a task that cannot exist. It starts no work."""

from typing import Final

import msgspec

from dragoman.dialects.a2a_v10.errors import REASONS
from dragoman.dialects.a2a_v10.outbound import HEADERS
from dragoman.dialects.jsonrpc import RpcError, request_body, shows
from dragoman.model.errors import TaskNotFound
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_array, is_object

# Codes by which a server says that it does not know the method or the version, or fell over it.
_NO: Final = frozenset({-32601, -32009, -32603})
_NO_TASK: Final = "dragoman-probe-no-such-task"
_decode = msgspec.json.Decoder().decode


def probe(url: str) -> HttpRequest:
    """A GetTask for an id that nobody has."""
    body = request_body("GetTask", "dragoman-probe", {"id": _NO_TASK})
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=body)


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer shows that the method is spoken: any application error does."""
    return shows(reply, lambda result: not (isinstance(result, RpcError) and result.code in _NO))


def probe_rest(url: str) -> HttpRequest:
    """The same over HTTP: a look at a task that nobody has."""
    headers = {name: value for name, value in HEADERS.items() if name != b"content-type"}
    return HttpRequest(method="GET", url=f"{url.rstrip('/')}/tasks/{_NO_TASK}", headers=headers)


def answers_rest_probe(reply: HttpReply) -> bool:
    """Whether tasks are known there: only this version's own word for a missing one shows it, a plain 404 does not."""
    if reply.status in (401, 403):
        return True
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    error = body.get("error") if is_object(body) else None
    details = error.get("details") if is_object(error) else None
    reasons = [each.get("reason") for each in details if is_object(each)] if is_array(details) else []
    return reply.status == 404 and REASONS[TaskNotFound] in reasons
