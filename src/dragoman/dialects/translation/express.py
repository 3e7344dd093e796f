"""Say in one dialect what was understood in another: exactly as the hub would say it to an agent or to a caller."""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.dialect import RPC, Dialect, Exchange, Notice, Place, Verb
from dragoman.dialects.hints import HINTS
from dragoman.dialects.translation.understand import HUB, NOBODY, blank_task, outgoing
from dragoman.model.agent import Agent, AgentCard
from dragoman.model.callbacks import Callback
from dragoman.model.content import Message, Role
from dragoman.model.errors import NotSupported
from dragoman.model.events import Happened, Remote, StatusChanged, TaskEvent
from dragoman.model.fit import Feature, fit_parts
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.operations import CancelTask, GetTask, SendTask
from dragoman.model.task import Task

TIMEOUT_S: Final = 30.0  # what a hub allows a call that says nothing
_OWN_HINTS: Final = frozenset({"call_id", "timeout_ms"})  # of the call that is not made here
_TURNS: Final = ("history", "messages")
_decode = msgspec.json.Decoder().decode


def request_in(asked: SendTask | GetTask | CancelTask, source: Dialect, target: Dialect, at: datetime) -> HttpRequest:
    """What an agent of the target dialect would be sent. Raises NotSupported, ContentRefused."""
    match asked:
        case SendTask():
            verb, sent = Verb.SEND, _fitted(asked, target)
        case GetTask(task_id=task_id):
            verb, sent = Verb.GET, _about(task_id)
        case CancelTask(task_id=task_id):
            verb, sent = Verb.CANCEL, _about(task_id)
    task = blank_task(sent, source, at)
    if sent.continues is not None or verb is not Verb.SEND:
        task = msgspec.structs.replace(task, remote=Remote(task_id=task.id, context_id=sent.context_id))
    timeout_ms = round((sent.timeout_s or TIMEOUT_S) * 1000)
    made = outgoing(verb, task, target, at, timeout_ms=timeout_ms)
    if isinstance(asked, CancelTask) and asked.reason:
        made = msgspec.structs.replace(made, reason=asked.reason)
    request = target.ask(made)
    if request is None:
        words = {Verb.SEND: "a message", Verb.GET: "asking after a task", Verb.CANCEL: "cancelling a task"}
        raise NotSupported(f"{target.slug} has no words for {words[verb]}.")
    return request


def answer_in(task: Task, target: Dialect, at: datetime, *, framed: bool) -> HttpReply:
    """What a caller of the target dialect would be answered. Raises NotSupported."""
    if Feature.REPORTS in target.features:
        event = StatusChanged(
            at=task.updated_at, state=task.state, message=task.status_message, progress=task.progress, usage=task.usage
        )
        return event_in(task, (event,), target, at)
    asks = (
        Verb.SEND if Feature.ANSWERS in target.features and (framed or Feature.GET not in target.features) else Verb.GET
    )
    if task.ended or Feature.GET in target.features:
        return _exchange(asks, task, target, at).reply(task)
    return (_poll(task, target, at) or _exchange(asks, task, target, at)).reply(task)


def event_in(task: Task, events: tuple[TaskEvent, ...], target: Dialect, at: datetime) -> HttpReply:
    """What a caller of the target dialect would be told. Raises NotSupported where it has no words for it."""
    for event in reversed(events):
        notice = Notice(
            callback=Callback(id="cb_1", dialect=target.slug),
            task=task,
            happened=Happened(seq=max(1, task.last_seq), event=event),
            url="",
            recipient="agt_caller",
            hub_url=HUB,
            hub_id="d4a60a7e-0000-4000-8000-000000000000",
            at=at,
        )
        told = None if target.notify is None else target.notify(notice)
        if told is not None:
            return HttpReply(status=200, body=told.body)
    if Feature.REPORTS in target.features:
        raise NotSupported(f"{target.slug} has no words for this event.")
    return answer_in(task, target, at, framed=False)


