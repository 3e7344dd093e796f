"""The agent of the dotted protocol's document: shell scripts and code analysis, by rules or by a model.

Its card is the document's. Without DRAGOMAN_MODEL_URL it answers from rules (`terminal/`): no model, no network.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman.cli.demo.terminal.review import code_in, review
from dragoman.cli.demo.terminal.solve import solve, unknown
from dragoman.model.json import JsonObject
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import Message
from dragoman.sdk.run.models import Model, ModelMessage, ModelReply, ModelRequest, asked, chat_completions
from dragoman.sdk.work.context import Context

AGENT_ID: Final = "terminal_bench_agent"
ARTIFACT: Final = "terminal_bench_solution"
SOLVE: Final = "terminal_problem_solving"
ANALYZE: Final = "code_analysis"
MODEL: Final = "gpt-4o-mini"  # the document's, where DRAGOMAN_MODEL_NAME names no other
INSTRUCTIONS: Final = (
    "You solve terminal and programming problems. Answer with the script or the analysis alone, without a preamble."
)
DESCRIPTION: Final = "An AI agent specialized in solving terminal bench problems and code analysis"
PROVIDER: Final = "Terminal Bench A2A Agent"
SOLVE_TAGS: Final = ("terminal", "programming", "system-admin", "bash", "shell")
SOLVE_EXAMPLES: Final = (
    "Write a bash script to find all files larger than 100MB",
    "Write a bash script to monitor disk usage",
)
ANALYZE_TAGS: Final = ("debugging", "analysis", "programming", "optimization")
ANALYZE_EXAMPLES: Final = ("Find the bug in this loop: for i in range(len(xs)): print(xs[i + 1])",)


def document_card(url: str) -> JsonObject:
    """The card that the dotted protocol's document prints, for an agent at that address."""
    modes: JsonObject = {"inputModes": ["text"], "outputModes": ["text"]}
    return {
        "name": AGENT_ID,
        "description": DESCRIPTION,
        "url": url,
        "version": "1.0.0",
        "provider": PROVIDER,
        "skills": [
            {
                "id": SOLVE,
                "name": "Terminal Problem Solving",
                "description": "Solve terminal-based programming and system administration problems",
                **modes,
                "tags": list(SOLVE_TAGS),
                "examples": list(SOLVE_EXAMPLES),
            },
            {
                "id": ANALYZE,
                "name": "Code Analysis",
                "description": "Analyze and debug code problems",
                **modes,
                "tags": list(ANALYZE_TAGS),
                "examples": list(ANALYZE_EXAMPLES),
            },
        ],
        "capabilities": {"streaming": False, "pushNotifications": False, "longRunningTasks": True},
        "metadata": {"model": MODEL, "framework": "OpenAI + FastAPI", "a2a_version": "1.0"},
    }


class TerminalBench(Agent):
    """The agent; what names no skill is a problem to be solved."""

    def __init__(self, model: Model | None) -> None:
        super().__init__(AGENT_ID, id=AGENT_ID, description=DESCRIPTION, provider=PROVIDER, tags=("demo", "terminal"))
        self._asks = model
        self.skill(name=SOLVE, tags=SOLVE_TAGS, examples=SOLVE_EXAMPLES)(self.terminal_problem_solving)
        self.skill(name=ANALYZE, tags=ANALYZE_TAGS, examples=ANALYZE_EXAMPLES)(self.code_analysis)

    @property
    def default_skill(self) -> str:
        """What a message that names no skill goes to."""
        return SOLVE

    async def terminal_problem_solving(self, text: str, ctx: Context) -> None:
        """Solve terminal-based programming and system administration problems"""
        if self._asks is not None:
            await ctx.artifact(await _by_model(self._asks, text, ctx), name=ARTIFACT)
            return
        earlier = _questions(ctx.history)
        solution = solve([*earlier, text], None if earlier else _referred(ctx))
        if solution is None and code_in(text) is not None:
            solution = review(text)
        if solution is None:
            ctx.refuse(unknown())
        await ctx.artifact(solution, name=ARTIFACT)

    async def code_analysis(self, text: str, ctx: Context) -> None:
        """Analyze and debug code problems"""
        if self._asks is not None:
            await ctx.artifact(await _by_model(self._asks, text, ctx), name=ARTIFACT)
            return
        found = review(text)
        while found is None:
            text = await ctx.ask("I see no code in this. Which code is to be looked at?")
            found = review(text)
        await ctx.artifact(found, name=ARTIFACT)


def terminal_bench(environ: Mapping[str, str] | None = None) -> Agent:
    """The agent, with a model where the environment names one."""
    environ = os.environ if environ is None else environ
    url = environ.get("DRAGOMAN_MODEL_URL")
    if not url:
        return TerminalBench(None)
    name = environ.get("DRAGOMAN_MODEL_NAME") or MODEL
    return TerminalBench(chat_completions(url, name, environ.get("DRAGOMAN_MODEL_KEY") or None))


async def _by_model(model: Model, text: str, ctx: Context) -> str:
    turns = [ModelMessage(role="assistant" if turn.role == "agent" else "user", text=turn.text) for turn in ctx.history]
    request = ModelRequest(
        instructions=INSTRUCTIONS,
        messages=(*(turn for turn in turns if turn.text), ModelMessage(role="user", text=text)),
    )
    answer = ""
    async for said in asked(model, request):
        if isinstance(said, ModelReply):
            answer = said.text
            if said.usage is not None:
                ctx.usage(
                    input_tokens=said.usage.input_tokens or 0,
                    output_tokens=said.usage.output_tokens or 0,
                    model=said.model,
                )
    return answer


def _questions(history: Sequence[Message]) -> list[str]:
    return [turn.text for turn in history if turn.role == "user" and turn.text]


def _referred(ctx: Context) -> str | None:
    """The words of the last artifact that the caller refers to."""
    texts = [artifact.text for reference in ctx.references for artifact in reference.artifacts if artifact.text]
    return texts[-1] if texts else None
