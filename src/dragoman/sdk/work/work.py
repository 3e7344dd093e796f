"""One call, carried out by its handler: in a task of its own, within its time, to exactly one last event.

    start ─▶ progress, chunk, artifact, ask, … ─▶ complete │ error │ cancelled │ rejected

Does not number or send what is said (`sdk/connect/connection.py` does), and does not count how many calls run at once.
"""

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, final

from dragoman.model.errors import AgentError, AgentTimeout, DragomanError, SkillNotFound
from dragoman.model.json import JsonObject
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.ports.clock import Clock, Timer
from dragoman.sdk.agent.signature import Bound, Function, is_async
from dragoman.sdk.agent.skills import Skill
from dragoman.sdk.content import Part, Text
from dragoman.sdk.scope import Scope, within
from dragoman.sdk.work.context import Context, Refused
from dragoman.sdk.work.handling import handling
from dragoman.sdk.work.incoming import Call, read_call
from dragoman.sdk.work.line import CallLine, Emit
from dragoman.sdk.work.returned import PARTS_ARTIFACT, Answer, answer_of, artifact_data, parts_of

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.client.client import A2AClient

CLEAN_UP_S: Final = 5.0  # for a handler that was told to end

_NOTHING: Final = object()
_log = logging.getLogger("dragoman.agent")


@final
class Work:
    """One call in the hands of its agent."""

    def __init__(
        self, agent: "Agent", call: JsonObject, *, emit: Emit, clock: Clock, client: "A2AClient | None"
    ) -> None:
        self.error: BaseException | None = None  # what the handler raised, for whoever tries it out
        self._agent = agent
        self._given = call
        self._clock = clock
        self._client = client
        self._line = CallLine(emit, clock)
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # the handler is done, or had its time to be
        self._end: tuple[str, JsonObject] | None = None
        self._late: float | None = None  # the time it had, when that is over
        self._in_thread = False
        self._timers: list[Timer] = []

    @property
    def asking(self) -> bool:
        """Whether it waits for its caller; it takes no capacity then."""
        return self._line.asking

    def answer(self, message: JsonObject) -> None:
        """What the caller said to its question."""
        self._line.answer(message)

    def cancel(self, reason: str) -> None:
        """Tell the handler to end: it has 5 s to clean up. A plain function has to look (`ctx.cancelled`)."""
        if not self._line.cancelled:
            _log.debug("%s is cancelled: %s", self._given.get("call_id"), reason)
            self._line.cancelled = True
            self._stop()

    async def run(self) -> None:
        """Carry the call out and tell all of it; returns when nothing of it runs any more."""
        line = self._line
        if line.cancelled:
            await line.end("cancelled", {})
            return
        async with asyncio.TaskGroup() as group:
            notes = group.create_task(line.tell_notes())
            await line.say("start", {})
            self._task = group.create_task(self._carry_out())
            self._task.add_done_callback(lambda _: self._settled.set())
            if line.cancelled:
                self._stop()
            try:
                await self._settled.wait()
            finally:
                for timer in self._timers:
                    timer.cancel()
            await line.end(*self._last())
            notes.cancel()

    def _stop(self) -> None:
        if self._task is None or self._settled.is_set():
            return
        if not self._in_thread:
            self._task.cancel()
        self._timers.append(self._clock.call_at(self._clock.monotonic() + CLEAN_UP_S, self._settled.set))

    def _expire(self, time_s: float) -> None:
        if not self._line.cancelled:
            self._late = time_s
            self._line.cancelled = True
            self._stop()

    def _last(self) -> tuple[str, JsonObject]:
        """The last event: what became of the handler, unless somebody ended it."""
        if self._late is not None:
            late = AgentTimeout(f"The agent was not done within {self._late:g} s.", timeout_ms=round(self._late * 1000))
            return _error_event(late)
        if self._line.cancelled:
            return "cancelled", {}
        if self._end is not None:
            return self._end
        return _error_event(_hidden(asyncio.CancelledError(), str(self._given.get("skill"))))

    # -- in the handler's own task

    async def _carry_out(self) -> None:
        try:
            call = read_call(self._given, self._clock)
            self._line.recorded(call.answers)
            skill = pick(self._agent, call.skill)
            scope = self._limited(call, skill)
            context = Context(call, self._line, clock=self._clock, scope=scope)
            with within(scope), handling(context):
                bound = skill.bind(call.input, call.message, context)
                answer = await self._answer(skill.function, bound)
                self._end = await self._completed(answer)
        except Refused as refused:
            self._end = "rejected", {"message": str(refused)}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler raises what it likes; its caller gets a word
            self.error = error
            self._end = _error_event(self._shown(error))

    def _limited(self, call: Call, skill: Skill) -> Scope:
        """The scope of the handler, with the time that the caller and the skill allow it."""
        allowed = [each for each in (call.time_s, skill.timeout_s) if each is not None]
        deadline = None
        if allowed:
            time_s = max(0.0, min(allowed))
            deadline = self._clock.monotonic() + time_s
            self._timers.append(self._clock.call_at(deadline, functools.partial(self._expire, time_s)))
        return Scope(
            call_id=call.id,
            conversation_id=call.conversation_id,
            trace_id=call.trace_id,
            span_id=call.span_id,
            traceparent=call.traceparent,
            deadline=deadline,
            client=self._client,
        )

    async def _answer(self, function: Function, bound: Bound) -> Answer:
        if is_async(function):
            value = function(*bound.args, **bound.kwargs)
        else:
            value = await self._threaded(functools.partial(function, *bound.args, **bound.kwargs))
        if inspect.isawaitable(value):
            value = await value
        if isinstance(value, AsyncIterator):
            return await self._streamed(value)  # pyright: ignore[reportUnknownArgumentType] - of whatever it yields
        if isinstance(value, Iterator):
            return await self._streamed(self._drawn(value))  # pyright: ignore[reportUnknownArgumentType] - of whatever it yields
        return answer_of(value)

    async def _threaded(self, function: Callable[[], object]) -> object:
        """Run a plain function in a thread, in this handler's context; it is waited for, come what may."""
        from dragoman.sdk.agent.agent import hidden_of  # agents are made of skills, and work is done for agents

        context = contextvars.copy_context()
        threads = hidden_of(self._agent).threads(self._agent.concurrency)
        self._in_thread = True
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, lambda: context.run(_unstopped, function))
        finally:
            self._in_thread = False

    async def _drawn(self, values: Iterator[object]) -> AsyncIterator[object]:
        """What a plain generator yields, each value drawn in a thread."""
        while not self._line.cancelled:
            value = await self._threaded(lambda: next(values, _NOTHING))
            if value is _NOTHING:
                return
            yield value

    async def _streamed(self, values: AsyncIterator[object]) -> Answer:
        """Words as chunks; a value at the end is the result; several values are all parts of the answer."""
        held: tuple[Part, ...] = ()
        pieces = 0
        async with AsyncExitStack() as stack:
            if isinstance(values, AsyncGenerator):
                stack.push_async_callback(values.aclose)
            async for value in values:
                if held:
                    await self._piece(held, pieces)
                    held, pieces = (), pieces + 1
                parts = parts_of(value)
                words = [part.text for part in parts if isinstance(part, Text) and not part.metadata]
                if len(words) < len(parts):
                    held = parts
                elif text := "".join(words):
                    await self._line.say("chunk", {"content": text})
        if pieces and held:
            await self._piece(held, pieces)
            return Answer()
        return answer_of(list(held)) if held else Answer()

    async def _piece(self, parts: tuple[Part, ...], before: int) -> None:
        await self._line.say("artifact", artifact_data(parts, id=PARTS_ARTIFACT, append=before > 0, last=False))

    async def _completed(self, answer: Answer) -> tuple[str, JsonObject]:
        """The end of a call that went well; parts go before it, beside the words that were streamed."""
        if answer.parts:
            beside = self._line.streamed and not any(isinstance(part, Text) for part in answer.parts)
            place = PARTS_ARTIFACT if beside else RESULT_ARTIFACT
            await self._line.say("artifact", artifact_data(answer.parts, id=place))
        shown: JsonObject = {"status": "completed"}
        if answer.result is not None:
            shown["result"] = answer.result
        if self._line.usage:
            shown["usage"] = dict(self._line.usage)
        return "complete", shown

    def _shown(self, error: BaseException) -> DragomanError:
        """What a caller gets to see of an error: ours as they are, of any other the name alone."""
        error = _only(error)
        if isinstance(error, DragomanError):
            return error
        skill = str(self._given.get("skill") or "the handler")
        _log.error("%s failed", skill, exc_info=error, extra={"fields": {"call_id": self._given.get("call_id")}})
        return _hidden(error, skill)


