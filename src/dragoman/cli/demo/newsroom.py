"""The demo agent `agt_newsroom`: writes a brief with the help of two agents that it finds by what they can do.

brief ──▶ discover web_search ──▶ call it          (an AgentVault agent)
      ──▶ discover summarize  ──▶ stream its words (an A2A 1.0 agent)
"""

from typing import Annotated, Final

from dragoman.model.errors import AgentUnavailable
from dragoman.model.json import Json, is_array, is_object
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.work.context import Context

AGENT_ID: Final = "agt_newsroom"
SOURCES: Final = 3
LENGTH: Final = 400


async def brief(topic: Annotated[str, "What to write about"], ctx: Context) -> None:
    """Write a short brief about a topic"""
    topic = topic.strip()
    while len(topic) < 2:
        topic = (await ctx.ask(f"“{topic}” is too short for a brief. What is the topic?")).strip()
    searcher = await _who_can("web_search", ctx)
    await ctx.progress(0.2, f"{searcher} looks for {topic}")
    hits = await ctx.call(searcher, "web_search", {"query": topic, "max_results": SOURCES})
    found = _objects(hits.get("results"))
    if not found:
        await ctx.stream(f"The archive has nothing about {topic}.")
        return
    editor = await _who_can("summarize", ctx)
    await ctx.progress(0.6, f"{editor} writes from {len(found)} articles")
    content = " ".join(str(hit.get("snippet", "")) for hit in found)
    async for event in ctx.stream_call(editor, "summarize", {"content": content, "max_length": LENGTH}):
        if event.type == "chunk":
            await ctx.stream(event.content)
    await ctx.stream("\n\nSources:" + "".join(f"\n- {hit.get('title')}: {hit.get('url')}" for hit in found))


def newsroom() -> Agent:
    """The agent."""
    agent = Agent("Newsroom", id=AGENT_ID, description="Writes short briefs with the help of others", tags=("demo",))
    agent.skill(examples=({"topic": "tides"},))(brief)
    return agent


async def _who_can(skill: str, ctx: Context) -> str:
    async for agent in ctx.discover(skill, status="active", limit=1):
        return str(agent.id)
    raise AgentUnavailable(f"Nobody here has the skill {skill}.", skill=skill)


def _objects(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if is_object(each)] if is_array(value) else []
