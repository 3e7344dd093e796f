"""Strangers to look at, as functions: what each says to a request, and what it was asked."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.delivery.probe import Examined, look
from dragoman.dialects import DIALECTS
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.net.errors import NetError, Reach
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run

Says = Callable[[HttpRequest], HttpReply]


class Stranger:
    """Answers by a function, and keeps what it was asked; each answer takes some time of the clock."""

    def __init__(self, says: Says, *, takes_s: float = 0.01) -> None:
        self.asked: list[HttpRequest] = []
        self.deadlines: list[float] = []
        self.clock = ManualClock()
        self._says = says
        self._takes_s = takes_s

    async def fetch(self, request: HttpRequest, deadline: float) -> HttpReply:
        self.asked.append(request)
        self.deadlines.append(deadline - self.clock.monotonic())
        self.clock.advance(min(self._takes_s, deadline - self.clock.monotonic()))
        if self._takes_s > self.deadlines[-1]:
            raise NetError(Reach.TIMEOUT)
        return self._says(request)

    def look(self, url: str = "http://agent.test/", **how: Any) -> Examined:
        """What a look at it finds."""
        return run(look(url, fetch=self.fetch, dialects=DIALECTS, clock=self.clock, **how))

    @property
    def methods(self) -> list[str]:
        """The JSON-RPC methods it was asked, in order."""
        bodies = [json.loads(each.body) for each in self.asked if each.body]
        return [body["method"] for body in bodies if "method" in body]


def reply(status: int, body: object = None, **headers: str) -> HttpReply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return HttpReply(status=status, headers=named, body=raw)


def rpc(
    answers: Mapping[str, int | HttpReply], card: object = None, path: str = "/.well-known/agent-card.json"
) -> Says:
    """A JSON-RPC server: by method the code of its error, or a whole reply; -32601 to all else."""

    def says(request: HttpRequest) -> HttpReply:
        if request.method == "GET":
            return reply(200, card) if card is not None and request.url.endswith(path) else reply(404)
        body = json.loads(request.body)
        if "method" not in body:
            return reply(404)
        answer = answers.get(body["method"], -32601)
        if isinstance(answer, HttpReply):
            return answer
        return reply(200, {"jsonrpc": "2.0", "id": body["id"], "error": {"code": answer, "message": "no"}})

    return says


def official(*interfaces: tuple[str, str, str], **more: object) -> dict[str, Any]:
    """A card of 1.0 that names these interfaces: url, binding, version."""
    listed = [{"url": url, "protocolBinding": kind, "protocolVersion": version} for url, kind, version in interfaces]
    skills = [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}]
    return {"name": "X", "description": "d", "version": "1.0", "supportedInterfaces": listed, "skills": skills, **more}
