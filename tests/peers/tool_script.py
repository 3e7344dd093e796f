"""What the offline models of all frameworks do with the skills they are handed as tools, and what they tell of it.

A model calls one tool after the other, hears what came of each, and ends. What it was shown and what it heard is one
line of JSON on standard output. All of it happens for a call of a conversation, as in a handler.
"""

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

from dragoman import A2AClient
from dragoman.sdk.scope import Scope, within

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agt_archive__web_search", {"query": "tides"}),
    ("agt_archive__greet", {"name": "Ada"}),
    ("agt_archive__lend", {"title": "Tides"}),
    ("agt_archive__where", {}),
)
DONE = "That was all."


def play(framework: str, work: Callable[[list[Any]], Any]) -> None:
    """Let `work` have the tools: it returns what its model was shown (name to schema), heard, and said at last."""
    with within(Scope(call_id="a2a_call_mine", conversation_id="conv_7")):
        if inspect.iscoroutinefunction(work):
            shown, heard, answer = asyncio.run(_awaited(framework, work))
        else:
            shown, heard, answer = work(A2AClient().sync.tools(framework))  # pyright: ignore
    sys.stdout.write(json.dumps({"shown": shown, "heard": heard, "answer": answer}) + "\n")


async def _awaited(framework: str, work: Callable[[list[Any]], Any]) -> Any:
    async with A2AClient() as client:
        return await work(await client.tools(framework))  # pyright: ignore
