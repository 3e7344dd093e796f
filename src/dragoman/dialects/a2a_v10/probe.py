"""How to see whether a URL really speaks A2A 1.0: ask for a task that cannot exist. It starts no work."""

from typing import Final

from dragoman.dialects.a2a_v10.outbound import HEADERS
from dragoman.dialects.jsonrpc import RpcError, read_reply, request_body
from dragoman.model.errors import BadAgentReply
from dragoman.model.http import HttpReply, HttpRequest

# Codes by which a server says that it does not know the method or the version, or fell over it.
_NO: Final = frozenset({-32601, -32009, -32603})


def probe(url: str) -> HttpRequest:
    """A GetTask for an id that nobody has."""
    body = request_body("GetTask", "dragoman-probe", {"id": "dragoman-probe-no-such-task"})
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=body)


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer shows that the method is spoken: any application error does."""
    if reply.status in (401, 403):
        return True
    try:
        result = read_reply(reply)
    except BadAgentReply:
        return False
    return not (isinstance(result, RpcError) and result.code in _NO)
