"""How to see whether a URL really speaks the directory's dialect: look for a capability that nobody has.

It starts no work. A published Python agent knows a2a/task alone: it is asked for a task without a word of what to do,
which it refuses.
"""

from dragoman.dialects.directory.outbound import HEADERS
from dragoman.dialects.jsonrpc import RpcError, request_body, shows
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_array, is_object


def probe(url: str) -> HttpRequest:
    """A search that finds nothing."""
    body = request_body("a2a/discover", "dragoman-probe", {"capabilities": ["dragoman-probe"]})
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=body)


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer lists agents, or says that the question was understood and not liked."""
    return shows(reply, _finds_or_complains)


def probe_task(url: str) -> HttpRequest:
    """A task that names nothing."""
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=request_body("a2a/task", "dragoman-probe", {}))


def answers_task_probe(reply: HttpReply) -> bool:
    """Whether the answer complains about the params: whoever does knows the method."""
    return shows(reply, lambda result: isinstance(result, RpcError) and result.code == -32602)


def _finds_or_complains(result: Json | RpcError) -> bool:
    if isinstance(result, RpcError):
        return result.code == -32602
    return is_object(result) and is_array(result.get("agents"))
