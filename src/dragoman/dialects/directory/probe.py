"""How to see whether a URL really speaks the directory's dialect: look for a capability that nobody has.

It starts no work. A published Python agent knows a2a/task alone: it is asked for a task without a word of what to do,
which it refuses.
"""

from dragoman.dialects.directory.outbound import HEADERS
from dragoman.dialects.jsonrpc import RpcError, read_reply, request_body
from dragoman.model.errors import BadAgentReply
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import is_array, is_object


def probe(url: str) -> HttpRequest:
    """A search that finds nothing."""
    body = request_body("a2a/discover", "dragoman-probe", {"capabilities": ["dragoman-probe"]})
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=body)


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer lists agents, or says that the question was understood and not liked."""
    if reply.status in (401, 403):
        return True
    try:
        result = read_reply(reply)
    except BadAgentReply:
        return False
    if isinstance(result, RpcError):
        return result.code == -32602
    return is_object(result) and is_array(result.get("agents"))


def probe_task(url: str) -> HttpRequest:
    """A task that names nothing."""
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=request_body("a2a/task", "dragoman-probe", {}))


def answers_task_probe(reply: HttpReply) -> bool:
    """Whether the answer complains about the params: whoever does knows the method."""
    if reply.status in (401, 403):
        return True
    try:
        result = read_reply(reply)
    except BadAgentReply:
        return False
    return isinstance(result, RpcError) and result.code == -32602
