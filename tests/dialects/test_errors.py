"""Which words each dialect has for each error: one table, seven columns, checked on real refusals and real answers."""

import json
from collections.abc import Mapping
from typing import Final

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Exchange, Verb, wire_error
from dragoman.model import errors
from dragoman.model.agent import Binding
from dragoman.model.errors import BY_CODE, DragomanError, error_of
from dragoman.model.events import Remote, StatusChanged
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_object
from dragoman.model.lifecycle import fold
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.dialects.goldens import HUB, LATER
from tests.dialects.loops import Wire, arriving, notified, opened, outgoing_of, sent_and_read
from tests.dialects.loss_samples import CALL

# The meanings of the error tree. In a cell: HTTP status (200 where none is shown) and code, then the reason where the
# dialect has a word of its own for it. `failed`: no error, but the state of the task. The rest is looked for in words.
COLUMNS: Final = ("envelope", "platform", "dotted", "directory", "agentvault", "a2a-0.3", "a2a-1.0")
TABLE: Final = """
NotJson             | 400 INVALID_MESSAGE_FORMAT    | 400 VALIDATION_ERROR    | -32700     | -32700                  | -32700        | -32700     | -32700
BadFrame            | 400 INVALID_MESSAGE_FORMAT    | 400 VALIDATION_ERROR    | -32600     | -32600                  | -32600        | -32600     | -32600
TooLarge            | 413 INVALID_MESSAGE_FORMAT    | 413 VALIDATION_ERROR    | 413 -32600 | 413 -32600              | 413 -32600    | 413 -32600 | 413 -32600
WrongHost           | 421 INVALID_MESSAGE_FORMAT    | 421 VALIDATION_ERROR    | 421 -32600 | 421 -32600              | 421 -32600    | 421 -32600 | 421 -32600
WrongMediaType      | 400 INVALID_MESSAGE_FORMAT    | 415 VALIDATION_ERROR    | 415 -32600 | 415 -32600              | 415 -32600    | 415 -32600 | -32005
UnknownMethod       | 400 UNSUPPORTED_MESSAGE_TYPE  | 404 NOT_FOUND           | -32601     | -32601                  | -32601        | -32601     | -32601
BadRequest          | 400 PAYLOAD_VALIDATION_FAILED | 400 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32602     | -32602
BadParams           | 400 PAYLOAD_VALIDATION_FAILED | 400 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32602     | -32602
InputRefused        | 400 PAYLOAD_VALIDATION_FAILED | 400 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32602     | -32602
ContentRefused      | 400 CAPABILITY_MISMATCH       | 400 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32005     | -32005
NotAuthenticated    | 401 AUTHENTICATION_REQUIRED   | 401 AUTHORIZATION_ERROR | 401 -32000 | 401 -32000              | 401 -32002    | 401 -32000 | 401 -32000
BadSignature        | 401 AUTHENTICATION_REQUIRED   | 401 AUTHORIZATION_ERROR | 401 -32000 | 401 -32000              | 401 -32002    | 401 -32000 | 401 -32000
SignatureRequired   | 403 CAPABILITY_MISMATCH       | 401 AUTHORIZATION_ERROR | 401 -32000 | 401 -32000              | 401 -32002    | 401 -32000 | 401 -32000
NotAuthorized       | 403 CAPABILITY_MISMATCH       | 403 AUTHORIZATION_ERROR | 403 -32000 | 403 -32000              | 403 -32003    | 403 -32000 | 403 -32000
CapabilityMismatch  | 403 CAPABILITY_MISMATCH       | 403 AUTHORIZATION_ERROR | 403 -32000 | 403 -32000              | 403 -32003    | 403 -32000 | 403 -32000
NotFound            | 404 TASK_NOT_FOUND            | 404 NOT_FOUND           | -32001     | -32001                  | -32001        | -32001     | -32001
AgentNotFound       | 404 AGENT_NOT_FOUND           | 404 AGENT_NOT_FOUND     | 404 -32000 | -32001 no_agent         | 404 -32000    | 404 -32000 | 404 -32000
SkillNotFound       | 400 INVALID_TASK_TYPE         | 404 SKILL_NOT_FOUND     | -32602     | -32001 no_agent         | -32602        | -32602     | -32602
TaskNotFound        | 404 TASK_NOT_FOUND            | 404 CALL_NOT_FOUND      | -32001     | -32001 task_not_found   | -32001        | -32001     | -32001
CallbackNotFound    | 404 TASK_NOT_FOUND            | 404 NOT_FOUND           | -32001     | -32001                  | -32001        | -32001     | -32001
SessionOver         | 404 TASK_NOT_FOUND            | 404 SESSION_OVER        | -32001     | -32001                  | -32001        | -32001     | -32001
Conflict            | 400 PAYLOAD_VALIDATION_FAILED | 409 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32602     | -32602
EventGap            | 400 PAYLOAD_VALIDATION_FAILED | 409 EVENT_GAP           | -32602     | -32602                  | -32602        | -32602     | -32602
StaleAttempt        | 400 PAYLOAD_VALIDATION_FAILED | 410 STALE_ATTEMPT       | -32602     | -32602                  | -32602        | -32602     | -32602
IdempotencyConflict | 400 PAYLOAD_VALIDATION_FAILED | 409 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32602     | -32602
CallLoop            | 400 PAYLOAD_VALIDATION_FAILED | 409 VALIDATION_ERROR    | -32602     | -32602                  | -32602        | -32602     | -32602
TaskFinished        | 400 PAYLOAD_VALIDATION_FAILED | 409 VALIDATION_ERROR    | -32004     | -32001 finished         | -32004        | -32004     | -32004
TaskNotCancelable   | applied: false                | 409 VALIDATION_ERROR    | -32002     | -32001 finished         | success: false | -32002    | -32002
NotSupported        | 400 UNSUPPORTED_MESSAGE_TYPE  | 400 VALIDATION_ERROR    | -32004     | -32601                  | -32004        | -32004     | -32004
NoExtendedCard      | 400 UNSUPPORTED_MESSAGE_TYPE  | 400 VALIDATION_ERROR    | -32004     | -32601                  | -32004        | -32007     | -32007
ExtensionRequired   | 400 UNSUPPORTED_MESSAGE_TYPE  | 400 VALIDATION_ERROR    | -32004     | -32601                  | -32004        | -32008     | -32008
VersionNotSupported | 400 INVALID_MESSAGE_FORMAT    | 400 VALIDATION_ERROR    | -32004     | -32601                  | -32004        | -32009     | -32009
RateLimited         | 429 RATE_LIMITED              | 429 RATE_LIMITED        | 429 -32000 | 429 -32000              | 429 -32000    | 429 -32000 | 429 -32000
Overloaded          | 503 INTERNAL_ERROR            | 503 AGENT_UNAVAILABLE   | 503 -32603 | 503 -32001              | 503 -32000    | 503 -32603 | 503 -32603
AgentUnavailable    | 500 INTERNAL_ERROR            | 503 AGENT_UNAVAILABLE   | -32603     | -32001 unavailable      | -32000        | -32603     | -32603
CircuitOpen         | 500 INTERNAL_ERROR            | 503 CIRCUIT_OPEN        | -32603     | -32001 unavailable      | -32000        | -32603     | -32603
AgentTimeout        | 500 TIMEOUT                   | 504 AGENT_TIMEOUT       | failed     | -32002 timeout          | failed        | failed     | failed
AgentError          | task_completion: failed       | 502 AGENT_ERROR         | failed     | -32001                  | failed        | failed     | failed
Interrupted         | task_completion: failed       | 502 AGENT_ERROR         | failed     | -32001                  | failed        | failed     | failed
BadAgentReply       | task_completion: failed       | 502 AGENT_ERROR         | failed     | -32001                  | failed        | -32006     | -32006
DragomanError       | 500 INTERNAL_ERROR            | 500 AGENT_ERROR         | -32603     | -32603                  | -32603        | -32603     | -32603
"""  # noqa: E501 - a table
EVERY: Final[list[type[DragomanError]]] = [
    value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, DragomanError) and not name.startswith("_")
]
ROWS: Final[Mapping[str, Mapping[str, str]]] = {
    name.strip(): dict(zip(COLUMNS, (cell.strip() for cell in cells), strict=True))
    for name, *cells in (line.split("|") for line in TABLE.strip().splitlines())
}
EVERY_ERROR = pytest.mark.parametrize("error_class", EVERY, ids=lambda each: each.__name__)
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)


