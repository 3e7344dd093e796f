"""Push notifications of A2A 1.0 in both framings: configs set, shown and taken away, and what is posted."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects.a2a_v10 import DIALECT
from dragoman.dialects.a2a_v10.streams import told
from dragoman.dialects.dialect import Notice
from dragoman.model.answers import CallbackList, Done
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Role
from dragoman.model.errors import CallbackNotFound, TaskNotFound
from dragoman.model.events import Happened, Sent, TaskEvent
from dragoman.model.http import HttpRequest
from dragoman.model.lifecycle import fold
from dragoman.model.operations import DeleteCallback, GetCallback, ListCallbacks, SetCallback
from dragoman.model.states import TaskState
from tests.dialects.a2a_v10_samples import fields_of, message, read, refusal, rest, rpc, sent
from tests.dialects.goldens import LATER
from tests.dialects.stream_world import CONTEXT, TASK, WHEN, added, moved, open_task, piece, said

CONFIG = {
    "id": "c-1",
    "url": "https://client.test/hook",
    "token": "t0ken",
    "authentication": {"scheme": "Bearer", "credentials": "s3cret"},
}
CALLBACK = Callback(
    id="c-1",
    dialect="a2a-1.0",
    url="https://client.test/hook",
    tells=Tells.EVENTS,
    token="t0ken",
    auth={"scheme": "Bearer", "credentials": "s3cret"},
)
SHOWN = {"id": "c-1", "taskId": TASK, "url": "https://client.test/hook", "authentication": {"scheme": "Bearer"}}
PATH = f"/tasks/{TASK}/pushNotificationConfigs"


def _both(method: str, params: Any, *by_path: Any, **named: str) -> list[HttpRequest]:
    return [rpc(method, params), rest(*by_path, task=TASK, **named)]


CREATE = _both("CreateTaskPushNotificationConfig", {**CONFIG, "taskId": TASK}, "POST", PATH, "push-create", CONFIG)
GET = _both(
    "GetTaskPushNotificationConfig", {"taskId": TASK, "id": "c-1"}, "GET", f"{PATH}/c-1", "push-get", config="c-1"
)
LIST = _both("ListTaskPushNotificationConfigs", {"taskId": TASK}, "GET", PATH, "push-list")
DELETE = _both(
    "DeleteTaskPushNotificationConfig",
    {"taskId": TASK, "id": "c-1"},
    "DELETE",
    f"{PATH}/c-1",
    "push-delete",
    config="c-1",
)


def _result(request: HttpRequest, answer: Any) -> Any:
    reply = read(request).reply(answer)
    assert reply.status == 200
    body = json.loads(reply.body)
    return body["result"] if request.route == "rpc" else body


@pytest.mark.parametrize("request_", CREATE)
def test_a_config_is_created_and_shown_without_its_secrets(request_: HttpRequest) -> None:
    asked = SetCallback(task_id=TASK, callback=CALLBACK, agent="agt_target")
    assert read(request_).operation == asked
    assert _result(request_, CALLBACK) == SHOWN


def test_a_config_without_an_id_gets_one_and_the_path_names_the_task() -> None:
    bare = {"url": "https://client.test/hook", "taskId": "another"}
    operation = read(rest("POST", PATH, "push-create", bare, task=TASK)).operation
    assert operation == SetCallback(
        task_id=TASK,
        callback=Callback(id="push-1", dialect="a2a-1.0", url="https://client.test/hook", tells=Tells.EVENTS),
        agent="agt_target",
    )


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"taskId": TASK}, "url"),
        ({"taskId": TASK, "url": ""}, "url"),
        ({"url": "https://client.test"}, "taskId"),
        ({"taskId": TASK, "url": "https://x.test", "token": "a\r\nb"}, "token"),
        ({"taskId": TASK, "url": "https://x.test", "authentication": {"scheme": "Be arer"}}, "authentication.scheme"),
        (
            {"taskId": TASK, "url": "https://x.test", "authentication": {"scheme": "Bearer", "credentials": "a\nb"}},
            "authentication.credentials",
        ),
    ],
)
def test_a_config_that_cannot_be_told_is_refused_by_its_field(config: Any, field: str) -> None:
    assert fields_of(refusal(rpc("CreateTaskPushNotificationConfig", config))[1]) == {field}


def test_a_config_may_come_with_the_message() -> None:
    params = {"message": message(), "configuration": {"taskPushNotificationConfig": CONFIG}}
    for method in ("SendMessage", "SendStreamingMessage"):
        assert sent(rpc(method, params)).callback == CALLBACK
    snake = {"message": message(), "configuration": {"task_push_notification_config": CONFIG}}
    assert sent(rpc("SendMessage", snake)).callback == CALLBACK


@pytest.mark.parametrize("request_", GET)
def test_a_config_is_read_by_its_id(request_: HttpRequest) -> None:
    asked = GetCallback(task_id=TASK, dialect="a2a-1.0", callback_id="c-1", agent="agt_target")
    assert read(request_).operation == asked
    assert _result(request_, CALLBACK) == SHOWN


@pytest.mark.parametrize("request_", DELETE)
def test_a_config_is_taken_away_by_its_id(request_: HttpRequest) -> None:
    asked = DeleteCallback(task_id=TASK, dialect="a2a-1.0", callback_id="c-1", agent="agt_target")
    assert read(request_).operation == asked
    assert _result(request_, Done()) == {}


@pytest.mark.parametrize("request_", LIST)
def test_configs_are_listed(request_: HttpRequest) -> None:
    assert read(request_).operation == ListCallbacks(task_id=TASK, dialect="a2a-1.0", agent="agt_target")
    assert _result(request_, CallbackList(callbacks=(CALLBACK,))) == {"configs": [SHOWN]}
    assert _result(request_, CallbackList(callbacks=())) == {"configs": []}


def test_configs_are_listed_page_by_page() -> None:
    listed = CallbackList(callbacks=tuple(msgspec.structs.replace(CALLBACK, id=f"c-{number}") for number in range(5)))
    seen: list[str] = []
    token, pages = "", 0
    while pages == 0 or token:
        page = _result(
            rpc("ListTaskPushNotificationConfigs", {"taskId": TASK, "pageSize": 2, "pageToken": token}), listed
        )
        seen += [each["id"] for each in page["configs"]]
        token, pages = page.get("nextPageToken", ""), pages + 1
    assert (seen, pages) == (["c-0", "c-1", "c-2", "c-3", "c-4"], 3)
    by_path = rest("GET", f"{PATH}?pageSize=4", "push-list", task=TASK)
    assert len(_result(by_path, listed)["configs"]) == 4


@pytest.mark.parametrize("token", ["x", "x.1", "."])
def test_the_token_of_another_list_is_refused(token: str) -> None:
    params = {"taskId": TASK, "pageToken": token}
    assert fields_of(refusal(rpc("ListTaskPushNotificationConfigs", params))[1]) == {"pageToken"}


def test_an_unknown_config_is_an_unknown_task() -> None:
    for error in (CallbackNotFound("none"), TaskNotFound("none")):
        by_rpc, by_path = (read(request).refuse(error) for request in GET)
        assert json.loads(by_rpc.body)["error"]["code"] == -32001
        assert by_path.status == 404
        assert json.loads(by_path.body)["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"


# -- what is posted


def _posted(*events: TaskEvent, callback: Callback = CALLBACK) -> tuple[HttpRequest | None, Any]:
    """The post of the last of these events, and its body."""
    task = open_task()
    for event in events:
        task = fold(task, [event])
    assert DIALECT.notify is not None
    request = DIALECT.notify(
        Notice(
            callback=callback,
            task=task,
            happened=Happened(seq=task.last_seq, event=events[-1]),
            url=callback.url or "",
            recipient="",
            hub_url="http://hub.test",
            hub_id="h",
            at=LATER,
        )
    )
    return request, None if request is None else json.loads(request.body)


@pytest.mark.req("O-33")
def test_a_push_is_the_post_of_what_a_stream_would_show() -> None:
    request, body = _posted(moved(TaskState.WORKING))
    assert request is not None
    assert (request.method, request.url) == ("POST", "https://client.test/hook")
    assert request.headers[b"content-type"] == b"application/a2a+json"
    assert request.headers[b"authorization"] == b"Bearer s3cret"
    assert request.headers[b"x-a2a-notification-token"] == b"t0ken"
    status = {"state": "TASK_STATE_WORKING", "timestamp": WHEN}
    assert body == {"statusUpdate": {"taskId": TASK, "contextId": CONTEXT, "status": status}}
    _, body = _posted(piece("one", last=False))
    assert body["artifactUpdate"]["artifact"] == {"artifactId": "a-1", "parts": [{"text": "one"}]}
    _, body = _posted(piece("one"), moved(TaskState.COMPLETED))
    assert body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_the_end_is_told_with_the_answer_where_no_artifact_had_it() -> None:
    _, body = _posted(moved(TaskState.COMPLETED, said("the answer")))
    assert list(body) == ["task"]
    assert body["task"]["artifacts"][0]["parts"] == [{"text": "the answer"}]


def test_what_is_told_late_says_what_was_then() -> None:
    words, ended = added(said("wait")), moved(TaskState.COMPLETED)
    task = fold(open_task(), [moved(TaskState.WORKING), words, ended])
    for event, state in ((moved(TaskState.WORKING), "WORKING"), (words, "WORKING"), (ended, "COMPLETED")):
        shown = told(msgspec.structs.replace(task, artifacts=(piece("all").artifact,)), event)
        assert shown is not None
        assert shown["statusUpdate"]["status"]["state"] == f"TASK_STATE_{state}"


def test_what_a_stream_does_not_show_is_not_posted() -> None:
    assert _posted(Sent(at=LATER, agent_id="agt_target"))[0] is None
    assert _posted(added(said("me", Role.USER)))[0] is None


def test_a_config_without_secrets_sends_none() -> None:
    bare = Callback(id="c", dialect="a2a-1.0", url="https://client.test/", auth={"scheme": "Bearer"})
    request, _ = _posted(moved(TaskState.WORKING), callback=bare)
    assert request is not None
    assert b"authorization" not in request.headers
    assert b"x-a2a-notification-token" not in request.headers
