"""Try an agent's skills here and now: the same work as in a hub's service, without hub or socket.

tried = await agent.test.call("web_search", {"query": "x"}, answers=["5"])
assert tried.result == {…}
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.model.errors import AgentError, DragomanError, Failure, error_of
from dragoman.model.json import Json, JsonObject
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.content import Artifact, Message, Part, artifact_from_wire, message_of, message_to_wire
from dragoman.sdk.errors import CallCancelled, InputRequired
from dragoman.sdk.work.work import Work

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.client.client import A2AClient

TIME_S: Final = 30.0
_ENDS: Final = frozenset({"complete", "error", "cancelled", "rejected"})


class Event(msgspec.Struct, frozen=True):
    """One thing that the handler told."""

    name: str
    data: JsonObject


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call: its result as it was returned (streamed words put together), and what was told before."""

    result: Json
    events: tuple[Event, ...]
    artifacts: tuple[Artifact, ...] = ()
    usage: JsonObject = {}

    @property
    def text(self) -> str:
        """The words of the answer."""
        if isinstance(self.result, str):
            return self.result
        return "".join(artifact.text for artifact in self.artifacts)


class Trying:
    """`agent.test`."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    async def call(
        self,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        *,
        message: str | Part | Message | None = None,
        answers: Iterable[str | Part | Message | Json] = (),
        history: Sequence[Message] = (),
        caller: str = "agt_tester",
        conversation_id: str = "conv_test",
        metadata: Mapping[str, Json] | None = None,
        timeout_s: float = TIME_S,
        client: "A2AClient | None" = None,
        clock: Clock | None = None,
    ) -> Tried:
        """Call a skill, or say a message to what answers those; `answers` are given to its questions in turn.

        Raises what the call fails with (an unexpected error of the handler is the cause of its AgentError),
        InputRequired for a question that no answer is left for.
        """
        clock = clock or SystemClock()
        said = None if message is None else message_to_wire(message_of(message))
        call: JsonObject = {
            "call_id": clock.new_id("a2a_call_"),
            "caller_agent_id": caller,
            "target_agent_id": self._agent.id,
            "skill": skill,
            "input": None if said is not None and input is None else dict(input or {}),
            "options": {"timeout_ms": round(timeout_s * 1000), "priority": "normal", "stream": True},
            "context": {"conversation_id": conversation_id, "call_chain": [caller], "metadata": dict(metadata or {})},
            "attempt": 1,
            "caller": {"id": caller, "name": caller, "kind": "agent", "dialect": "platform", "scopes": ["a2a:call"]},
            "message": said,
            "history": [message_to_wire(each) for each in history],
        }
        return await _Attempt(self._agent, call, list(answers), clock, client).run()


class _Attempt:
    """One call that is tried, and all that was told of it: as much as the handler tells."""

    def __init__(
        self, agent: "Agent", call: JsonObject, answers: list[Json], clock: Clock, client: "A2AClient | None"
    ) -> None:
        self._answers = answers
        self._events: list[Event] = []
        self._question: InputRequired | None = None
        self._work = Work(agent, call, emit=self._hear, clock=clock, client=client)

    async def run(self) -> Tried:
        await self._work.run()
        last = self._events[-1]
        if self._question is not None:
            raise self._question
        match last.name:
            case "complete":
                return self._tried(last.data)
            case "rejected":
                raise AgentError(str(last.data["message"]), reason="rejected")
            case "cancelled":
                raise CallCancelled
            case _:
                raise self._failure(last.data) from self._work.error

    async def _hear(self, name: str, data: JsonObject) -> None:
        self._events.append(Event(name, data))
        if name not in ("ask", "auth"):
            return
        if self._answers:
            self._work.answer(message_to_wire(message_of(self._answers.pop(0))))
        else:
            self._question = InputRequired(
                str(data.get("prompt") or data.get("message")), next="Give agent.test.call one more of answers=[…]."
            )
            self._work.cancel("no answer is left")

    def _tried(self, end: JsonObject) -> Tried:
        said = "".join(event.data["content"] for event in self._events if event.name == "chunk")
        result = end.get("result")
        return Tried(
            result=said or None if result is None else result,
            events=tuple(self._events),
            artifacts=_artifacts(self._events),
            usage=end.get("usage", {}),
        )

    def _failure(self, data: JsonObject) -> DragomanError:
        raised = self._work.error
        return raised if isinstance(raised, DragomanError) else error_of(msgspec.convert(data, Failure))


def _artifacts(events: Iterable[Event]) -> tuple[Artifact, ...]:
    """The artifacts, each of its pieces."""
    found: dict[str, Artifact] = {}
    for event in events:
        if event.name == "artifact":
            piece = artifact_from_wire(event.data)
            known = found.get(piece.id)
            if known is not None and event.data["append"]:
                piece = msgspec.structs.replace(known, parts=known.parts + piece.parts)
            found[piece.id] = piece
    return tuple(found.values())
