"""What the rules across all dialects are tested with: an agent of each, and a request of each, in plain words."""

import itertools
from contextlib import ExitStack
from typing import Any, Final
from uuid import uuid4

import msgspec

from dragoman.dialects import DIALECTS
from tests.end_to_end.world import fresh
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.hub import HubProcess, Reply
from tests.support.matrix import agent_of, caller_of
from tests.support.speaking import Caller, StubAgent

SLUGS: Final = tuple(DIALECTS)
# Those that talk JSON-RPC at one URL per agent, told by the method's name.
RPC: Final = ("a2a-1.0", "a2a-0.3", "agentvault", "directory", "dotted")
# Those whose messages belong to conversations.
WITH_CONTEXT: Final = ("a2a-1.0", "a2a-0.3", "dotted", "platform")

_numbers = itertools.count(1)


class Known(msgspec.Struct, frozen=True):
    """An agent and its id at the hub."""

    id: str
    stub: StubAgent

    @property
    def came(self) -> tuple[dict[str, str], Any]:
        """The headers and the body that it was sent last, cards aside."""
        return next((dict(headers), body) for _, _, headers, body in reversed(self.stub.requests) if body)


class Everyone:
    """One hub, and agents of every dialect at it as they are needed."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        self.hub = hub
        self._stack = stack
        self._agents: dict[str, Known] = {}

    def agent(self, slug: str) -> Known:
        """The agent that speaks a dialect; what it was told before is forgotten."""
        if slug not in self._agents:
            self._agents[slug] = self.another(slug)
        known = self._agents[slug]
        known.stub.arrived.clear()
        known.stub.cancelled.clear()
        return known

    def another(self, slug: str, **registration: Any) -> Known:
        """One more agent of a dialect."""
        stub = self.stub(slug)
        answer = self.hub.register(stub.card, **{"id": fresh(f"agt-{slug}"), **registration})
        if isinstance(stub, EnvelopeAgent):
            stub.token = answer["token"]  # it reports to the hub by itself
        return Known(answer["id"], stub)

    def stub(self, slug: str) -> StubAgent:
        """An agent that the hub does not know yet."""
        return self._stack.enter_context(agent_of(DIALECTS[slug])())

    def caller(self, slug: str) -> Caller:
        """A caller that speaks a dialect."""
        return caller_of(DIALECTS[slug])(self.hub.url, self.hub.token or "")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request that makes a task."""

    path: str
    body: dict[str, Any]
    text: str  # the words in it
    headers: dict[str, str] = {}

    def post(self, hub: HubProcess, token: str = "", **headers: str) -> Reply:
        """Send it, with these headers more; `_` stands for `-`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return hub.post(self.path, self.body, {**self.headers, **more}, token)


def asked(slug: str, agent: str, text: str, *, sender: str = "", context: str | None = None) -> Asked:
    """A message in a dialect to an agent; `sender` is who an envelope is from."""
    number = f"{uuid4()}"
    message: dict[str, Any] = {
        "messageId": number,
        "role": "user",
        **({} if context is None else {"contextId": context}),
    }
    match slug:
        case "platform":
            held = {} if context is None else {"context": {"conversation_id": context}}
            body = {"target_agent_id": agent, "skill": "echo", "input": {"text": text}, **held}
            return Asked(path="/v1/a2a/call", body=body, text=text)
        case "envelope":
            payload = {
                "task_id": number,
                "task_type": "echo",
                "title": "t",
                "description": "d",
                "payload": {"text": text},
            }
            body = enveloped(sender or str(uuid4()), agent, "task_assignment", payload)
            return Asked(path="/a2a/messages", body=body, text=text)
        case "directory":
            params = {"taskId": number, "action": "echo", "sender": "me", "input": {"text": text}}
            return Asked(path=f"/agents/{agent}/", body=framed("a2a/task", params), text=text)
        case "agentvault":
            params = {"message": {"role": "user", "parts": [{"type": "text", "content": text}]}}
            return Asked(path=f"/agents/{agent}/", body=framed("tasks/send", params), text=text)
        case "a2a-1.0":
            said = {**message, "role": "ROLE_USER", "parts": [{"text": text}]}
            return Asked(
                path=f"/agents/{agent}/",
                body=framed("SendMessage", {"message": said}),
                text=text,
                headers={"A2A-Version": "1.0"},
            )
        case _:
            said = {"kind": "message", **message, "parts": [{"kind": "text", "text": text}]}
            method = "message.send" if slug == "dotted" else "message/send"
            return Asked(path=f"/agents/{agent}/", body=framed(method, {"message": said}), text=text)


def framed(method: str, params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": f"req-{next(_numbers)}", "method": method, "params": params}


def enveloped(sender: str, to: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """A message of the envelope dialect."""
    return {
        "version": "1.0.0",
        "message_id": str(uuid4()),
        "timestamp": "2024-02-05T15:30:00Z",
        "from": sender,
        "to": to,
        "type": kind,
        "payload": payload,
    }
