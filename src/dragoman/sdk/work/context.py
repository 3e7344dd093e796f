"""What a handler knows of its call, and may do about it: report, ask, refuse, call others."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeVar, Unpack, overload

import msgspec

from dragoman.model.json import Json, JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.agent.schema import schema_of
from dragoman.sdk.client.asking import CallOptions, Filters
from dragoman.sdk.content import Message
from dragoman.sdk.errors import HubUnreachable
from dragoman.sdk.scope import Scope, within
from dragoman.sdk.work.call_log import CallLog
from dragoman.sdk.work.incoming import Call, Caller, Reference
from dragoman.sdk.work.questions import answer_as, asked_again
from dragoman.sdk.work.returned import artifact_data, parts_of

if TYPE_CHECKING:
    from dragoman.sdk.client.client import A2AClient
    from dragoman.sdk.client.results import CallResult, FoundAgent, StreamEvent

T = TypeVar("T")


class Refused(Exception):
    """The handler refused the call."""


class Line(Protocol):
    """What leads from a handler to its caller."""

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        ...

    async def say(self, event: str, data: JsonObject) -> None:
        """Tell something of the call; waits while too much is on its way."""
        ...

    def note(self, event: str, data: JsonObject) -> None:
        """Tell it when there is time; from any thread."""
        ...

    async def ask(self, event: Literal["ask", "auth"], data: JsonObject, timeout_s: float | None) -> Message:
        """Ask the caller, and wait for the answer. Raises AgentTimeout."""
        ...


class Context:
    """One call, to the handler that carries it out."""

    def __init__(self, call: Call, line: Line, *, clock: Clock, scope: Scope) -> None:
        self._call = call
        self._line = line
        self._clock = clock
        self._scope = scope
        self._usage: JsonObject = {}
        self._artifacts = 0
        self._artifact = ""  # the id of the last one
        self.log = CallLog(call.id, line, clock)

    def __repr__(self) -> str:
        return f"<Context of {self._call.id}>"

    # -- to the caller

    async def progress(self, progress: float | None = None, message: str | None = None) -> None:
        """Say how far the work is, from 0 to 1, or what is being done."""
        shown: JsonObject = {}
        if progress is not None:
            shown["progress"] = min(1.0, max(0.0, float(progress)))
        if message is not None:
            shown["message"] = message
        await self._line.say("progress", shown)

    async def stream(self, text: str) -> None:
        """Send a chunk of the answer."""
        if text:
            await self._line.say("chunk", {"content": text})

    async def artifact(
        self,
        content: object,
        *,
        name: str | None = None,
        id: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        append: bool = False,
        last: bool = True,
    ) -> str:
        """Send an output beside the answer, whole or in pieces; returns its id.

        Its id is `id`, else its name, else made up; one that was used before is replaced. `append=True` adds a piece to
        it (without id and name, to the last one), `last=False` says that more will follow.
        """
        if not (id or name) and not (append and self._artifact):
            self._artifacts += 1
        self._artifact = id or name or (append and self._artifact) or f"artifact-{self._artifacts}"
        shown = artifact_data(
            parts_of(content),
            id=self._artifact,
            name=name,
            description=description,
            mime_type=mime_type,
            append=append,
            last=last,
        )
        await self._line.say("artifact", shown)
        return self._artifact

    @overload
    async def ask(self, prompt: str, schema: None = None, timeout_s: float | None = None) -> str: ...
    @overload
    async def ask(self, prompt: str, schema: type[T], timeout_s: float | None = None) -> T: ...
    @overload
    async def ask(self, prompt: str, schema: object, timeout_s: float | None = None) -> Any: ...
    async def ask(self, prompt: str, schema: object = None, timeout_s: float | None = None) -> Any:
        """Ask the caller and wait; the answer as `schema`, a type, else its words. One that does not fit is asked
        for again.

        When the call is delivered once more after a crash, what was answered before is returned at once. Raises
        AgentTimeout where no answer comes within `timeout_s`.
        """
        shown: JsonObject = {} if schema is None else {"schema": schema_of(schema)}
        question = prompt
        while True:
            answer = await self._line.ask("ask", {"prompt": question, **shown}, timeout_s)
            try:
                return answer_as(answer, schema)
            except msgspec.ValidationError as error:
                question = asked_again(prompt, error)

    async def require_auth(self, message: str) -> Message:
        """Say that the caller has to authenticate elsewhere first; returns what it says after that."""
        return await self._line.ask("auth", {"message": message}, None)

    def refuse(self, message: str) -> NoReturn:
        """End the call as rejected."""
        raise Refused(message)

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost_usd: float = 0.0,
        model: str | None = None,
    ) -> None:
        """Note what was used up; the call's account is the sum."""
        added = {"input_tokens": input_tokens, "output_tokens": output_tokens, "cost_usd": cost_usd}
        for name, value in added.items():
            if value:
                self._usage[name] = self._usage.get(name, 0) + value
        if model is not None:
            self._usage["model"] = model
        self._line.note("usage", dict(self._usage))

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled: a plain function has to look, an async one is told."""
        return self._line.cancelled

    # -- to other agents, with this call as parent

    async def call(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        **options: Unpack[CallOptions],
    ) -> "CallResult":
        """Call an agent, as the client does."""
        with within(self._scope):
            return await self._client.call(target, skill, input, **options)

    def stream_call(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        **options: Unpack[CallOptions],
    ) -> "AsyncIterator[StreamEvent]":
        """Call an agent and hear what it does, as the client does."""
        return self._client.stream(target, skill, input, **options)

    def discover(self, skill: str | None = None, **filters: Unpack[Filters]) -> "AsyncIterator[FoundAgent]":
        """Find agents, as the client does."""
        return self._client.discover(skill, **filters)

    @property
    def _client(self) -> "A2AClient":
        client = self._scope.client
        if client is None:
            raise HubUnreachable(
                "This call was made without a hub, so there are no other agents.",
                next="Pass client=… to agent.test.call, or use dragoman.testing.hub().",
            )
        return client

    # -- what is known of it

    @property
    def call_id(self) -> str:
        """The call's id, the same on every attempt."""
        return self._call.id

    @property
    def attempt(self) -> int:
        """Which delivery of the call this is, from 1."""
        return self._call.attempt

    @property
    def skill(self) -> str | None:
        """The skill that was called; None for a message that names none."""
        return self._call.skill

    @property
    def message(self) -> Message:
        """What was sent, as a message."""
        return self._call.message

    @property
    def caller(self) -> Caller:
        """Who calls."""
        return self._call.caller

    @property
    def conversation_id(self) -> str:
        """The conversation that the call belongs to."""
        return self._call.conversation_id

    @property
    def trace_id(self) -> str | None:
        """The trace that the call belongs to."""
        return self._call.trace_id

    @property
    def priority(self) -> str:
        """low, normal, high or urgent."""
        return self._call.priority

    @property
    def metadata(self) -> JsonObject:
        """What the caller said beside its input."""
        return self._call.metadata

    @property
    def history(self) -> tuple[Message, ...]:
        """Earlier turns of this conversation with this caller, oldest first."""
        return self._call.history

    @property
    def references(self) -> tuple[Reference, ...]:
        """Earlier calls that the message refers to, with their artifacts."""
        return self._call.references

    @property
    def deadline(self) -> datetime | None:
        """When the answer has to be there."""
        return self._call.deadline

    @property
    def remaining_s(self) -> float | None:
        """How many seconds are left, never less than 0."""
        deadline = self._scope.deadline
        return None if deadline is None else max(0.0, deadline - self._clock.monotonic())