def test_the_table_has_every_error_and_every_dialect() -> None:
    assert ROWS.keys() == {error_class.__name__ for error_class in EVERY}
    assert set(COLUMNS) == set(DIALECTS)


@pytest.mark.req("X-05")
@EVERY_DIALECT
@EVERY_ERROR
def test_every_error_is_told_in_the_words_of_the_dialect(dialect: Dialect, error_class: type[DragomanError]) -> None:
    cell = ROWS[error_class.__name__][dialect.slug]
    wire, error = Wire(dialect, Binding.JSONRPC), error_class("It broke")
    if cell == "failed":
        assert _state_of(wire, _failed_task(error)) in ("failed", "FAILED", "TASK_STATE_FAILED")
    elif cell == "task_completion: failed":
        told = json.loads(notified(wire, _failed_task(error)).body)
        assert (told["type"], told["payload"]["status"]) == ("task_completion", "failed")
    else:
        asked = _cancel(wire) if error_class is errors.TaskNotCancelable else sent_and_read(wire, CALL)
        _compare(cell, asked.refuse(error), error)


@EVERY_DIALECT
@EVERY_ERROR
def test_no_error_falls_through_to_the_words_for_a_fault_of_the_hub(
    dialect: Dialect, error_class: type[DragomanError]
) -> None:
    known = [each for each in error_class.__mro__ if each in dialect.errors]
    assert known[0] is not DragomanError or error_class is DragomanError


