"""Streams and push of dotted in its own words."""

import json
from typing import Any, Final

import pytest

from dragoman.dialects.dialect import Exchange, Verb
from dragoman.dialects.dotted import DIALECT
from dragoman.dialects.sse import SseEvent
from dragoman.model.answers import Done
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Data, Message, Role, Text
from dragoman.model.errors import BadAgentReply, NotSupported
from dragoman.model.http import HttpReply
from dragoman.model.operations import DeleteCallback, GetCallback, SendTask, SetCallback, Wait
from dragoman.model.states import TaskState
from tests.dialects.goldens import LATER
from tests.dialects.kind_world import asked, failure, outgoing, posted, read, rpc_body, sent
from tests.dialects.stream_world import WHEN, framed, frames_of, items_of, moved, open_task, piece, said, told

MESSAGE: Final[dict[str, Any]] = {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}
PUSH: Final = "tasks/pushNotificationConfig"


def _read(method: str, params: Any) -> Exchange:
    return read(DIALECT, posted(rpc_body(method, params)))


@pytest.mark.req("D-14")
@pytest.mark.parametrize("method", ["message.stream", "message/stream"])
def test_a_stream_is_asked_for_by_either_name(method: str) -> None:
    assert sent(DIALECT, method, {"message": MESSAGE}).wait is Wait.STREAM


def test_who_asks_for_a_stream_and_wants_no_answer_has_the_call_made_all_the_same() -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "message.stream", "params": {"message": MESSAGE}}).encode()
    operation = read(DIALECT, posted(body)).operation
    assert isinstance(operation, SendTask)
    assert operation.wait is Wait.END


@pytest.mark.req("D-14")
def test_the_frames_are_those_of_0_3_with_the_objects_of_dotted() -> None:
    events = [moved(TaskState.WORKING, said("looking")), piece("High water"), moved(TaskState.COMPLETED)]
    data = framed(frames_of(_read("message.stream", {"message": MESSAGE})), *items_of(open_task(), list(events)))
    first, *others = [each["result"] for each in data]
    assert (first["kind"], first["messages"], first["createdAt"]) == (
        "task",
        first["history"],
        "2026-01-12T10:00:00.000Z",
    )
    ids = {"taskId": "task-1", "contextId": "ctx-1"}
    artifact = {"artifactId": "a-1", "parts": [{"kind": "text", "text": "High water"}]}
    working = {"state": "working", "timestamp": WHEN, "message": "looking"}
    assert others == [
        {"kind": "status-update", **ids, "status": working, "final": False},
        {"kind": "artifact-update", **ids, "artifact": artifact, "append": False, "lastChunk": True},
        {"kind": "status-update", **ids, "status": {"state": "completed", "timestamp": WHEN}, "final": True},
    ]


def test_words_of_a_status_that_are_more_than_text_are_the_message_itself() -> None:
    asks = Message(id="m-2", role=Role.AGENT, parts=(Text(text="Which?"), Data(value={"of": 2})))
    (shown,) = told(
        open_task(), frames_of(_read("message.stream", {"message": MESSAGE})), moved(TaskState.INPUT_REQUIRED, asks)
    )
    words = shown["result"]["status"]["message"]
    assert (words["kind"], words["messageId"]) == ("message", "m-2")
    assert words["parts"] == [{"kind": "text", "text": "Which?"}, {"kind": "data", "data": {"of": 2}}]


@pytest.mark.req("D-25")
def test_push_has_the_methods_of_0_3_and_takes_a_task_by_either_name() -> None:
    config = {"id": "c-1", "url": "https://x.test/hook"}
    callback = Callback(id="c-1", dialect="dotted", url="https://x.test/hook", tells=Tells.EVENTS)
    for name in ("id", "taskId"):
        kept = _read(f"{PUSH}/set", {name: "task-1", "pushNotificationConfig": config})
        assert kept.operation == SetCallback(task_id="task-1", callback=callback, agent="agt_x")
        assert json.loads(kept.reply(callback).body)["result"] == {"taskId": "task-1", "pushNotificationConfig": config}
        one = _read(f"{PUSH}/get", {name: "task-1"})
        assert one.operation == GetCallback(task_id="task-1", dialect="dotted", agent="agt_x")
    gone = _read(f"{PUSH}/delete", {"taskId": "task-1", "pushNotificationConfigId": "c-1"})
    assert gone.operation == DeleteCallback(task_id="task-1", dialect="dotted", callback_id="c-1", agent="agt_x")
    assert json.loads(gone.reply(Done()).body) == {"jsonrpc": "2.0", "id": "req-1", "result": None}
    inline = {"message": MESSAGE, "configuration": {"pushNotificationConfig": config}}
    assert sent(DIALECT, "message.send", inline).callback == callback


# -- calling agents


def _refused(version: str | None, code: int = -32601, verb: Verb = Verb.STREAM) -> str:
    """The version in which it is asked again."""
    reply = HttpReply(status=200, body=json.dumps(failure(code)).encode())
    with pytest.raises(BadAgentReply) as raised:
        DIALECT.hear(outgoing(DIALECT, verb, open_task(), version=version), reply, LATER)
    found: str = raised.value.details["try_version"]
    return found


def test_an_agent_that_knows_no_name_of_streams_keeps_its_own_names_for_all_else() -> None:
    task = open_task(remote={"task_id": "T"})
    version = _refused(None)
    call = outgoing(DIALECT, Verb.STREAM, task, version=version)
    assert asked(DIALECT, call)[1]["method"] == "message/stream"
    with pytest.raises(NotSupported):
        DIALECT.hear(call, HttpReply(status=200, body=json.dumps(failure(-32601)).encode()), LATER)
    assert asked(DIALECT, outgoing(DIALECT, Verb.SEND, task, version=version))[1]["method"] == "message.send"
    assert _refused(version, verb=Verb.SEND) == "slash"
    assert asked(DIALECT, outgoing(DIALECT, Verb.GET, task, version="slash"))[1]["method"] == "tasks/get"


def test_there_is_no_word_for_listening_to_a_task_that_was_sent_before() -> None:
    assert DIALECT.ask(outgoing(DIALECT, Verb.SUBSCRIBE, open_task(remote={"task_id": "T"}))) is None


def test_turns_under_dotteds_own_name_are_heard_in_a_stream() -> None:
    assert DIALECT.listen is not None
    task = {
        "id": "T",
        "kind": "task",
        "contextId": "C",
        "status": {"state": "completed"},
        "messages": [{"messageId": "m-9", "role": "agent", "parts": [{"kind": "text", "text": "so"}]}],
    }
    listener = DIALECT.listen(outgoing(DIALECT, Verb.STREAM, open_task()))
    heard = listener.hear(SseEvent("", json.dumps({"jsonrpc": "2.0", "id": "1", "result": task}).encode()), LATER)
    assert heard.settled
    assert "so" in repr(heard.events)
