"""AgentVault's webhooks: at every change of state the caller's own URL is told, signed with its own secret."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.end_to_end.agentvault_world import error, get, mount, result, settled, taken_in, text
from tests.end_to_end.world import RFC_3339, eventually, fresh
from tests.support.agents import agentvault
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent
from tests.support.speaking import StubAgent, json_answer, serving

Told = tuple[Mapping[str, str], dict[str, Any]]


class Hook(StubAgent):
    """A URL that is told of tasks; it refuses as often as a test wants."""

    def __init__(self) -> None:
        super().__init__("hook")
        self.refusals = 0

    def told(self, task_id: str) -> list[Told]:
        """What it was told of one task, what it refused included."""
        return [(headers, body) for _, _, headers, body in self.requests if body["taskId"] == task_id]

    def states(self, task_id: str) -> list[str]:
        """The states it was told."""
        return [body["state"] for _, body in self.told(task_id)]


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if hook.refusals:
            hook.refusals -= 1
            return 503, {"Retry-After": "0"}, b""
        return json_answer({})

    with serving(hook, handle):
        yield hook


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with agentvault.agent(fresh("hooked")) as stub:
        yield stub


def _send(hub: HubProcess, agent: str, words: str, url: str, token: str = "") -> str:
    task_id: str = result(hub, mount(agent), "tasks/send", {"message": text(words), "webhookUrl": url}, token=token)[
        "id"
    ]
    return task_id


@pytest.mark.req("V-08")
def test_a_webhook_is_told_every_change_of_state(hub: HubProcess, stub: StubAgent, hook: Hook) -> None:
    agent = taken_in(hub, stub)
    task_id = _send(hub, agent, "ask", f"{hook.url}/hook")
    eventually(lambda: hook.states(task_id)[-1:] == ["INPUT_REQUIRED"], "the question is told")
    result(hub, mount(agent), "tasks/send", {"id": task_id, "message": text("this")})
    eventually(lambda: hook.states(task_id)[-1:] == ["COMPLETED"], "the end is told")
    # Every one, once, and in order.
    assert hook.states(task_id) == ["WORKING", "INPUT_REQUIRED", "WORKING", "COMPLETED"]
    names = [headers["webhook-id"].rpartition("_") for headers, _ in hook.told(task_id)]
    assert {name[0] for name in names} == {f"wh_{task_id}"}
    numbers = [int(name[2]) for name in names]
    assert numbers == sorted(numbers)
    for headers, body in hook.told(task_id):
        assert headers["x-a2a-event"] == "task_status"
        assert headers["content-type"] == "application/json"
        assert set(body) - {"message"} == {"taskId", "state", "timestamp"}
        assert RFC_3339.fullmatch(body["timestamp"])
    assert len({headers["webhook-id"] for headers, _ in hook.told(task_id)}) == len(hook.told(task_id))


@pytest.mark.req("V-08")
def test_a_webhook_is_signed_with_the_callers_own_secret(
    hub: HubProcess, stub: StubAgent, hook: Hook, agent: PlatformAgent
) -> None:
    caller = hub.register(agent.card(id=fresh("agt_caller")))
    target = taken_in(hub, stub)
    task_id = _send(hub, target, "fail", f"{hook.url}/hook", caller["token"])
    eventually(lambda: "FAILED" in hook.states(task_id), "the failure is told")
    secret = caller["signing_secret"]
    for headers, body in hook.told(task_id):
        raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{raw}".encode()
        key = base64.b64decode(secret.removeprefix("whsec_"))
        wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{wanted}"
        plain = hmac.new(secret.encode(), raw.encode(), hashlib.sha256).hexdigest()
        assert headers["x-signature"] == f"sha256={plain}"
        assert "x-api-key" not in headers
        assert "authorization" not in headers


@pytest.mark.req("V-08")
def test_a_webhook_that_refuses_is_told_again_under_the_same_id(hub: HubProcess, stub: StubAgent, hook: Hook) -> None:
    hook.refusals = 1
    agent = taken_in(hub, stub)
    task_id = _send(hub, agent, "hi", f"{hook.url}/hook")
    settled(hub, agent, task_id)
    ids = eventually(lambda: _repeated(hook, task_id), "the refused one is told again")
    assert ids


def _repeated(hook: Hook, task_id: str) -> set[str]:
    ids = [headers["webhook-id"] for headers, _ in hook.told(task_id)]
    return {each for each in ids if ids.count(each) > 1}


@pytest.mark.req("V-08")
def test_a_later_webhook_takes_the_place_of_the_first(hub: HubProcess, stub: StubAgent, hook: Hook) -> None:
    agent = taken_in(hub, stub)
    task_id = _send(hub, agent, "ask", f"{hook.url}/first")
    eventually(lambda: hook.states(task_id)[-1:] == ["INPUT_REQUIRED"], "the question is told")
    params = {"id": task_id, "message": text("this"), "webhookUrl": f"{hook.url}/second"}
    result(hub, mount(agent), "tasks/send", params)
    eventually(lambda: hook.states(task_id)[-1:] == ["COMPLETED"], "the end is told")
    assert get(hub, agent, task_id)["state"] == "COMPLETED"
    ends = [path for _, path, _, body in hook.requests if body["state"] == "COMPLETED"]
    assert ends == ["/second"]


@pytest.mark.req("V-08")
@pytest.mark.parametrize("url", ["http://10.0.0.1/hook", "http://169.254.169.254/", "ftp://example.com/", "nowhere"])
def test_an_address_that_may_not_be_called_is_refused(hub: HubProcess, stub: StubAgent, url: str) -> None:
    agent = taken_in(hub, stub)
    refused = error(hub, mount(agent), "tasks/send", {"message": text("hi"), "webhookUrl": url})
    assert refused["code"] == -32602
    assert not stub.arrived.is_set()
