"""How to see whether a URL is a platform: look for agents there. It starts no work.

That is the platform's own side. An agent of this dialect has one URL, at which every POST is a call: it cannot be asked
anything that is safe.
"""

from typing import Final

import msgspec

from dragoman.model.http import JSON_TYPE, HttpReply, HttpRequest
from dragoman.model.json import Json, is_array, is_object

CALL_PATH: Final = "/v1/a2a/call"  # where a platform itself takes what its agents are sent
_DISCOVER: Final = "/v1/a2a/discover?limit=1"
_decode = msgspec.json.Decoder().decode


def probe(url: str) -> HttpRequest:
    """A look for one agent."""
    return HttpRequest(method="GET", url=url.rstrip("/") + _DISCOVER, headers={b"accept": JSON_TYPE})


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer lists agents, or wants a key in the platform's own words."""
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if not is_object(body):
        return False
    error = body.get("error")
    if reply.status in (401, 403):
        return is_object(error) and error.get("code") == "AUTHORIZATION_ERROR"
    return reply.status == 200 and is_array(body.get("agents"))
