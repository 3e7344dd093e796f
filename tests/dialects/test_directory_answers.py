"""What a directory's caller is answered: results, errors by number, records, cards."""

import json
from typing import Any, Final

import pytest

from dragoman.dialects.dialect import Place
from dragoman.dialects.directory import DIALECT
from dragoman.dialects.directory.inbound import read
from dragoman.model.agent import Endpoint
from dragoman.model.answers import AgentPage, Card, Done
from dragoman.model.content import Data, Link, Part, Text
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    BadFrame,
    BadParams,
    BadSignature,
    CallbackNotFound,
    CallLoop,
    CapabilityMismatch,
    CircuitOpen,
    ContentRefused,
    DragomanError,
    IdempotencyConflict,
    InputRefused,
    Interrupted,
    NotAuthenticated,
    NotAuthorized,
    NotJson,
    NotSupported,
    Overloaded,
    RateLimited,
    SkillNotFound,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
    TooLarge,
    UnknownMethod,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.fit import Feature
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.dialects.directory_samples import (
    CARD,
    HUB,
    QUESTION,
    TASK,
    agent_of,
    example,
    exchange_of,
    request_of,
    rpc,
    task_of,
)

# -- what is answered


def test_a_completed_task_repeats_its_answer_where_one_client_looks_for_it() -> None:
    exchange = exchange_of(rpc("a2a/task", TASK, "task-123"))
    shown = json.loads(exchange.reply(task_of(result={"results": ["AI news item"]})).body)
    assert shown == example("task-response-emitted")


@pytest.mark.parametrize(
    ("parts", "output"),
    [
        ((), {}),
        ((Text(text="hello"),), {"text": "hello"}),
        ((Text(text="hel"), Text(text="lo")), {"text": "hello"}),
        ((Data(value={"a": 1}),), {"a": 1}),
        ((Data(value=[1, 2]),), {"parts": [{"kind": "data", "data": [1, 2]}]}),
        (
            (Text(text="see"), Link(url="http://x/y", media_type="image/png")),
            {
                "parts": [
                    {"kind": "text", "text": "see"},
                    {"kind": "file", "file": {"uri": "http://x/y", "mimeType": "image/png"}},
                ]
            },
        ),
    ],
)
def test_an_output_is_always_an_object(parts: tuple[Part, ...], output: dict[str, Any]) -> None:
    shown = json.loads(exchange_of(rpc("a2a/task", TASK)).reply(task_of(parts=parts)).body)
    assert shown["result"]["output"] == output
    assert "error" not in shown


def test_a_cancelled_task_is_a_result() -> None:
    shown = json.loads(exchange_of(rpc("a2a/task", TASK, "task-123")).reply(task_of(TaskState.CANCELED)).body)
    same = example("task-cancelled-response")["result"]
    assert shown["result"] == {**same, "result": same}


def test_a_cancel_is_answered_by_the_tasks_name() -> None:
    exchange = exchange_of(rpc("a2a/cancel", {"taskId": "task-123"}))
    assert json.loads(exchange.reply(task_of(TaskState.CANCELED)).body)["result"] == {
        "taskId": "task-123",
        "status": "cancelled",
    }
    late = json.loads(exchange.reply(task_of()).body)["error"]
    assert (late["code"], late["data"]["reason"]) == (-32001, "finished")


@pytest.mark.parametrize(
    ("task", "code", "reason", "words"),
    [
        (task_of(TaskState.FAILED, failure=AgentError("it broke").failure()), -32001, "agent_error", "it broke"),
        (task_of(TaskState.FAILED, failure=AgentError("x", reason="own").failure()), -32001, "own", "x"),
        (task_of(TaskState.FAILED, status_message=QUESTION), -32001, "agent_error", "Which one?"),
        (task_of(TaskState.FAILED), -32001, "agent_error", "The agent failed."),
        (task_of(TaskState.REJECTED, status_message=QUESTION), -32001, "rejected", "Which one?"),
        (task_of(TaskState.REJECTED, failure=InputRefused("no").failure()), -32001, "rejected", "no"),
        (task_of(TaskState.INPUT_REQUIRED, status_message=QUESTION), -32001, "input_required", "Which one?"),
        (task_of(TaskState.AUTH_REQUIRED), -32001, "auth_required", "The agent needs more input."),
        (task_of(TaskState.FAILED, failure=AgentTimeout("late").failure()), -32002, "timeout", "late"),
        (task_of(TaskState.WORKING), -32002, "timeout", "Target agent did not respond within timeout"),
        (task_of(TaskState.SUBMITTED), -32002, "timeout", "Target agent did not respond within timeout"),
    ],
    ids=lambda value: value.state if isinstance(value, Task) else None,
)
def test_a_task_without_result_is_an_error(task: Task, code: int, reason: str, words: str) -> None:
    reply = exchange_of(rpc("a2a/task", TASK)).reply(task)
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"]) == (200, code)
    assert (error["data"]["reason"], error["data"]["taskId"], error["data"]["message"]) == (reason, "task-123", words)
    assert error["message"] == ("Task timeout" if code == -32002 else words)