def card_in(card: AgentCard, target: Dialect, at: datetime) -> Json:
    """The card as the hub would serve it to callers of the target dialect. Raises NotSupported."""
    if target.write_card is None:
        raise NotSupported(f"{target.slug} has no cards.")
    agent = Agent(
        card=card,
        uuid="d4a60a7e-0000-4000-8000-000000000001",
        tenant="default",
        owner_id="owner",
        registered_at=at,
        updated_at=at,
    )
    protected = any(scheme.kind != "none" for scheme in card.auth)
    return target.write_card(
        agent, Place(hub_url=HUB, base_url=f"{HUB}/agents/{card.id}/", owner=False, protected=protected)
    )


def unframed(body: Json) -> Json:
    """What a frame holds: the message that is sent, or the result; and none of the call that is not made."""
    if not is_object(body) or "jsonrpc" not in body:
        return body
    params, result = body.get("params"), body.get("result")
    if is_object(params) and is_object(params.get("message")):
        return _without_call(params["message"])
    return body if result is None else result


def without_nobody(body: Json) -> Json:
    """The same without the opening message that an answer did not show, and that was only there to be asked."""
    if is_array(body):
        return [without_nobody(each) for each in body]
    if not is_object(body):
        return body
    shown: JsonObject = {}
    for name, value in body.items():
        if name in _TURNS and is_array(value):
            value = [each for each in value if not (is_object(each) and _is_nobody(each))]
            if not value:
                continue
        shown[name] = without_nobody(value)
    return shown


def _fitted(asked: SendTask, target: Dialect) -> SendTask:
    """The message as the target takes it; where it needs a skill and none is named, the one that every agent has."""
    parts = fit_parts(asked.message.parts, target.features, text_only=False, host=_hosted)
    message: Message = msgspec.structs.replace(asked.message, parts=parts)
    skill = asked.skill or (None if Feature.PARTS in target.features else "default")
    return msgspec.structs.replace(asked, message=message, skill=skill)


def _hosted(index: int, _: object) -> str:
    return f"{HUB}/files/{index}"


def _about(task_id: str) -> SendTask:
    return SendTask(message=Message(id=NOBODY, role=Role.USER, parts=()), alias=task_id)


def _exchange(verb: Verb, task: Task, target: Dialect, at: datetime) -> Exchange:
    """An exchange of the target dialect in which the task is what is answered. Raises NotSupported."""
    known = msgspec.structs.replace(task, remote=Remote(task_id=task.id, context_id=task.context_id))
    request = target.ask(outgoing(verb, known, target, at))
    if request is None or target.read is None:
        raise NotSupported(f"{target.slug} has no words for this answer.")
    posts = [route.name for route in target.routes if route.method == "POST"]
    framed = bool(target.methods or target.methods_begin)
    came = msgspec.structs.replace(request, url="/", id="1", at=at, hub=HUB, route=RPC if framed else posts[0])
    return target.read(came)


def _poll(task: Task, target: Dialect, at: datetime) -> Exchange | None:
    """A look at the task, where the target dialect has a path for that."""
    for route in target.routes:
        names = [part[1:-1] for part in route.path.split("/") if part.startswith("{") and part.endswith("}")]
        if route.method == "GET" and len(names) == 1 and target.read is not None:
            request = HttpRequest(
                method="GET", url="/", id="1", at=at, hub=HUB, route=route.name, params={names[0]: task.id}
            )
            exchange = target.read(request)
            if isinstance(exchange.operation, GetTask):
                return exchange
    return None


def _without_call(message: JsonObject) -> JsonObject:
    metadata: Json = message.get("metadata")
    if not is_object(metadata) or not is_object(metadata.get(HINTS)):
        return message
    hints = {name: value for name, value in metadata[HINTS].items() if name not in _OWN_HINTS}
    kept = {name: value for name, value in metadata.items() if name != HINTS} | ({HINTS: hints} if hints else {})
    shown = {name: value for name, value in message.items() if name != "metadata"}
    return {**shown, "metadata": kept} if kept else shown


def _is_nobody(turn: JsonObject) -> bool:
    return turn.get("messageId") == NOBODY or turn.get("parts") == []
