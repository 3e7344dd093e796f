"""A stub agent with a platform card: it answers each call in its reply, and cannot be asked back or after."""

import contextlib
import threading
from collections.abc import Generator, Mapping
from typing import Any

from tests.support.speaking import FAILURE, StubAgent, json_answer, serving, wish_of


@contextlib.contextmanager
def agent(name: str = "platform-stub") -> Generator[StubAgent]:
    """An agent that repeats its input, within the block."""
    stub = StubAgent("platform")
    stopped: dict[str, threading.Event] = {}

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if path.endswith("/cancel"):
            stub.cancelled.set()
            stopped.setdefault(body["call_id"], threading.Event()).set()
            return json_answer({})
        stub.arrived.set()
        given = body["input"]
        wish = wish_of(given.get("text"))
        if wish in ("fail", "reject"):
            return json_answer({"status": "failed", "error": {"code": "AGENT_ERROR", "message": FAILURE}})
        if wish == "slow":
            waiting = stopped.setdefault(body["call_id"], threading.Event())
            while not (waiting.is_set() or stub.release.is_set()):
                waiting.wait(0.05)
        return json_answer({"status": "completed", "result": given})

    with serving(stub, handle):
        stub.card = {
            "id": f"agt_{name}",
            "name": name,
            "description": "Repeats its input",
            "version": "1.0.0",
            "skills": [{"name": "echo", "description": "Repeats its input"}],
            "endpoint": f"{stub.url}/agent",
        }
        yield stub
