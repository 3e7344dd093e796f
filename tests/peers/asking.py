"""How a framework's own client is run here: it is told an agent's base and a text, and says what it understood.

Programs beside this file import it; like them it runs in environments of their own. Standard input has one line per
message, standard output one line for each:

    {"url": …, "text": …}      {"text": the answer as the framework's user would read it}
                               {"error": what the client raised}
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable

TIMEOUT_S = 20.0
LONGEST_ERROR = 300


def ask(send: Callable[[str, str], Awaitable[str]]) -> None:
    """Have `send` carry each message to its agent, until standard input ends."""
    # Frameworks print as they like: what is meant for the reader has the stream to itself.
    out = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        step = json.loads(line)
        said = asyncio.run(told(send, step["url"], step["text"]))
        os.write(out, json.dumps(said).encode() + b"\n")


async def told(send: Callable[[str, str], Awaitable[str]], url: str, text: str) -> dict[str, str]:
    """One message, and what came of it."""
    try:
        return {"text": await asyncio.wait_for(send(url, text), TIMEOUT_S)}
    except Exception as error:  # noqa: BLE001 - whatever a stranger's software raises is its answer
        words = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {words}"[:LONGEST_ERROR]}
