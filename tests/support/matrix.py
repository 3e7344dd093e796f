"""The any-to-any matrix: every dialect's caller, every dialect's agent, and what each pair must show.

Both lists come from the dialects themselves; what is expected of a pair is computed from what the two dialects offer
(`Feature`) and from the words that each has for an outcome. No pair has a line of its own.
"""

import importlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.model.fit import Feature
from tests.support.hub import HubProcess
from tests.support.speaking import Caller, Content, File, StubAgent

TEXT: Final = Content(text="hello, wörld ✓")
DATA: Final = Content(data={"q": "ü", "n": 2**60 + 1, "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}})
BYTES: Final = Content(file=File(raw=b"\x00\xff\x10 bytes", name="a b.bin", media_type="application/x-thing"))
LINK: Final = Content(file=File(uri="https://example.com/f.pdf?x=1", name="f.pdf", media_type="application/pdf"))
KINDS: Final = {"text": TEXT, "data": DATA, "file by bytes": BYTES, "file by uri": LINK}

OPERATIONS: Final = (*KINDS, "follow-up", "get", "cancel", "agent error", "timeout", "unknown agent")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect shows an outcome: as a state of the task, or as an error of its own."""

    state: str | None = None
    error: str | int | None = None
    status: int = 200


# One line for each dialect that has words of its own: the agent failed, ran out of time, is not known.
FAILED: Final[dict[str, Words]] = {
    "envelope": Words(state="failed", error="INTERNAL_ERROR"),
    "platform": Words(state="failed", error="AGENT_ERROR", status=502),
    "directory": Words(state="failed", error=-32001),
}
TIMED_OUT: Final[dict[str, Words]] = {
    "envelope": Words(state="failed", error="TIMEOUT"),
    "platform": Words(state="failed", error="AGENT_TIMEOUT", status=504),
    "directory": Words(state="failed", error=-32002),
}
UNKNOWN: Final[dict[str, Words]] = {
    "envelope": Words(error="AGENT_NOT_FOUND", status=404),
    "platform": Words(error="AGENT_NOT_FOUND", status=404),
    "directory": Words(status=404),  # its clients ask for the agent's record first
}
SHOWN_AS_STATE: Final = Words(state="failed")
NO_SUCH_AGENT: Final = Words(error=-32000, status=404)


class Carded(Protocol):
    """An agent that has a card."""

    card: dict[str, Any]


CallerT = TypeVar("CallerT")
AgentT = TypeVar("AgentT", bound=Carded)


class MatrixWorld(Generic[CallerT, AgentT]):
    """One hub, a caller of each dialect, and agents as they are needed."""

    def __init__(
        self,
        hub: HubProcess,
        stack: ExitStack,
        caller_of: Callable[[Dialect], Callable[[str, str], CallerT]],
        agent_of: Callable[[Dialect], AbstractContextManager[AgentT]],
    ) -> None:
        self.hub = hub
        self._stack = stack
        self._caller_of = caller_of
        self._agent_of = agent_of
        self._callers: dict[str, CallerT] = {}
        self._agents: dict[str, tuple[str, AgentT]] = {}

    def caller(self, dialect: Dialect) -> CallerT:
        """The caller that speaks a dialect."""
        if dialect.slug not in self._callers:
            self._callers[dialect.slug] = self._caller_of(dialect)(self.hub.url, self.hub.token or "")
        return self._callers[dialect.slug]

    def agent(self, dialect: Dialect) -> tuple[str, AgentT]:
        """An agent that speaks a dialect, and its id at the hub."""
        if dialect.slug not in self._agents:
            agent = self._stack.enter_context(self._agent_of(dialect))
            body = {"agent_card": agent.card, "id": f"stub-{dialect.slug}", "dialect": dialect.slug}
            reply = self.hub.request("POST", "/v1/a2a/registry", body)
            assert reply.status == 201, reply.body
            self._agents[dialect.slug] = (reply.json["id"], agent)
        return self._agents[dialect.slug]


def cells(operations: Iterable[str]) -> list[tuple[Dialect, Dialect, str]]:
    """Every caller's dialect with every target's and every operation."""
    every = DIALECTS.values()
    return [(caller, target, operation) for caller in every for target in every for operation in operations]


def cell_name(value: object) -> str:
    """How a dialect or an operation is named in the name of a test."""
    return value.slug if isinstance(value, Dialect) else str(value)


def caller_of(dialect: Dialect) -> Callable[[str, str], Caller]:
    """The stub caller that speaks a dialect."""
    module = importlib.import_module(f"tests.support.callers.{dialect.name}")
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and vars(value).get("slug") == dialect.slug:
            return value
    raise LookupError(f"tests/support/callers/{dialect.name}.py has no class with the slug {dialect.slug}")


def agent_of(dialect: Dialect) -> Callable[[], AbstractContextManager[StubAgent]]:
    """The stub agent that speaks a dialect."""
    made: Any = importlib.import_module(f"tests.support.agents.{dialect.name}").agent
    return made


def takes_objects(dialect: Dialect) -> bool:
    """Whether the dialect knows one JSON object instead of parts."""
    return Feature.PARTS not in dialect.features


def comes_back(caller: Dialect, target: Dialect, sent: Content) -> Content:
    """What a caller sees of the content it sent, when the target repeats it."""
    if sent.text is not None and takes_objects(target) and not takes_objects(caller):
        return Content(data={"text": sent.text})  # the target answered with an object, which stays one
    return sent


def is_told_to_stop(target: Dialect, *, waited: bool) -> bool:
    """Whether a target hears of a cancel: not while the hub waits for the very answer that would name the task."""
    names_it_late = Feature.ANSWERS in target.features and Feature.GET in target.features
    return Feature.CANCEL in target.features and not (waited and names_it_late)


def hosts(caller: Dialect, target: Dialect) -> bool:
    """Whether a file's bytes become a link to the hub on the way there or back."""
    return any(Feature.PARTS in each.features and Feature.INLINE not in each.features for each in (caller, target))
