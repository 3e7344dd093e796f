"""smolagents: an agent runs in a thread, one call at a time, and is given each conversation's memory before it does.

Its steps are told as progress: what its model says on the way is thought and code, not the answer. A thread cannot be
stopped: who cancels waits for the end of the step.
"""

import contextlib
import importlib
import io
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, final

import msgspec

from dragoman.sdk.adapters.adapter import Answer, Offer, Options, Piece, Turn, Usage, Wrapped, in_thread
from dragoman.sdk.adapters.conversations import TURNS, Conversations
from dragoman.sdk.agent.schema import to_json
from dragoman.sdk.content import File

_END: Final = object()


def wrapped(obj: object, options: Options) -> Wrapped:
    """An agent that takes steps: a CodeAgent, a ToolCallingAgent, or one's own."""
    if not hasattr(obj, "memory") or not callable(getattr(obj, "run", None)):
        raise TypeError(f"A {type(obj).__qualname__} of smolagents does not run by itself: wrap an agent.")
    agent = _Stepping(obj)
    return Wrapped(name=agent.name, description=agent.description, skills=(Offer(run=agent.run),), concurrency=1)


class _Kept(msgspec.Struct):
    """What an agent remembers of one conversation: its steps, and the variables of its code."""

    steps: list[Any] | None = None  # None: there was no turn yet
    state: dict[str, Any] = {}
    variables: dict[str, Any] | None = None


@final
class _Stepping:
    """One agent, and what it is to remember of each conversation."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self.name: str = agent.name or type(agent).__name__
        self.description: str | None = agent.description or None
        state, variables = dict(agent.state), _variables(agent)
        self._talks: Conversations[_Kept] = Conversations(lambda: _Kept(state=state, variables=variables))

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One task, step by step. A turn that does not end is not remembered."""
        kept = self._talks.of(turn.conversation)
        before = _earlier(turn) if kept.steps is None else kept.steps
        taken = await in_thread(self._begin, turn, before, kept)
        told = len(before) + 1  # the task is a step of its own
        output: Any = None
        try:
            while (step := await in_thread(_next, taken)) is not _END:
                for done in self._agent.memory.steps[told:]:
                    told += 1
                    await turn.ctx.progress(message=_named(done))
                    if done.token_usage is not None:
                        yield self._usage(done.token_usage)
                if type(step).__name__ == "FinalAnswerStep":
                    output = step.output
        finally:
            _close(taken)
        kept.steps = _newest(self._agent.memory.steps)
        kept.state, kept.variables = dict(self._agent.state), _variables(self._agent)
        yield Answer(await in_thread(_answer, output))

    def _begin(self, turn: Turn, before: list[Any], kept: _Kept) -> Iterator[Any]:
        """Let the agent remember this conversation, and begin with the task."""
        self._agent.memory.steps = list(before)
        self._agent.monitor.reset()
        self._agent.state = dict(kept.state)
        if kept.variables is not None:
            self._agent.python_executor.state = dict(kept.variables)
        return self._agent.run(turn.text, stream=True, reset=False, images=_images(turn) or None)

    def _usage(self, used: Any) -> Usage:
        model = getattr(self._agent.model, "model_id", None)
        return Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens, model=model)


def _next(taken: Iterator[Any]) -> Any:
    return next(taken, _END)


def _variables(agent: Any) -> dict[str, Any] | None:
    """The variables of an agent's code, where it runs in this process."""
    state = getattr(getattr(agent, "python_executor", None), "state", None)
    return dict(state) if isinstance(state, dict) else None  # pyright: ignore[reportUnknownArgumentType] - of whatever


def _newest(steps: list[Any]) -> list[Any]:
    """The steps of the newest turns; each begins with its task."""
    tasks = [place for place, step in enumerate(steps) if hasattr(step, "task")]
    return steps[tasks[-TURNS] :] if len(tasks) > TURNS else list(steps)


def _earlier(turn: Turn) -> list[Any]:
    """What the hub knows of a conversation that is new here, as steps."""
    memory: Any = importlib.import_module("smolagents.memory")
    monitoring: Any = importlib.import_module("smolagents.monitoring")
    steps: list[Any] = []
    for number, said in enumerate(turn.ctx.history, 1):
        if said.role == "user":
            steps.append(memory.TaskStep(task=said.text))
        else:
            timing = monitoring.Timing(start_time=0.0, end_time=0.0)
            steps.append(memory.ActionStep(step_number=number, timing=timing, model_output=said.text))
    return steps


def _named(step: Any) -> str:
    """What a step did, in a word: the tools it called."""
    called = ", ".join(dict.fromkeys(call.name for call in getattr(step, "tool_calls", None) or ()))
    return f"step {step.step_number}: {called or 'thinking'}" if hasattr(step, "step_number") else "planning"


def _close(taken: Iterator[Any]) -> None:
    """End a run that may be in the middle of a step: it has one more thing to say, and is ended at that."""
    for _ in range(2):
        with contextlib.suppress(RuntimeError, ValueError):
            taken.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a generator


def _images(turn: Turn) -> list[Any]:
    images: Any = importlib.import_module("PIL.Image")
    sent = [file.bytes for file in turn.files if file.bytes and (file.mime_type or "").startswith("image/")]
    return [images.open(io.BytesIO(raw)) for raw in sent]


def _answer(output: Any) -> object:
    """What an agent answered: text and values as they are, pictures and sounds as files, anything else in words."""
    match type(output).__name__:
        case "AgentText":
            return str(output)
        case "AgentImage":
            drawn = io.BytesIO()
            output.to_raw().save(drawn, format="PNG")
            return File(bytes=drawn.getvalue(), name="image.png", mime_type="image/png")
        case "AgentAudio":
            return File(bytes=Path(output.to_string()).read_bytes(), name="audio.wav", mime_type="audio/wav")
        case _:
            try:
                return to_json(output)
            except (TypeError, ValueError, RecursionError):
                return str(output)
