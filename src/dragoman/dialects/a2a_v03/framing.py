"""Which framing of 0.3 is meant, coming in and going out.

request   its route begins with rest_  → rest_in      else → inbound
endpoint  its binding is HTTP+JSON     → rest_out     its version is legacy-0.1 → legacy     else → outbound
"""

from datetime import datetime
from typing import Final

from dragoman.dialects.a2a_v03.inbound import read_rpc
from dragoman.dialects.a2a_v03.legacy import LEGACY, ask_legacy, hear_legacy
from dragoman.dialects.a2a_v03.outbound import ask_rpc, hear_rpc, listen_rpc
from dragoman.dialects.a2a_v03.rest_in import read_rest
from dragoman.dialects.a2a_v03.rest_listening import RestListener
from dragoman.dialects.a2a_v03.rest_out import ask_rest, hear_rest
from dragoman.dialects.dialect import Exchange, Heard, Listener, Outgoing
from dragoman.model.agent import Binding
from dragoman.model.http import HttpReply, HttpRequest

_REST: Final = "rest_"


def read(request: HttpRequest) -> Exchange:
    """The exchange of one request, in the framing by which it came."""
    return read_rest(request) if request.route.startswith(_REST) else read_rpc(request)


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for an agent, in the framing of its endpoint."""
    if outgoing.endpoint.binding is Binding.HTTP:
        return ask_rest(outgoing)
    return ask_legacy(outgoing) if outgoing.endpoint.version == LEGACY else ask_rpc(outgoing)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an agent's answer says, in the framing of its endpoint."""
    if outgoing.endpoint.binding is Binding.HTTP:
        return hear_rest(outgoing, reply, at)
    return hear_legacy(outgoing, reply, at) if outgoing.endpoint.version == LEGACY else hear_rpc(outgoing, reply, at)


def listen(outgoing: Outgoing) -> Listener:
    """Who hears an agent's stream, in the framing of its endpoint."""
    return RestListener(outgoing) if outgoing.endpoint.binding is Binding.HTTP else listen_rpc(outgoing)
