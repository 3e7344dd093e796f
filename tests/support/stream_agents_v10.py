"""An agent of A2A 1.0 that streams a few pieces and falls silent, in a process of its own: made to be killed.

Each piece is `NUMBER@ `. Runs alone: `python -m tests.support.stream_agents_v10 PIECES`; the port is its first line.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Generator
from typing import Any, Final

from tests.support.agents.a2a_v10 import card_of
from tests.support.tiny_http import Connection, Request, listen, process

AGENT: Final = "agt_streamer_v10"


class Teller:
    """Its one task, of which it never hears the end."""

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces
        self._task = {"id": "remote", "contextId": "there", "status": {"state": "TASK_STATE_WORKING"}}

    def answer(self, request: Request, client: Connection) -> None:
        """A stream for who asks for one, the task for who asks after it."""
        frame = {"jsonrpc": "2.0", "id": request.body.get("id")}
        if request.body.get("method") not in ("SendStreamingMessage", "SubscribeToTask"):
            client.say({**frame, "result": self._task})
            return
        client.begin(chunked=True)
        client.event("", {**frame, "result": {"task": self._task}})
        for number in range(self._pieces):
            artifact = {"artifactId": "made", "parts": [{"text": f"{number}@ "}]}
            update = {"taskId": "remote", "contextId": "there", "artifact": artifact, "append": number > 0}
            client.event("", {**frame, "result": {"artifactUpdate": update}})


@contextlib.contextmanager
def stream_agent_v10(pieces: int) -> Generator[tuple[dict[str, Any], Callable[[], None]]]:
    """Its card, and how it is killed; running within the block unless that was done."""
    with process("tests.support.stream_agents_v10", str(pieces)) as running:
        card = card_of("Teller", f"http://127.0.0.1:{running.port}", ("JSONRPC",))
        card["capabilities"]["streaming"] = True
        yield card, running.kill


if __name__ == "__main__":
    asyncio.run(listen(Teller(int(sys.argv[1])).answer))
