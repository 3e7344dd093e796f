"""AgentVault's agents and webhooks, without a wire: what they are sent, and what their answers say."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.dialects.agentvault.answers import notify, shown_task
from dragoman.dialects.agentvault.outbound import answers_probe, ask, probe
from dragoman.dialects.dialect import Heard, Notice, Verb
from dragoman.model.callbacks import Callback
from dragoman.model.content import Artifact, Data, Message, Part, Role, Text
from dragoman.model.errors import (
    AgentError,
    BadAgentReply,
)
from dragoman.model.events import Happened, MessageAdded, Remote, StatusChanged
from dragoman.model.http import HttpReply
from dragoman.model.lifecycle import artifacts_of, fold, output_of
from dragoman.model.operations import Priority, SendTask
from dragoman.model.states import TaskState
from tests.dialects.agentvault_samples import (
    AT,
    HI,
    HUB,
    LATER,
    PARTS,
    UUID,
    agent_said,
    folded,
    heard_from,
    outgoing,
    published,
    result_of,
    rpc,
    sent_by,
    task_of,
)


def _notice(event: Any) -> Notice:
    return Notice(
        callback=Callback(id="webhook", dialect="agentvault", url="https://client.example/hook"),
        task=task_of(id="task-6bd19e82"),
        happened=Happened(seq=3, event=event),
        url="https://client.example/hook",
        recipient="me",
        hub_url=HUB,
        hub_id=UUID,
        at=AT,
    )


def test_a_webhook_gets_the_status_event() -> None:
    request = notify(_notice(StatusChanged(at=LATER, state=TaskState.COMPLETED, message=agent_said("Done"))))
    assert request is not None
    assert (request.method, request.url) == ("POST", "https://client.example/hook")
    assert request.headers == {b"content-type": b"application/json", b"x-a2a-event": b"task_status"}
    assert json.loads(request.body) == published("webhook-request")


def test_a_webhook_is_told_why_and_nothing_but_states() -> None:
    failed = notify(_notice(StatusChanged(at=LATER, state=TaskState.FAILED, failure=AgentError("It broke").failure())))
    assert failed is not None
    assert json.loads(failed.body)["message"] == "It broke"
    assert notify(_notice(MessageAdded(at=LATER, message=HI))) is None
    assert notify(_notice(StatusChanged(at=LATER, state=TaskState.WORKING))) is not None
    assert notify(_notice(StatusChanged(at=LATER, state=TaskState.WORKING, progress=0.5))) is None


def test_a_task_is_sent_with_the_hubs_block_and_a_key() -> None:
    asked = SendTask(message=msgspec.structs.replace(HI, metadata={"k": 1}), metadata={"own": 2})
    request = ask(outgoing(Verb.SEND, task_of(asked=asked, skill="echo")))
    assert request is not None
    assert (request.method, request.url) == ("POST", "http://agent.test/a2a/")
    assert request.headers[b"idempotency-key"] == b"av-1"
    body = json.loads(request.body)
    assert (body["jsonrpc"], body["id"], body["method"]) == ("2.0", "av-1", "tasks/send")
    assert body["params"]["message"] == {
        "role": "user",
        "parts": [{"type": "text", "content": "echo:hi"}],
        "metadata": {
            "own": 2,
            "k": 1,
            "dragoman": {"call_id": "av-1", "skill": "echo", "timeout_ms": 5000},
        },
    }
    assert "id" not in body["params"]


def test_a_further_message_goes_into_the_agents_task_under_a_key_of_its_own() -> None:
    more = SendTask(message=Message(id="msg-2", role=Role.USER, parts=()), continues="av-1")
    task = task_of(TaskState.INPUT_REQUIRED, remote=Remote(task_id="theirs"))
    request = ask(outgoing(Verb.SEND, task, asked=more, message=more.message))
    assert request is not None
    assert request.headers[b"idempotency-key"] == b"msg-2"
    params = json.loads(request.body)["params"]
    assert params["id"] == "theirs"
    assert params["message"]["parts"] == [{"type": "text", "content": ""}]


@pytest.mark.parametrize(("verb", "method"), [(Verb.GET, "tasks/get"), (Verb.CANCEL, "tasks/cancel")])
def test_a_task_is_asked_for_and_cancelled_by_the_agents_own_id(verb: Verb, method: str) -> None:
    assert ask(outgoing(verb, task_of())) is None
    request = ask(outgoing(verb, task_of(remote=Remote(task_id="theirs"))))
    assert request is not None
    assert json.loads(request.body) == {"jsonrpc": "2.0", "id": "av-1", "method": method, "params": {"id": "theirs"}}


@given(parts=st.lists(PARTS, min_size=1, max_size=3), role=st.sampled_from(Role), own=st.sampled_from([None, {"k": 1}]))
def test_what_is_asked_is_read_again_as_it_was(parts: list[Part], role: Role, own: dict[str, Any] | None) -> None:
    asked = SendTask(
        message=Message(id="m", role=role, parts=tuple(parts), metadata=own),
        priority=Priority.HIGH,
        parent_id="p",
        title="t",
    )
    request = ask(outgoing(Verb.SEND, task_of(asked=asked, skill="echo")))
    assert request is not None
    again = sent_by(rpc(request.body))
    assert msgspec.structs.replace(again.message, id="m") == asked.message
    assert (again.priority, again.parent_id, again.title, again.skill) == (Priority.HIGH, "p", "t", "echo")
    assert again.timeout_s == 5.0


def test_a_sent_task_is_not_settled_and_known_by_the_agents_id() -> None:
    heard = heard_from(Verb.SEND, published("tasks-send-response"))
    assert heard == Heard(events=(), settled=False, remote=Remote(task_id="task-6bd19e82"))


@pytest.mark.parametrize("word", ["SUBMITTED", "WORKING", "working", "something new"])
def test_an_open_task_is_asked_for_again(word: str) -> None:
    task = {**published("tasks-get-response")["result"], "state": word}
    heard = heard_from(Verb.GET, result_of(task))
    assert heard.settled is False
    assert [type(event) for event in heard.events] == [StatusChanged]


def test_a_finished_task_tells_what_was_said_and_made() -> None:
    heard = heard_from(Verb.GET, published("tasks-get-response"))
    assert (heard.settled, heard.remote) == (True, Remote(task_id="task-6bd19e82"))
    task = folded(heard)
    assert (task.state, [message.role for message in task.messages]) == (TaskState.COMPLETED, [Role.AGENT])
    assert task.artifacts == (
        Artifact(id="a1", kind="result", parts=(Data(value={"echo": "hi"}, media_type="application/json"),)),
    )
    assert output_of(task) == (Data(value={"echo": "hi"}, media_type="application/json"),)


def _listed(state: str, *messages: tuple[str, str], **more: Any) -> dict[str, Any]:
    listed = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return result_of({"id": "theirs", "state": state, "messages": listed, "artifacts": None, **more})


def test_an_answer_in_a_message_alone_is_found() -> None:
    task = folded(heard_from(Verb.GET, _listed("COMPLETED", ("user", "echo:hi"), ("assistant", "hi"))))
    assert output_of(task) == (Text(text="hi"),)
    assert [artifact.parts for artifact in artifacts_of(task)] == [(Text(text="hi"),)]


@pytest.mark.parametrize("state", ["INPUT_REQUIRED", "FAILED"])
def test_the_words_that_go_with_a_state_are_the_agents_last(state: str) -> None:
    task = folded(heard_from(Verb.GET, _listed(state, ("user", "echo:hi"), ("assistant", "a"), ("assistant", "b"))))
    assert task.status_message is not None
    assert task.status_message.parts == (Text(text="b"),)
    assert len(shown_task(task)["messages"]) == 3


def test_what_was_heard_in_an_earlier_turn_is_not_heard_again() -> None:
    first = folded(heard_from(Verb.GET, _listed("INPUT_REQUIRED", ("user", "echo:hi"), ("assistant", "Which?"))))
    more = SendTask(message=Message(id="msg-2", role=Role.USER, parts=(Text(text="x"),)), continues="av-1")
    first = fold(first, (MessageAdded(at=AT, message=more.message),))
    turns = (("user", "echo:hi"), ("assistant", "Which?"), ("user", "x"), ("assistant", "x"))
    heard = heard_from(Verb.GET, _listed("COMPLETED", *turns), task=first, asked=more)
    done = folded(heard, first)
    assert [message.parts for message in done.messages] == [
        (Text(text="Which?"),),
        (Text(text="x"),),
        (Text(text="x"),),
    ]
    assert output_of(done) == (Text(text="x"),)


def test_an_agent_that_has_not_looked_at_its_answer_yet_is_asked_again() -> None:
    more = SendTask(message=HI, continues="av-1")
    turns = (("user", "a"), ("assistant", "Which?"), ("user", "b"))
    task = task_of(TaskState.INPUT_REQUIRED)
    heard = heard_from(Verb.GET, _listed("INPUT_REQUIRED", *turns), task=task, asked=more)
    assert heard.settled is False
    assert folded(heard, task).state is TaskState.WORKING
    again = heard_from(Verb.GET, _listed("INPUT_REQUIRED", *turns, ("assistant", "Which then?")), task=task, asked=more)
    assert again.settled is True


def test_the_callers_own_turns_are_no_answers_whatever_their_role() -> None:
    own = Message(id="m", role=Role.SYSTEM, parts=(Text(text="be brief"),))
    task = task_of(asked=SendTask(message=own))
    heard = heard_from(
        Verb.GET, _listed("COMPLETED", ("system", "be brief"), ("tool", "used"), ("assistant", "ok")), task=task
    )
    assert [message.role for message in folded(heard, task).messages] == [Role.TOOL, Role.AGENT]


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (200, {"error": {"code": -32602, "message": "bad"}}, "VALIDATION_ERROR", "bad"),
        (200, {"error": {"code": -32001, "message": "gone"}}, "AGENT_ERROR", "gone"),
        (500, {"error": {"code": -32603, "message": "broke"}}, "AGENT_ERROR", "broke"),
        (200, {"error": "stream_error", "message": "no luck"}, "AGENT_ERROR", "no luck"),
        (500, {"error": "oops"}, "AGENT_ERROR", "oops"),
        (404, {"detail": "Not Found"}, "AGENT_ERROR", "Not Found"),
        (401, {"error": {"code": -32002, "message": "who?"}}, "AGENT_ERROR", "who?"),
        (403, b"no", "AGENT_ERROR", "The agent answered HTTP 403."),
        (429, b"", "RATE_LIMITED", "The agent answered HTTP 429."),
        (503, b"", "AGENT_UNAVAILABLE", "The agent answered HTTP 503."),
    ],
)
def test_an_agents_refusal_is_a_failed_task(status: int, body: object, kind: str, message: str) -> None:
    heard = heard_from(Verb.SEND, body, status)
    assert heard.settled
    (event,) = heard.events
    assert isinstance(event, StatusChanged)
    assert event.failure is not None
    assert (event.state, event.failure.code, event.failure.message) == (TaskState.FAILED, kind, message)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"hello"),
        (500, b"Internal Server Error"),
        (200, b""),
        (200, {"result": None, "error": None}),
        (200, {"result": {}}),
        (200, {"result": {"id": ""}}),
        (200, {"result": "ok"}),
        (422, {"detail": [{"loc": ["body"]}]}),
    ],
)
def test_an_unusable_answer_is_said_to_be_one(status: int, body: object) -> None:
    with pytest.raises(BadAgentReply):
        heard_from(Verb.SEND, body, status)


def test_null_siblings_and_a_task_in_the_answer_to_a_send_are_understood() -> None:
    body = {**_listed("COMPLETED", ("assistant", "hi")), "error": None}
    heard = heard_from(Verb.SEND, body)
    assert heard.settled
    assert heard.remote == Remote(task_id="theirs")


def test_an_answer_to_a_cancel_settles_nothing() -> None:
    for success in (True, False):
        heard = heard_from(Verb.CANCEL, result_of({"success": success, "message": None}))
        assert heard == Heard(events=(), settled=False)


@pytest.mark.parametrize("name", ["tasks-get-response", "tasks-send-response"])
def test_every_answer_among_the_examples_is_heard(name: str) -> None:
    heard_from(Verb.SEND, published(name))


STATE_WORDS = [TaskState.COMPLETED, TaskState.FAILED, TaskState.INPUT_REQUIRED, TaskState.REJECTED]


@given(
    state=st.sampled_from([*STATE_WORDS, TaskState.AUTH_REQUIRED, TaskState.CANCELED]),
    said=st.lists(st.lists(PARTS, min_size=1, max_size=2), max_size=2),
    made=st.lists(st.lists(PARTS, max_size=2), max_size=2),
    words=st.none() | st.sampled_from(["Why?", ""]),
)
@example(state=TaskState.COMPLETED, said=[], made=[], words="Why?")
@example(state=TaskState.COMPLETED, said=[[Text(text="a")]], made=[], words="Why?")
@example(state=TaskState.COMPLETED, said=[], made=[[Text(text="a")]], words="Why?")
@example(state=TaskState.COMPLETED, said=[[Text(text="")]], made=[[]], words="Why?")
@example(state=TaskState.FAILED, said=[[Text(text="Why?")]], made=[], words="Why?")
def test_a_task_that_is_shown_is_heard_as_it_was(
    state: TaskState, said: list[list[Part]], made: list[list[Part]], words: str | None
) -> None:
    task = task_of(
        state,
        messages=tuple(
            Message(id=f"av-message-{index}", role=Role.AGENT, parts=tuple(parts))
            for index, parts in enumerate(said, start=1)
        ),
        artifacts=tuple(
            Artifact(id=f"a{index}", kind="log", name="n", parts=tuple(parts)) for index, parts in enumerate(made)
        ),
        status_message=None if words is None else agent_said(words),
    )
    again = folded(heard_from(Verb.GET, result_of(json.loads(json.dumps(shown_task(task))))))
    assert again.state is state
    assert again.messages == task.messages
    assert again.artifacts == task.artifacts
    if state is TaskState.COMPLETED:
        assert output_of(again) == output_of(task)
    if words and state not in (TaskState.COMPLETED, TaskState.CANCELED):
        assert again.status_message is not None
        assert again.status_message.parts == (Text(text=words),)


def test_the_probe_starts_no_work_and_knows_an_answer() -> None:
    assert json.loads(probe("http://agent.test/a2a/").body)["method"] == "tasks/get"
    spoken = {"jsonrpc": "2.0", "id": "x", "error": {"code": -32001, "message": "Task not found"}}
    unknown = {"jsonrpc": "2.0", "id": "x", "error": {"code": -32601, "message": "Method not found"}}
    assert answers_probe(HttpReply(status=200, body=json.dumps(spoken).encode()))
    assert answers_probe(HttpReply(status=401))
    assert not answers_probe(HttpReply(status=200, body=json.dumps(unknown).encode()))
    assert not answers_probe(HttpReply(status=500, body=b"Internal Server Error"))
