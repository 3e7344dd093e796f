"""What A2A 1.0 answers: the result of each operation, the same in JSON-RPC and over HTTP."""

from dragoman.dialects.a2a_v10.push import shown_config, shown_configs
from dragoman.dialects.a2a_v10.version import speaks_v10
from dragoman.dialects.a2a_v10.view import View, page_token
from dragoman.dialects.a2a_v10.wire import wire_message, wire_task
from dragoman.dialects.dialect import place_of, unasked
from dragoman.dialects.official_card import V10, card_reply, place_seen, signed_card, write_merged_card, write_v10_card
from dragoman.model.answers import Accepted, Answer, CallbackList, Card, Done, TaskPage
from dragoman.model.callbacks import Callback
from dragoman.model.errors import NoExtendedCard, NotSupported
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.states import COMPLETED
from dragoman.model.task import Task


def result_of(answer: Answer, view: View, hub_url: str) -> JsonObject:
    """The result of an operation.

    Raises NotSupported, NoExtendedCard where there is no extended card to show.
    """
    match answer:
        case Task():
            return _sent(answer, view) if view.sent else wire_task(answer, view.history)
        case Accepted(task=task):
            return {"task": wire_task(task, view.history)}
        case TaskPage():
            return _page(answer, view)
        case Card():
            return _extended(answer, hub_url)
        case Callback():
            return shown_config(answer, view)
        case CallbackList():
            return shown_configs(answer, view)
        case Done():
            return {}
        case _:
            raise unasked(answer, V10)


def public_card(request: HttpRequest, answer: Card) -> HttpReply:
    """The card for everybody: of 1.0 alone for those who say that they speak it, else of both versions."""
    place = place_seen(request, place_of(answer, request.hub))
    shown = write_v10_card(answer.agent, place) if speaks_v10(request) else write_merged_card(answer.agent, place)
    return card_reply(request, shown, answer.agent.updated_at, answer.signer)


def _sent(task: Task, view: View) -> JsonObject:
    """Exactly one of a task and a message; a message where the agent itself answered with no more than that."""
    if task.direct and task.messages and task.state is COMPLETED:
        return {"message": wire_message(task.messages[-1], task.context_id)}
    return {"task": wire_task(task, view.history)}


def _page(page: TaskPage, view: View) -> JsonObject:
    return {
        "tasks": [wire_task(task, view.history, artifacts=view.artifacts, even_none=True) for task in page.tasks],
        "nextPageToken": page_token(page.cursor, view),
        "pageSize": view.page_size,
        "totalSize": page.total,
    }


def _extended(answer: Card, hub_url: str) -> JsonObject:
    """The hub's own card shows each caller what it may see; of an agent's extended card the hub has none."""
    if not answer.agent.card.extended:
        raise NotSupported("This agent has no extended card, and its card says so.")
    if not answer.is_hub:
        raise NoExtendedCard("The agent declares an extended card; this hub has none of it.")
    return signed_card(write_v10_card(answer.agent, place_of(answer, hub_url)), answer.signer)