def test_a_timeout_is_told_as_the_example_has_it() -> None:
    failure = AgentTimeout(timeout_ms=30000, agent_id="research-agent").failure()
    shown = json.loads(
        exchange_of(rpc("a2a/task", TASK, "task-123")).reply(task_of(TaskState.FAILED, failure=failure)).body
    )
    printed = example("task-timeout-response-emitted")
    assert {**shown["error"], "data": None} == {**printed["error"], "data": None}
    assert printed["error"]["data"].items() <= shown["error"]["data"].items()


ERRORS: Final[list[tuple[DragomanError, int, int, str]]] = [
    (NotJson(), -32700, 200, "parse_error"),
    (BadFrame(), -32600, 200, "invalid_request"),
    (TooLarge(), -32600, 413, "too_large"),
    (WrongMediaType(), -32600, 415, "wrong_media_type"),
    (WrongHost(), -32600, 421, "wrong_host"),
    (UnknownMethod(), -32601, 200, "method_not_found"),
    (NotSupported(), -32601, 200, "unsupported_operation"),
    (BadParams(), -32602, 200, "validation_error"),
    (InputRefused(), -32602, 200, "validation_error"),
    (ContentRefused(), -32602, 200, "content_not_supported"),
    (CallLoop(), -32602, 200, "call_loop"),
    (IdempotencyConflict(), -32602, 200, "idempotency_conflict"),
    (NotAuthenticated(), -32000, 401, "authorization_error"),
    (BadSignature(reason="replayed"), -32000, 401, "replayed"),
    (NotAuthorized(), -32000, 403, "authorization_error"),
    (CapabilityMismatch(), -32000, 403, "capability_mismatch"),
    (RateLimited(), -32000, 429, "rate_limited"),
    (AgentNotFound(), -32001, 200, "no_agent"),
    (SkillNotFound(), -32001, 200, "no_agent"),
    (TaskNotFound(), -32001, 200, "task_not_found"),
    (CallbackNotFound(), -32001, 200, "callback_not_found"),
    (TaskFinished(), -32001, 200, "finished"),
    (TaskNotCancelable(), -32001, 200, "finished"),
    (AgentUnavailable(reason="refused"), -32001, 200, "unavailable"),
    (CircuitOpen(), -32001, 200, "unavailable"),
    (Overloaded(), -32001, 503, "overloaded"),
    (Overloaded(reason="draining"), -32001, 503, "draining"),
    (AgentTimeout(), -32002, 200, "timeout"),
    (AgentError(), -32001, 200, "agent_error"),
    (BadAgentReply(reason="invalid_response"), -32001, 200, "invalid_response"),
    (Interrupted(), -32001, 200, "agent_error"),
    (DragomanError(error_id="req_1"), -32603, 200, "internal_error"),
]


@pytest.mark.parametrize(("error", "code", "status", "reason"), ERRORS, ids=lambda each: type(each).__name__)
def test_every_error_has_its_number_its_status_and_its_reason(
    error: DragomanError, code: int, status: int, reason: str
) -> None:
    reply = exchange_of(rpc("a2a/task", TASK)).refuse(error)
    shown = json.loads(reply.body)
    assert (reply.status, shown["id"], set(shown)) == (status, "r-1", {"jsonrpc", "id", "error"})
    assert (shown["error"]["code"], shown["error"]["data"]["reason"]) == (code, reason)
    assert shown["error"]["data"]["taskId"] == "task-123"
    assert shown["error"]["message"]
    assert (b"www-authenticate" in reply.headers) is (status == 401)
    if status in (429, 503):
        assert b"retry-after" in reply.headers


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadParams("Missing fields: name"), 400),
        (NotJson(), 400),
        (AgentNotFound(), 404),
        (NotAuthenticated(), 401),
        (NotAuthorized(), 403),
        (TooLarge(), 413),
        (RateLimited(), 429),
        (Overloaded(), 503),
        (DragomanError(), 500),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_bare_refusal_is_text_with_the_status_that_it_deserves(error: DragomanError, status: int) -> None:
    reply = exchange_of(CARD, "register").refuse(error)
    assert (reply.status, json.loads(reply.body)) == (status, {"error": error.message})


