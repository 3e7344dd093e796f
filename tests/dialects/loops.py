"""Both halves of a dialect closed into a loop: what one hub says in it, another hub hears.

    there   SendTask → ask ─── HTTP request ───→ read → SendTask
    back        Task → reply ── HTTP reply ────→ hear → events, folded into the task as the asking hub has it

A task comes back by three ways: as the answer to its sending, as the answer to a later question, or by report.
"""

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Exchange, Heard, Notice, Outgoing, Verb
from dragoman.dialects.hints import HINTS
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Blob
from dragoman.model.events import Happened, Remote, StatusChanged, TaskEvent
from dragoman.model.fit import Feature, fit_parts, hosted
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_array, is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import ReportTask, SendTask
from dragoman.model.task import Task
from dragoman.server.exchange import spoken_of
from tests.dialects.goldens import AT, HUB, HUB_ID, LATER, UUID, task_of
from tests.support.urls import arrived, found_at, url_table

ANSWER, POLL, REPORT = "answer", "poll", "report"
AGENT = "agt_target"
TIMEOUT_MS = 29_950


class Wire(msgspec.Struct, frozen=True):
    """A dialect in one of its framings."""

    dialect: Dialect
    binding: Binding

    @property
    def name(self) -> str:
        """For the test's name."""
        return f"{self.dialect.slug}{'' if self.binding is Binding.JSONRPC else '-http'}"

    @property
    def endpoint(self) -> Endpoint:
        """Where the other hub is called: at the dialect's own mount of an agent."""
        return Endpoint(
            dialect=self.dialect.slug, binding=self.binding, url=f"{HUB}/agents/{AGENT}/{self.dialect.slug}"
        )

    @property
    def features(self) -> frozenset[Feature]:
        """What the dialect offers in this framing."""
        return self.dialect.features - self.dialect.lacks.get(self.binding, frozenset())

    @property
    def ways(self) -> tuple[str, ...]:
        """How the one who asked learns what became of a task."""
        features = self.features
        if Feature.REPORTS in features:
            return (REPORT,)
        answers = (ANSWER,) if Feature.ANSWERS in features else ()
        return (*answers, POLL) if Feature.GET in features else answers


WIRES = tuple(
    Wire(dialect, binding)
    for dialect in DIALECTS.values()
    for binding in sorted(dialect.bindings, reverse=True)
    if dialect.read is not None
)
WAYS = tuple((wire, way) for wire in WIRES for way in wire.ways)
EVERY_WIRE = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
EVERY_WAY = pytest.mark.parametrize(("wire", "way"), WAYS, ids=lambda value: getattr(value, "name", value))

_TABLES = {dialect.slug: url_table([dialect]) for dialect in DIALECTS.values()}


# -- there


def outgoing_of(wire: Wire, asked: SendTask, verb: Verb = Verb.SEND, task: Task | None = None) -> Outgoing:
    """A request to the other hub; its message made to fit the wire, as admission does it."""
    task = task or opened(asked)
    message = None
    if verb in (Verb.SEND, Verb.STREAM):
        parts = fit_parts(asked.message.parts, wire.features, text_only=False, host=_hosted)
        message = msgspec.structs.replace(asked.message, parts=parts)
    return Outgoing(
        verb=verb,
        task=task,
        asked=asked,
        endpoint=wire.endpoint,
        at=AT,
        message=message,
        caller="agt_caller",
        timeout_ms=TIMEOUT_MS,
        hub_url=HUB,
        hub_id=HUB_ID,
    )


def arriving(wire: Wire, asked: HttpRequest, *, stranger: bool = False) -> Exchange:
    """What the other hub makes of a request to it; a stranger knows nothing of the block that hubs tell each other."""
    if stranger:
        asked = msgspec.structs.replace(asked, body=_without_block(asked.body))
    assert asked.url.startswith(HUB), asked.url
    read, url = wire.dialect.read, asked.url.removeprefix(HUB)
    assert read is not None
    found = found_at(_TABLES[wire.dialect.slug], asked.method, url)
    return read(arrived(found, asked.method, url, headers=asked.headers, body=asked.body, at=AT, hub=HUB))