def pick(agent: "Agent", name: str | None) -> Skill:
    """The skill of that name; without one, whatever is there for messages: the default, else the only skill.

    Raises SkillNotFound listing the skills.
    """
    skills = agent.skills
    wanted = name or agent.default_skill or (next(iter(skills)) if len(skills) == 1 else "")
    if wanted in skills:
        return skills[wanted]
    listed = ", ".join(skills) or "none"
    if not wanted:
        raise SkillNotFound(
            f"Say which skill of {agent.id} is meant, in metadata.skill. It has: {listed}.", supported=list(skills)
        )
    raise SkillNotFound(f"Agent {agent.id} has no skill {wanted!r}. It has: {listed}.", supported=list(skills))


def _error_event(error: DragomanError) -> tuple[str, JsonObject]:
    failure = error.failure()
    shown: JsonObject = {"code": failure.code, "message": failure.message, "retryable": failure.retryable}
    if failure.details:
        shown["details"] = failure.details
    return "error", shown


def _only(error: BaseException) -> BaseException:
    """The error itself, where a task group wrapped it."""
    while isinstance(error, BaseExceptionGroup):
        inner: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of whatever
        if len(inner) != 1:
            break
        error = inner[0]
    return error  # pyright: ignore[reportUnknownVariableType] - of whatever


def _hidden(error: BaseException, skill: str) -> AgentError:
    """An unexpected error by its name alone: its words may hold secrets."""
    name = type(error).__name__
    return AgentError(f"{skill} failed: {name}", error=name)


def _unstopped(function: Callable[[], object]) -> object:
    """What a function gives; a StopIteration that leaves it would be lost on the way out of the thread."""
    try:
        return function()
    except StopIteration as error:
        raise RuntimeError("StopIteration") from error
