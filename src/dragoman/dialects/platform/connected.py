"""What the hub says to an agent that connected to it: calls, answers to its questions, and that a call is cancelled.

A call is what a platform agent is sent over HTTP, and beside it everything that only such a connection has room for.
What the agent says in return is heard in `connected_events.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from dragoman.dialects.dialect import Outgoing
from dragoman.dialects.platform.card import SLUG, read_card
from dragoman.dialects.platform.connected_parts import artifact_object, message_object
from dragoman.dialects.platform.outbound import call_body
from dragoman.dialects.times import wire_time
from dragoman.model.agent import AgentCard, Endpoint, Original, Via
from dragoman.model.call import AdmittedCall, Caller
from dragoman.model.content import REFERENCED, Artifact, Message, Role
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import history_of, output_of
from dragoman.model.objects import input_object, read_plain_part
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task

MOST_TURNS: Final = 50  # of a conversation that an agent is told with a call

FEATURES: Final = frozenset(
    {Feature.ANSWERS, Feature.STREAM, Feature.CANCEL, Feature.CONTINUE, Feature.PARTS, Feature.INLINE}
)
ENDPOINT: Final = Endpoint(dialect=SLUG, via=Via.CONNECTED, features=FEATURES)
_NOWHERE: Final = "connected"  # stands where a card has to have an endpoint


def read_connected_card(card: JsonObject, agent_id: str | None) -> AgentCard:
    """The card of an agent that connects: it needs no endpoint, and one that it names is not called. Raises BadParams.

    The agent's id is the one that it connects with.
    """
    named = {} if agent_id is None else {"id": agent_id}
    read = read_card({**card, **named, "endpoint": _NOWHERE})
    original = Original(dialect=SLUG, body=msgspec.json.encode(card))
    return msgspec.structs.replace(read, endpoints=(ENDPOINT,), streaming=True, original=original)


def call_frame(
    outgoing: Outgoing, call: AdmittedCall, earlier: Sequence[Message], heard: tuple[int, int] | None
) -> JsonObject:
    """A whole call; `heard`: what of an earlier attempt is on disk, by attempt and number."""
    task = outgoing.task
    answers = answers_of(task)
    # What it was asked first: a message that only answers a question is one of the answers.
    message = task.asked.message if answers or outgoing.message is None else outgoing.message
    schema = None if call.skill is None else call.skill.input_schema
    body = call_body(outgoing)
    body["input"] = input_object(message.parts, schema) if message.parts else {}
    body["options"]["stream"] = task.asked.wait is Wait.STREAM
    body |= {
        "attempt": outgoing.attempt,
        "caller": _caller(call.caller, task.dialect),
        "message": message_object(message, REFERENCED),
        "history": [message_object(each, REFERENCED) for each in earlier],
        "references": _references(message),
        "answers": [message_object(each, REFERENCED) for each in answers],
        "traceparent": outgoing.headers.get(b"traceparent", b"").decode(),
        "trace_id": task.trace.given_id or f"trace_{task.trace.trace_id}",
        "span_id": f"span_{task.trace.span_id}",
    }
    if task.deadline is not None:
        body["deadline"] = wire_time(task.deadline)
    if heard is not None:
        body["heard"] = {"attempt": heard[0], "n": heard[1]}
    return body


def input_frame(outgoing: Outgoing, ask: int | None) -> JsonObject:
    """The caller's answer to the agent's question of that number; by default to its last one."""
    answers = answers_of(outgoing.task)
    said = outgoing.message or answers[-1]
    return {
        "call_id": outgoing.task.id,
        "attempt": outgoing.attempt,
        "ask": len(answers) - 1 if ask is None else ask,
        "message": message_object(said, REFERENCED),
    }


def cancel_frame(call_id: str, attempt: int, reason: str) -> JsonObject:
    """That a call is to be stopped."""
    return {"call_id": call_id, "attempt": attempt, "reason": reason}


def answers_of(task: Task) -> tuple[Message, ...]:
    """What the caller said after its first message: the n-th answers the agent's n-th question."""
    return tuple(message for message in task.messages if message.role is Role.USER)


def turns_of(tasks: Iterable[Task]) -> tuple[Message, ...]:
    """What was said in these tasks, the oldest first: at most the last fifty turns."""
    turns: list[Message] = []
    for task in sorted(tasks, key=lambda each: (each.created_at, each.id)):
        turns += history_of(task)
        if task.state is TaskState.COMPLETED and (parts := output_of(task)) and parts != turns[-1].parts:
            turns.append(Message(id=f"{task.id}-answer", role=Role.AGENT, parts=parts, at=task.ended_at))
    return tuple(turns[-MOST_TURNS:])


def _caller(caller: Caller, dialect: str) -> JsonObject:
    kind = "anonymous" if caller.anonymous else "key" if caller.agent_id is None else "agent"
    return {
        "id": caller.id,
        "name": caller.name,
        "kind": kind,
        "dialect": dialect,
        "scopes": sorted(caller.scopes),
    }


def _references(message: Message) -> list[JsonObject]:
    """The calls that a message names, with what they made, where the hub knows that."""
    made: Json = (message.metadata or {}).get(REFERENCED)
    known: Mapping[str, Json] = made if is_object(made) else {}
    return [
        {"call_id": name, "artifacts": [artifact_object(each) for each in _artifacts(known.get(name))]}
        for name in message.references
    ]


def _artifacts(made: Json) -> list[Artifact]:
    found: list[Artifact] = []
    for each in made if is_array(made) else ():
        if is_object(each) and is_array(parts := each.get("parts")):
            read = [part for value in parts if (part := read_plain_part(value)) is not None]
            found.append(Artifact(id=str(each.get("artifactId", "")), parts=tuple(read)))
    return found
