"""Push notifications of A2A 1.0 through a real hub: configs in both framings, and what arrives where they say."""

from collections.abc import Generator, Iterator
from typing import Any, Final

import pytest

from tests.end_to_end.world import eventually, fresh
from tests.support.agents.streaming_v10 import Streaming10Agent, streaming10
from tests.support.hub import HubProcess, Reply
from tests.support.receiver import Arrived, CallbackReceiver, callback_receiver

V10: Final = {"A2A-Version": "1.0"}
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
SECRETS: Final = {"token": "t0ken", "authentication": {"scheme": "Bearer", "credentials": "s3cret"}}

every_binding = pytest.mark.parametrize("binding", BINDINGS)


class Pushing:
    """One agent at a hub, and the four operations on a task's configs in one framing."""

    def __init__(self, hub: HubProcess, agent_id: str, binding: str = "JSONRPC") -> None:
        self.hub = hub
        self.base = f"/agents/{agent_id}"
        self.binding = binding

    def create(self, task_id: str, **config: Any) -> Reply:
        """CreateTaskPushNotificationConfig."""
        return self._asked("Create", "POST", task_id, config, "")

    def get(self, task_id: str, config_id: str) -> Reply:
        """GetTaskPushNotificationConfig."""
        return self._asked("Get", "GET", task_id, {"id": config_id}, f"/{config_id}")

    def list(self, task_id: str) -> Reply:
        """ListTaskPushNotificationConfigs."""
        return self._asked("List", "GET", task_id, {}, "")

    def delete(self, task_id: str, config_id: str) -> Reply:
        """DeleteTaskPushNotificationConfig."""
        return self._asked("Delete", "DELETE", task_id, {"id": config_id}, f"/{config_id}")

    def send(self, **configuration: Any) -> str:
        """The id of a task that was begun and goes on."""
        message = {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": "tell"}]}
        params = {"message": message, "configuration": {"returnImmediately": True, **configuration}}
        frame = {"jsonrpc": "2.0", "id": "r1", "method": "SendMessage", "params": params}
        reply = self.hub.post(self.base, frame, V10)
        task_id: str = reply.json["result"]["task"]["id"]
        return task_id

    def result(self, reply: Reply) -> Any:
        """The result of a reply."""
        assert reply.status == 200, reply.body
        return reply.json["result"] if self.binding == "JSONRPC" else reply.json

    def reason(self, reply: Reply) -> str:
        """Why something was refused."""
        error = reply.json["error"]
        found: str = (error["data"] if self.binding == "JSONRPC" else error["details"])[0]["reason"]
        return found

    def _asked(self, word: str, verb: str, task_id: str, more: dict[str, Any], below: str) -> Reply:
        if self.binding == "JSONRPC":
            name = f"{word}TaskPushNotificationConfig{'s' if word == 'List' else ''}"
            frame = {"jsonrpc": "2.0", "id": "r1", "method": name, "params": {"taskId": task_id, **more}}
            return self.hub.post(self.base, frame, V10)
        path = f"{self.base}/tasks/{task_id}/pushNotificationConfigs{below}"
        return self.hub.request(verb, path, more if verb == "POST" else None, V10)


@pytest.fixture
def receiver() -> Iterator[CallbackReceiver]:
    with callback_receiver() as receiver:
        yield receiver


@pytest.fixture
def teller(hub: HubProcess) -> Generator[tuple[str, Streaming10Agent]]:
    """A streaming agent and its id."""
    with streaming10() as agent:
        yield hub.register(agent.card, id=fresh("agt_pushed"))["id"], agent


def _member(arrived: Arrived) -> str:
    assert len(arrived.body) == 1
    return next(iter(arrived.body))


def _ended(receiver: CallbackReceiver) -> list[Arrived]:
    """What arrived, once the end has."""

    def look() -> list[Arrived] | None:
        got = list(receiver.got)
        return got if got and "TASK_STATE_COMPLETED" in got[-1].raw.decode() else None

    return eventually(look, "the end is told")


@pytest.mark.req("O-01", "O-02", "O-32")
@every_binding
def test_configs_are_created_read_listed_and_deleted(
    hub: HubProcess, teller: tuple[str, Streaming10Agent], receiver: CallbackReceiver, binding: str
) -> None:
    agent_id, agent = teller
    push = Pushing(hub, agent_id, binding)
    task_id = push.send()
    call = agent.next_call()
    named = push.result(push.create(task_id, id="mine", url=f"{receiver.url}/a", **SECRETS))
    shown = {"id": "mine", "taskId": task_id, "url": f"{receiver.url}/a", "authentication": {"scheme": "Bearer"}}
    assert named == shown
    given = push.result(push.create(task_id, url=f"{receiver.url}/b"))
    assert given["id"]
    assert push.result(push.get(task_id, "mine")) == shown
    assert push.result(push.get(task_id, given["id"])) == given
    assert push.result(push.list(task_id)) == {"configs": [shown, given]}
    for _ in range(2):
        assert push.result(push.delete(task_id, "mine")) == {}
    assert push.result(push.list(task_id)) == {"configs": [given]}
    for gone in (push.get(task_id, "mine"), push.get("task-unknown", "mine"), push.list("task-unknown")):
        assert push.reason(gone) == "TASK_NOT_FOUND"
        assert gone.status == (200 if binding == "JSONRPC" else 404)
    call.task("COMPLETED")


@pytest.mark.req("O-33")
def test_every_event_is_posted_with_what_the_config_says(
    hub: HubProcess, teller: tuple[str, Streaming10Agent], receiver: CallbackReceiver
) -> None:
    agent_id, agent = teller
    config = {"url": f"{receiver.url}/hook", **SECRETS}
    task_id = Pushing(hub, agent_id).send(taskPushNotificationConfig=config)
    call = agent.next_call()
    call.task("WORKING")
    call.made("one ")
    receiver.wait_for(2)
    call.made("two", append=True, last=True)
    call.status("COMPLETED")
    got = _ended(receiver)
    assert {each.path for each in got} == {"/hook"}
    for each in got:
        assert each.headers["content-type"] == "application/a2a+json"
        assert each.headers["authorization"] == "Bearer s3cret"
        assert each.headers["x-a2a-notification-token"] == "t0ken"
        (about,) = each.body.values()
        assert about["taskId"] == task_id
    members = [_member(each) for each in got]
    assert members[0] == members[-1] == "statusUpdate"
    words = [
        part["text"]
        for each in got
        if _member(each) == "artifactUpdate"
        for part in each.body["artifactUpdate"]["artifact"]["parts"]
    ]
    assert "".join(words) == "one two"
    assert len({each.headers["webhook-id"] for each in got}) == len(got)


@pytest.mark.req("O-33")
def test_a_push_that_is_not_taken_comes_again_under_the_same_id(
    hub: HubProcess, teller: tuple[str, Streaming10Agent], receiver: CallbackReceiver
) -> None:
    agent_id, agent = teller
    receiver.statuses = [500]
    Pushing(hub, agent_id).send(taskPushNotificationConfig={"url": receiver.url})
    agent.next_call().task("WORKING")
    first, second = receiver.wait_for(2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.raw == second.raw


def test_who_sets_a_config_later_is_told_from_then_on_and_who_deletes_it_no_more(
    hub: HubProcess, teller: tuple[str, Streaming10Agent], receiver: CallbackReceiver
) -> None:
    agent_id, agent = teller
    push = Pushing(hub, agent_id)
    task_id = push.send()
    call = agent.next_call()
    push.result(push.create(task_id, id="kept", url=f"{receiver.url}/kept"))
    call.task("WORKING")
    receiver.wait_for(1)
    push.result(push.create(task_id, id="gone", url=f"{receiver.url}/gone"))
    push.result(push.delete(task_id, "gone"))
    call.made("all", last=True)
    call.status("COMPLETED")
    assert {each.path for each in _ended(receiver)} == {"/kept"}


@pytest.mark.req("O-34")
def test_an_address_that_may_not_be_called_is_refused(hub: HubProcess, teller: tuple[str, Streaming10Agent]) -> None:
    agent_id, agent = teller
    push = Pushing(hub, agent_id)
    task_id = push.send()
    agent.next_call()
    for url in ("http://169.254.169.254/latest", "http://10.0.0.1/", "file:///etc/passwd", "not a url"):
        refused = push.create(task_id, url=url)
        assert refused.json["error"]["code"] == -32602, refused.body
    message = {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": "tell"}]}
    inline = {"message": message, "configuration": {"taskPushNotificationConfig": {"url": "http://10.0.0.1/"}}}
    frame = {"jsonrpc": "2.0", "id": "r1", "method": "SendMessage", "params": inline}
    assert hub.post(push.base, frame, V10).json["error"]["code"] == -32602
    assert push.result(push.list(task_id)) == {"configs": []}


@pytest.mark.req("O-31")
def test_anybody_elses_configs_are_unknown(
    hub: HubProcess, teller: tuple[str, Streaming10Agent], receiver: CallbackReceiver
) -> None:
    agent_id, agent = teller
    push = Pushing(hub, agent_id)
    task_id = push.send()
    agent.next_call()
    push.result(push.create(task_id, id="mine", url=receiver.url))
    other = hub.post("/v1/keys", {"name": "other", "scopes": ["a2a:call"]}).json["key"]
    for method, more in (
        ("CreateTaskPushNotificationConfig", {"url": receiver.url}),
        ("GetTaskPushNotificationConfig", {"id": "mine"}),
        ("ListTaskPushNotificationConfigs", {}),
        ("DeleteTaskPushNotificationConfig", {"id": "mine"}),
    ):
        frame = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": {"taskId": task_id, **more}}
        assert hub.post(push.base, frame, V10, other).json["error"]["code"] == -32001
    assert len(push.result(push.list(task_id))["configs"]) == 1


@pytest.mark.req("O-22")
def test_every_card_declares_streams_and_push_so_none_of_their_operations_is_refused(
    hub: HubProcess, teller: tuple[str, Streaming10Agent]
) -> None:
    agent_id, _ = teller
    for headers in (V10, {}):
        card = hub.request("GET", f"/agents/{agent_id}/.well-known/agent-card.json", None, headers).json
        assert (card["capabilities"]["streaming"], card["capabilities"]["pushNotifications"]) == (True, True)
    old = hub.get(f"/agents/{agent_id}/a2a-0.3/.well-known/agent-card.json").json
    assert (old["capabilities"]["streaming"], old["capabilities"]["pushNotifications"]) == (True, True)
    for method, params in (
        ("SubscribeToTask", {"id": "task-x"}),
        ("CreateTaskPushNotificationConfig", {"taskId": "task-x", "url": "http://127.0.0.1:9/"}),
        ("GetTaskPushNotificationConfig", {"taskId": "task-x", "id": "c"}),
        ("ListTaskPushNotificationConfigs", {"taskId": "task-x"}),
        ("DeleteTaskPushNotificationConfig", {"taskId": "task-x", "id": "c"}),
    ):
        frame = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
        assert hub.post(f"/agents/{agent_id}", frame, V10).json["error"]["code"] == -32001
