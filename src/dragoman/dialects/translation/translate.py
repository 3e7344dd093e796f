"""From a body of one dialect to the same in another, with a list of what the other cannot say."""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.dialect import Dialect, Loss, Verb
from dragoman.dialects.hints import HINTS
from dragoman.dialects.translation.express import (
    answer_in,
    card_in,
    event_in,
    request_in,
    unframed,
    without_nobody,
)
from dragoman.dialects.translation.facets import Facets, facets_of_card, facets_of_send, facets_of_task
from dragoman.dialects.translation.understand import Kind, Understood, blank_task, outgoing, read_back, understand
from dragoman.model.agent import AgentCard
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import SendTask
from dragoman.model.task import Task

NO_FIELD: Final = "no field of its own"
ITS_OWN: Final = "what the dialect has in its place"
_IDS: Final = frozenset({"message:id", "artifact:id"})
_decode = msgspec.json.Decoder().decode


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """A body in the other dialect, what kind it is, and what was lost on the way."""

    kind: Kind
    body: Json
    losses: tuple[Loss, ...] = ()
    method: str | None = None  # of a request: how it is sent
    url: str | None = None


def translate(
    body: JsonObject, source: Dialect, target: Dialect, *, at: datetime, kind: Kind | None = None
) -> Translation:
    """The same thing in the target dialect.

    Raises BadParams where the source dialect cannot read it, NotSupported and ContentRefused where the target has no
    words for it.
    """
    meant = understand(body, source, kind, at)
    if meant.card is not None:
        shown = card_in(meant.card, target, at)
        return Translation(kind=meant.kind, body=shown, losses=_card_losses(meant.card, shown, target))
    if meant.asked is not None:
        return _request(meant, source, target, msgspec.json.encode(body), at)
    assert meant.task is not None  # noqa: S101 - what is neither a card nor a request is about a task
    return _answer(meant, meant.task, target, msgspec.json.encode(body), at)


def _request(meant: Understood, source: Dialect, target: Dialect, raw: bytes, at: datetime) -> Translation:
    assert meant.asked is not None  # noqa: S101 - the caller looked
    request = request_in(meant.asked, source, target, at)
    body: Json = _decode(request.body) if request.body else {}
    losses: tuple[Loss, ...] = ()
    if isinstance(meant.asked, SendTask):
        losses = _losses(facets_of_send(meant.asked), _sent_back(request, target, at), target, raw)
    shown = unframed(body) if meant.bare else body
    return Translation(kind=meant.kind, body=shown, losses=losses, method=request.method, url=request.url)


def _answer(meant: Understood, task: Task, target: Dialect, raw: bytes, at: datetime) -> Translation:
    if meant.kind is Kind.EVENT:
        reply = event_in(task, meant.events, target, at)
    else:
        reply = answer_in(task, target, at, framed=not meant.bare)
    body: Json = without_nobody(_decode(reply.body))
    if meant.bare:
        body = unframed(body)
    elif is_object(body) and "jsonrpc" in body and meant.request_id is not None:
        body["id"] = meant.request_id
    losses = _losses(facets_of_task(task), _heard_back(reply, task, target, at), target, raw)
    return Translation(kind=meant.kind, body=body, losses=losses)


def _card_losses(card: AgentCard, shown: Json, target: Dialect) -> tuple[Loss, ...]:
    """What of a card is not there, or not the same, when it is read again."""
    try:
        again = facets_of_card(target.read_card(_decode(msgspec.json.encode(shown))))
    except DragomanError:
        return ()
    said = facets_of_card(card)
    return tuple(
        Loss(facet=facet, becomes=ITS_OWN if facet in again else NO_FIELD)
        for facet, value in sorted(said.items())
        if again.get(facet) != value
    )


def _losses(facets: Facets, after: Facets | None, target: Dialect, raw: bytes) -> tuple[Loss, ...]:
    """What did not come back when the translation was read again, in the target's own words where it has some.

    Where it cannot be read again, all that the target declares of what there is.
    """
    declared = {loss.facet: loss for loss in target.losses}
    if after is None:
        lost = [facet for facet in facets if facet in declared]
    else:
        lost = [facet for facet, value in facets.items() if after.get(facet) != value]
    told = [facet for facet in sorted(lost) if facet not in _IDS or _is_in(facets[facet], raw)]
    return tuple(declared.get(facet) or Loss(facet=facet, becomes=NO_FIELD) for facet in told)


def _is_in(ids: Json, raw: bytes) -> bool:
    """Whether something came with such an id, and did not only get it from its reader."""
    return any(f'"{each}"'.encode() in raw for each in (ids if is_array(ids) else [ids]))


def _sent_back(request: HttpRequest, target: Dialect, at: datetime) -> Facets | None:
    """What a stranger of the target dialect would understand."""
    body = msgspec.json.encode(_to_strangers(_decode(request.body)))
    operation = read_back(msgspec.structs.replace(request, body=body), target, at)
    return facets_of_send(operation) if isinstance(operation, SendTask) else None


def _heard_back(reply: HttpReply, task: Task, target: Dialect, at: datetime) -> Facets | None:
    """What a stranger who got this very answer would understand; of a task that goes on only its state is read."""
    if not task.ended:
        return None
    blank = blank_task(task.asked, target, at)
    shown = msgspec.structs.replace(reply, body=msgspec.json.encode(_to_strangers(_decode(reply.body))))
    try:
        heard = target.hear(outgoing(Verb.SEND, blank, target, at), shown, at)
    except DragomanError:
        return None
    events = legal(blank.state, heard.events)
    known = msgspec.structs.replace(blank, remote=heard.remote)
    return facets_of_task(fold(known, events)) if events else {}


def _to_strangers(value: Json) -> Json:
    """What is left for those who do not know the block that hubs have for each other."""
    if is_array(value):
        return [_to_strangers(each) for each in value]
    if not is_object(value):
        return value
    return {name: _to_strangers(each) for name, each in value.items() if name != HINTS}
