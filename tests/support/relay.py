"""Three agents of three dialects, each of which calls the next: A (platform) calls B (A2A 1.0), B calls C (AgentVault).

What each was told of the trace it passes on in its own request to the hub, as agents do that know nothing of tracing.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

import msgspec

from tests.end_to_end.every_dialect import asked
from tests.end_to_end.world import fresh, join
from tests.support.agents.a2a_v10 import card_of
from tests.support.agents.agentvault import agent as agentvault_agent
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.speaking import StubAgent, json_answer, serving

TRACE: Final = ("traceparent", "tracestate", "x-trace-id", "x-span-id")


class Relay(msgspec.Struct, frozen=True):
    """The agents by their ids at the hub, what the first was sent, and the keys that A and B call with."""

    a: str
    b: str
    c: str
    first: PlatformAgent
    keys: tuple[str, str]


@contextlib.contextmanager
def relaying(hub: HubProcess) -> Generator[Relay]:
    """The three of them, registered, within the block."""
    keys = (hub.new_key("a2a:call"), hub.new_key("a2a:call"))
    with agentvault_agent() as last, _a2a_relay(hub, keys[1]) as (second, following), platform_agent() as first:
        c = hub.register(last.card, id=fresh("agt-c"), dialect="agentvault")["id"]
        following.append(c)
        b = hub.register(second.card, id=fresh("agt-b"), dialect="a2a-1.0")["id"]

        def respond(body: dict[str, Any]) -> dict[str, Any]:
            headers = next(sent for _, sent, said in first.requests if said["call_id"] == body["call_id"])
            reply = hub.call("echo", body["input"], b, token=keys[0], headers=_passed_on(headers))
            return {"status": "completed", "result": reply.json["result"]}

        first.respond = respond
        a = join(hub, first, id=fresh("agt_a"), name="Relay A")["id"]
        yield Relay(a, b, c, first, keys)


@contextlib.contextmanager
def _a2a_relay(hub: HubProcess, key: str) -> Generator[tuple[StubAgent, list[str]]]:
    stub, following = StubAgent("a2a-1.0"), list[str]()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET":
            return json_answer(stub.card)
        more = {name.replace("-", "_"): value for name, value in _passed_on(headers).items()}
        reply = asked("a2a-1.0", following[0], "from B").post(hub, key, **more)
        assert reply.status == 200, reply.body
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "B has asked C"}]}
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "result": {"message": message}})

    with serving(stub, handle):
        stub.card = card_of("Relay B", stub.url, ("JSONRPC",))
        yield stub, following


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in TRACE if name in headers}