@EVERY_DIALECT
@EVERY_ERROR
def test_a_refusal_says_when_to_come_back_and_how_to_prove_oneself(
    dialect: Dialect, error_class: type[DragomanError]
) -> None:
    reply = sent_and_read(Wire(dialect, Binding.JSONRPC), CALL).refuse(error_class())
    assert reply.status not in (429, 503) or b"retry-after" in reply.headers
    assert (b"www-authenticate" in reply.headers) is (reply.status == 401)


@EVERY_ERROR
def test_a_stored_failure_is_told_with_the_words_of_the_error_it_was(error_class: type[DragomanError]) -> None:
    table = DIALECTS["platform"].errors
    was = error_class("It broke", fact=1)
    again = error_of(was.failure())
    assert (again.message, again.details["fact"]) == ("It broke", 1)
    assert again.retryable == was.retryable
    # Two classes may share a code; then they must share their words, save who proved himself and who may not.
    if wire_error(table, was)[1] not in (401, 403):
        assert wire_error(table, again) == wire_error(table, was)


@EVERY_ERROR
def test_what_the_caller_got_wrong_is_no_better_the_second_time(error_class: type[DragomanError]) -> None:
    status = wire_error(DIALECTS["platform"].errors, error_class())[1]
    assert error_class().retryable is (status in (429, 500, 503, 504))


def test_every_code_names_one_class() -> None:
    assert all(BY_CODE[code].code == code for code in BY_CODE)


def _compare(cell: str, reply: HttpReply, error: DragomanError) -> None:
    body = json.loads(reply.body)
    if cell == "applied: false":
        assert (reply.status, body["status"], body["applied"]) == (200, "success", False)
        return
    if cell == "success: false":
        assert (reply.status, body["result"]["success"]) == (200, False)
        return
    words = cell.split(" ")
    status = int(words.pop(0)) if words[0].isdigit() else 200
    assert (reply.status, str(_code(body))) == (status, words.pop(0))
    assert error.message in reply.body.decode() or isinstance(error, errors.AgentTimeout)
    if "jsonrpc" in body:
        assert "result" not in body
        data: Json = body["error"]["data"]
        if is_object(data):  # 1.0 has a list, and names of its own
            assert data["reason"] == (words[0] if words else error.code.lower())


def _code(body: Json) -> str | int:
    code: str | int = body["error_code"] if "error_code" in body else body["error"]["code"]
    return code


def _failed_task(error: DragomanError) -> Task:
    return fold(opened(CALL), [StatusChanged(at=LATER, state=TaskState.FAILED, failure=error.failure())])


def _state_of(wire: Wire, task: Task) -> str:
    """The state in which a caller sees a task."""
    reply = sent_and_read(wire, CALL).reply(task)
    assert reply.status == 200
    result: Json = json.loads(reply.body)["result"]
    shown: Json = result.get("task", result)
    state: str = shown["status"]["state"] if "status" in shown else shown["state"]
    return state


def _cancel(wire: Wire) -> Exchange:
    """The exchange of a request to cancel a task."""
    if wire.dialect.slug == "platform":  # which takes a cancel at another place than its agents do
        return arriving(wire, HttpRequest(method="POST", url=f"{HUB}/v1/a2a/call/a2a_call_1/cancel"))
    task = msgspec.structs.replace(opened(CALL), remote=Remote(task_id="task-7"))
    request = wire.dialect.ask(outgoing_of(wire, CALL, Verb.CANCEL, task))
    assert request is not None
    return arriving(wire, request)