def test_no_request_is_answered_by_what_none_asks_for() -> None:
    with pytest.raises(AssertionError, match="no request of directory is answered by Done"):
        exchange_of(CARD, "register").reply(Done())


# -- records and cards


def test_a_record_has_five_members_and_no_more() -> None:
    agent = agent_of({**CARD, "methods": ["a2a/cancel"], "homepage": "http://x/", "error": "none"})
    shown = json.loads(read(request_of(b"", "agent", "research-agent")).reply(Card(agent=agent)).body)
    assert shown == {**CARD, "registeredAt": "2026-01-12T10:00:00.000Z"}
    assert set(shown) == set(example("agent-response"))
    page = json.loads(read(request_of(b"", "agents")).reply(AgentPage(agents=(agent,), total=1)).body)
    assert page == {"agents": [shown]}


@pytest.mark.parametrize("endpoints", [(Endpoint(dialect="platform", url="http://10.0.0.1/"),), ()])
def test_agents_of_other_dialects_are_called_through_the_hub(endpoints: tuple[Endpoint, ...]) -> None:
    agent = agent_of(CARD, endpoints=endpoints)
    shown = json.loads(read(request_of(b"", "agent", "research-agent")).reply(Card(agent=agent)).body)
    assert shown["endpoint"] == f"{HUB}/agents/research-agent/"


def test_a_card_keeps_every_member_on_its_way_through_the_hub() -> None:
    card = {**CARD, "methods": ["a2a/task", "a2a/cancel"], "vendor": {"anything": [None, 2**70]}}
    agent = agent_of(card)
    assert agent.card.endpoints[0].features == frozenset({Feature.ANSWERS, Feature.CANCEL})
    assert DIALECT.write_card is not None
    place = Place(hub_url=HUB, base_url=f"{HUB}/agents/research-agent/")
    assert DIALECT.write_card(agent, place) == {**card, "registeredAt": "2026-01-12T10:00:00.000Z"}


def test_no_card_has_the_key_by_which_clients_tell_a_failure() -> None:
    assert DIALECT.write_card is not None
    shown = DIALECT.write_card(agent_of({**CARD, "error": "of its own"}), Place(hub_url=HUB, base_url=f"{HUB}/x/"))
    assert "error" not in shown


def test_the_card_of_another_dialects_agent_is_a_record() -> None:
    agent = agent_of(CARD, original=None, endpoints=(Endpoint(dialect="platform", url="http://10.0.0.1/"),))
    assert DIALECT.write_card is not None
    place = Place(hub_url=HUB, base_url=f"{HUB}/agents/research-agent/")
    shown = DIALECT.write_card(agent, place)
    assert shown["endpoint"] == place.base_url
    assert DIALECT.owns_card(shown)
    again = DIALECT.read_card(shown)
    assert (again.id, again.name, again.skills) == (agent.card.id, agent.card.name, agent.card.skills)


def test_a_card_may_say_more_of_its_agent() -> None:
    card = DIALECT.read_card({**CARD, "description": "Finds\u200b things", "version": "2.1.0"})
    assert (card.description, card.version) == ("Finds things", "2.1.0")
    card = DIALECT.read_card({**CARD, "description": 5, "version": None})
    assert (card.description, card.version) == ("", "1.0.0")


def test_a_card_at_the_registry_is_refused_by_the_path_it_has_there() -> None:
    with pytest.raises(BadParams) as missing:
        DIALECT.read_card({"agentId": "x", "name": "X"})
    assert [each["path"] for each in missing.value.details["errors"]] == [
        "agent_card.capabilities",
        "agent_card.endpoint",
    ]
    with pytest.raises(BadParams, match=r"agent_card\.capabilities"):
        DIALECT.read_card({**CARD, "capabilities": [5]})


@pytest.mark.parametrize("name", ["agent-response", "bare-register-request"])
def test_the_examples_records_are_cards(name: str) -> None:
    assert DIALECT.owns_card(example(name))
    assert DIALECT.read_card(example(name)).id == "research-agent"
