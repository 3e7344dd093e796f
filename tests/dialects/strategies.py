"""What people and agents might say, drawn at random: content, calls, and tasks as the events that made them."""

from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from dragoman.dialects.hints import HINTS
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    ContentRefused,
    DragomanError,
    InputRefused,
    RateLimited,
    SkillNotFound,
)
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent, Usage
from dragoman.model.lifecycle import fold
from dragoman.model.operations import Priority, SendTask, Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.task import Task
from tests.dialects.goldens import LATER, task_of

Drawn = TypeVar("Drawn")

SETTLED = tuple(state for state in TaskState if state in FINAL or state in INTERRUPTED)
# Names that mean something to the hub itself: what a caller puts there is for the hub.
_OURS = frozenset({HINTS, "skill", "agentId", "reply_to", "awaiting", "tenant"})

TEXTS = st.text(max_size=20) | st.sampled_from(
    ["", "hello, wörld ✓", "🜁", "\x00", "\u2028\ufeff", "{", '{"a": 1}', "[1]", "null", " a ", "a\r\nb", "%41", "</p>"]
)
WORDS = st.text(min_size=1, max_size=12)
NUMBERS = (
    st.integers()
    | st.sampled_from([2**53 + 1, -(2**53) - 1, 2**63, 2**64, 10**30, -(10**30), 0.1, 1e-9, 1e300, 1.0])
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)
METADATA = OBJECTS.map(lambda each: {name: value for name, value in each.items() if name not in _OURS} or None)
MEDIA_TYPES = st.none() | st.sampled_from(["text/markdown", "application/json; charset=utf-8", "image/png"])
FILENAMES = st.none() | st.sampled_from(["a.txt", "ü b.bin", "../../x"])
ABOUT: dict[str, st.SearchStrategy[Any]] = {
    "media_type": MEDIA_TYPES,
    "filename": FILENAMES,
    "metadata": st.none() | METADATA,
}
URLS = st.sampled_from(["https://example.com/f.pdf?x=1&y=ü", "http://localhost:1/x", "gs://bucket/x", "data:,x"])
BYTES = st.binary(max_size=12) | st.sampled_from([b"", b"AAAA", b"QUFBQQ==", b"\xff" * 3])
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=TEXTS, **ABOUT),
    st.builds(Data, value=JSON, **ABOUT),
    st.builds(Data, value=OBJECTS, **ABOUT),
    st.builds(Blob, raw=BYTES, **ABOUT),
    st.builds(Link, url=URLS, **ABOUT),
)


def _several(each: st.SearchStrategy[Drawn], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[Drawn, ...]]:
    return st.lists(each, min_size=least, max_size=most).map(lambda found: tuple(found))


def messages(*roles: Role) -> st.SearchStrategy[Message]:
    """Messages of these speakers."""
    return st.builds(
        Message,
        id=WORDS,
        role=st.sampled_from(roles),
        parts=_several(PARTS, least=1),
        references=_several(WORDS, most=2),
        extensions=_several(WORDS, most=2),
        metadata=METADATA,
    )


ARTIFACTS = st.builds(
    Artifact,
    id=WORDS,
    parts=_several(PARTS, least=1),
    name=st.none() | WORDS,
    description=st.none() | WORDS,
    kind=st.none() | st.sampled_from(["report", "result", "code"]),
    extensions=_several(WORDS, most=2),
    metadata=METADATA,
)
USAGES = st.builds(
    Usage,
    tokens=st.none() | st.integers(0, 10**9),
    input_tokens=st.none() | st.integers(0, 10**9),
    output_tokens=st.none() | st.integers(0, 10**9),
    cost_usd=st.none() | st.sampled_from([0.0, 0.25, 9999.5]),
    execution_ms=st.none() | st.integers(0, 10**9),
    other=st.none() | st.just({"images": 2}),
)
SENDS = st.builds(
    SendTask,
    message=messages(*Role),
    skill=WORDS,
    context_id=WORDS,
    wait=st.sampled_from([Wait.END, Wait.NONE]),
    priority=st.sampled_from(Priority),
    parent_id=st.none() | WORDS,
    title=st.none() | WORDS,
    description=st.none() | WORDS,
    accepts=st.sampled_from([(), ("text/plain", "image/*")]),
    extensions=st.sampled_from([(), ("https://x.test/e/v1", "urn:y")]),
    metadata=METADATA,
)
FAULTS: tuple[type[DragomanError], ...] = (
    *(AgentError, AgentTimeout, AgentUnavailable, BadAgentReply),
    *(ContentRefused, InputRefused, RateLimited, SkillNotFound),
)


def _fault(error_class: type[DragomanError], words: str) -> DragomanError:
    return error_class(words)


ERRORS = st.builds(_fault, st.sampled_from(FAULTS), WORDS)
SPOKEN = messages(Role.AGENT, Role.AGENT, Role.SYSTEM, Role.TOOL)


@st.composite
def tasks(draw: st.DrawFn, states: tuple[TaskState, ...]) -> Task:
    """A task that has come to one of these states, by what its agent said and made on the way."""
    state = draw(st.sampled_from(states))
    asked = draw(SENDS)
    task = msgspec.structs.replace(task_of({"id": "task-7"}), asked=asked)
    events: list[TaskEvent] = []
    if state in SETTLED:
        said = draw(st.lists(SPOKEN, max_size=2, unique_by=_id))
        events += [MessageAdded(at=LATER, message=each) for each in said if each.id != asked.message.id]
        events += [
            ArtifactChunk(at=LATER, artifact=made) for made in draw(st.lists(ARTIFACTS, max_size=3, unique_by=_id))
        ]
    broken = draw(st.booleans()) if state is TaskState.FAILED else False
    events.append(
        StatusChanged(
            at=LATER,
            state=state,
            message=None if broken else draw(st.none() | messages(Role.AGENT)),
            progress=None if state in FINAL else draw(st.none() | st.sampled_from([0.0, 0.25, 1.0])),
            failure=draw(ERRORS).failure() if broken else None,
            usage=draw(st.none() | USAGES),
        )
    )
    return fold(task, events)


def _id(holder: Message | Artifact) -> str:
    return holder.id