def sent_and_read(wire: Wire, asked: SendTask, task: Task | None = None, *, stranger: bool = False) -> Exchange:
    """`read(ask(…))`."""
    request = wire.dialect.ask(outgoing_of(wire, asked, task=task))
    assert request is not None
    return arriving(wire, request, stranger=stranger)


def opened(asked: SendTask) -> Task:
    """The task at the hub that asks, before anything came back."""
    task = task_of({"dialect": "platform"})
    return msgspec.structs.replace(
        task, asked=asked, skill=asked.skill, context_id=asked.context_id or "ctx-made", parent_id=asked.parent_id
    )


# -- back


def shown_and_heard(wire: Wire, way: str, task: Task, *, stranger: bool = False) -> Task:
    """`hear(reply(task))`, folded: the task as the hub has it that asked for it."""
    asked = opened(task.asked)
    events = _reported(wire, task, stranger) if way == REPORT else _heard(wire, way, task, stranger).events
    return fold(asked, legal(asked.state, events))


def heard_again(wire: Wire, way: str, task: Task, known: Task) -> Task:
    """The same for a hub that has heard of the task before, when it hears of it once more."""
    return fold(known, legal(known.state, _heard(wire, way, task, stranger=False, known=known).events))


def _heard(wire: Wire, way: str, task: Task, stranger: bool, known: Task | None = None) -> Heard:
    asking = msgspec.structs.replace(known or opened(task.asked), remote=Remote(task_id=task.id))
    out = outgoing_of(wire, task.asked, Verb.SEND if way == ANSWER else Verb.GET, asking)
    request = wire.dialect.ask(out)
    assert request is not None
    reply = replied(wire, arriving(wire, request), task)
    if stranger:
        reply = msgspec.structs.replace(reply, body=_without_block(reply.body))
    return wire.dialect.hear(out, reply, LATER)


def replied(wire: Wire, exchange: Exchange, task: Task) -> HttpReply:
    """The reply as the server sends it: with links in place of files where the dialect takes none inside."""
    return exchange.reply(task if spoken_of(wire.dialect).inline else without_files(task))


def notified(wire: Wire, task: Task) -> HttpRequest:
    """What the hub posts of a task to the one that gave it."""
    notify = wire.dialect.notify
    assert notify is not None
    event = StatusChanged(
        at=LATER,
        state=task.state,
        message=task.status_message,
        progress=task.progress,
        failure=task.failure,
        usage=task.usage,
    )
    notice = Notice(
        callback=Callback(id="cb_1", dialect=wire.dialect.slug, agent_id=UUID, tells=Tells.STATES),
        task=task,
        happened=Happened(seq=3, event=event),
        url=HUB,
        recipient=UUID,
        hub_url=HUB,
        hub_id=HUB_ID,
        at=LATER,
    )
    request = notify(notice)
    assert request is not None
    return request


def _reported(wire: Wire, task: Task, stranger: bool) -> tuple[TaskEvent, ...]:
    operation = arriving(wire, notified(wire, task), stranger=stranger).operation
    assert isinstance(operation, ReportTask), operation
    return operation.events


def without_files(task: Task) -> Task:
    """The task with links in place of the files in its messages and artifacts."""
    asked = task.asked
    replace = msgspec.structs.replace
    words = task.status_message
    return replace(
        task,
        asked=replace(asked, message=replace(asked.message, parts=hosted(asked.message.parts, _hosted))),
        messages=tuple(replace(message, parts=hosted(message.parts, _hosted)) for message in task.messages),
        artifacts=tuple(replace(artifact, parts=hosted(artifact.parts, _hosted)) for artifact in task.artifacts),
        status_message=None if words is None else replace(words, parts=hosted(words.parts, _hosted)),
    )


def _hosted(index: int, part: Blob) -> str:
    return f"{HUB}/files/{index}-{len(part.raw)}"


def _without_block(body: bytes) -> bytes:
    return msgspec.json.encode(_stripped(msgspec.json.decode(body))) if body else body


def _stripped(value: Json) -> Json:
    if is_object(value):
        return {name: _stripped(item) for name, item in value.items() if name != HINTS}
    return [_stripped(item) for item in value] if is_array(value) else value
