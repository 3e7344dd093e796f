"""The demo agent `agt_editor`: shortens texts to their first sentences, and streams them one by one."""

import re
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct

from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.work.context import Context

AGENT_ID: Final = "agt_editor"
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?]+[\"')\]]*|\n|$)")


class Summary(Struct, frozen=True):
    """The shortened text."""

    summary: str


def pieces(content: str, max_length: int) -> Iterator[str]:
    """The first sentences that fit, one by one; of a first one that does not, the words that do."""
    length = 0
    for found in _SENTENCE.findall(content):
        sentence = " ".join(found.split())
        if not sentence:
            continue
        piece = f" {sentence}" if length else sentence
        if length + len(piece) > max_length:
            break
        length += len(piece)
        yield piece
    if length or not content.strip():
        return
    text = " ".join(content.split())[: max(0, max_length - 1)]
    whole = text.rpartition(" ")[0] or text
    yield f"{whole}…"[:max_length]


async def summarize(
    content: Annotated[str, "The text"],
    ctx: Context,
    max_length: Annotated[int, Meta(ge=1, description="At most so many characters")] = 500,
) -> Summary:
    """Summarize text content"""
    told: list[str] = []
    for piece in pieces(content, max_length):
        told.append(piece)
        await ctx.stream(piece)
    summary = "".join(told)
    ctx.usage(input_tokens=len(content.split()), output_tokens=len(summary.split()))
    return Summary(summary)


def editor() -> Agent:
    """The agent."""
    agent = Agent("Editor", id=AGENT_ID, description="Shortens texts to their first sentences", tags=("demo", "text"))
    skill = agent.skill(tags=("text",), examples=({"content": "Tides rise. They fall."},), idempotent=True)
    skill(summarize)
    return agent
