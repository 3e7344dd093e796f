"""The demo agent `agt_archive`: searches 200 short articles; slowly or not at all where it is told to."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from dragoman.cli.demo.articles import articles, find
from dragoman.model.errors import AgentError
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.work.context import Context

AGENT_ID: Final = "agt_archive"
SLOW_S: Final = 5.0
STEPS: Final = 10


class Found(Struct, frozen=True):
    """One hit."""

    title: str
    url: str
    snippet: str


class Hits(Struct, frozen=True):
    """What was found, best first."""

    results: list[Found]


class Archive:
    """The skill, on a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def web_search(
        self,
        query: Annotated[str, "What to look for"],
        ctx: Context,
        max_results: Annotated[int, Meta(ge=1, le=100, description="At most so many")] = 10,
        mode: Annotated[
            Literal["normal", "slow", "fail"], "slow: reports progress for 5 s; fail: always fails"
        ] = "normal",
    ) -> Hits:
        """Search the archive for articles"""
        if mode == "fail":
            raise AgentError("The archive is closed, as mode=fail asked for.", retryable=True)
        if mode == "slow":
            await self._dawdle(ctx)
        hits = find(query, max_results)
        return Hits([Found(hit.title, hit.url, hit.text) for hit in hits])

    async def _dawdle(self, ctx: Context) -> None:
        for step in range(1, STEPS + 1):
            await self._clock.sleep(SLOW_S / STEPS)
            await ctx.progress(step / STEPS, f"shelf {step} of {STEPS}")


def archive(clock: Clock | None = None) -> Agent:
    """The agent."""
    agent = Agent(
        "Archive", id=AGENT_ID, description=f"Finds articles among {len(articles())}", tags=("demo", "search")
    )
    skill = agent.skill(tags=("search",), examples=({"query": "tides"},), idempotent=True)
    skill(Archive(clock or SystemClock()).web_search)
    return agent
