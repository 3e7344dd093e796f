"""Secrets that callers and owners give the hub: sent where they belong, and in clear nowhere on disk or on a page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.hub.callback_secrets import CallbackSecrets
from dragoman.model.callbacks import Callback
from dragoman.security.sealed import CannotOpen, RootKey, Sealer
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.hub import HubProcess, running_hub
from tests.support.locked_agent import Authority, LockedAgent, TokenEndpoint, locked_agent
from tests.support.receiver import Arrived, CallbackReceiver, callback_receiver

PLANTED = {
    name: f"planted-{name}-5d1e90"
    for name in (
        "bearer", "key", "password", "client", "header", "token10", "auth10", "token03", "auth03", "later", "resent",
    )
}  # fmt: skip


@pytest.fixture
def receiver() -> Iterator[CallbackReceiver]:
    with callback_receiver() as receiver:
        yield receiver


@pytest.fixture
def agent() -> Iterator[LockedAgent]:
    with locked_agent(lambda _: True, tokens=TokenEndpoint(PLANTED["client"])) as agent:
        yield agent


def credentials_of(agent: LockedAgent) -> list[dict[str, Any]]:
    """One of each kind that has a secret."""
    client = {"client_id": "the-client", "client_secret": PLANTED["client"], "token_url": f"{agent.url}/token"}
    return [
        {"type": "bearer", "token": PLANTED["bearer"]},
        {"type": "apiKey", "token": PLANTED["key"]},
        {"type": "basic", "username": "u", "password": PLANTED["password"]},
        {"type": "oauth2", **client},
    ]


def message(words: str) -> dict[str, Any]:
    return {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": words}]}


def rpc10(hub: HubProcess, agent: str, method: str, params: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    reply = hub.post(f"/agents/{agent}/", body, {"A2A-Version": "1.0"})
    assert reply.status == 200, reply.body
    assert "error" not in reply.json, reply.json
    return reply.json["result"]


def give_all(hub: HubProcess, agent: LockedAgent, receiver: CallbackReceiver) -> list[str]:
    """Every way in which a secret is given to a hub; the ids of the calls that were made."""
    name = ""
    for given in credentials_of(agent):
        name = hub.register(agent.card(), id=fresh("sealed"), credentials=given)["id"]
        assert hub.call("talk", {"text": "hi"}, name).status == 200
    callback = {"url": f"{receiver.url}/p", "headers": {"X-Own": PLANTED["header"], "Authorization": PLANTED["resent"]}}
    accepted = hub.post(
        "/v1/a2a/call/async",
        {"skill": "talk", "input": {"text": "hi"}, "target_agent_id": name, "callback": callback},
    )
    assert accepted.status == 202, accepted.body
    auth = {"scheme": "Bearer", "credentials": PLANTED["auth10"]}
    push = {"url": f"{receiver.url}/v10", "token": PLANTED["token10"], "authentication": auth}
    sent = {"message": message("hi"), "configuration": {"taskPushNotificationConfig": push}}
    rpc10(hub, name, "SendMessage", sent)
    auth03 = {"schemes": ["Bearer"], "credentials": PLANTED["auth03"]}
    push03 = {"url": f"{receiver.url}/v03", "token": PLANTED["token03"], "authentication": auth03}
    params = {
        "message": {
            "messageId": fresh("m"),
            "role": "user",
            "kind": "message",
            "parts": [{"kind": "text", "text": "x"}],
        },
        "configuration": {"pushNotificationConfig": push03, "blocking": False},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    assert hub.post(f"/agents/{name}/", body).status == 200
    return [accepted.json["call_id"]]


def on_disk(hub: HubProcess) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(hub.data.rglob("*")) if file.is_file())


def give_certificate(hub: HubProcess, folder: Path) -> str:
    """The middle of a key that was stored for an agent, and used."""
    authority = Authority(folder)
    certificate, key = authority.issue("alice")
    with locked_agent(lambda _: True, tls=authority.serving()) as agent:
        given = {"type": "mtls", "certificate": certificate, "key": key, "ca": authority.pem}
        name = hub.register(agent.card(), id=fresh("sealed"), credentials=given)["id"]
        assert hub.call("talk", {"text": "hi"}, name).status == 200
    return key.splitlines()[1]


def test_no_planted_secret_is_in_clear_on_disk_in_the_log_or_on_a_page(
    tmp_path: Path, agent: LockedAgent, receiver: CallbackReceiver
) -> None:
    with running_hub(tmp_path / "data") as hub:
        calls = give_all(hub, agent, receiver)
        planted = {**PLANTED, "certificate": give_certificate(hub, tmp_path)}
        by_path = _by_path(receiver, {"/p", "/v10", "/v03"})
        pages = b"".join(
            hub.get(path).body
            for path in (
                "/v1/calls",
                "/v1/deliveries",
                "/v1/agents",
                *(f"/v1/agents/{item['id']}" for item in hub.get("/v1/agents").json["items"]),
                *(f"/v1/calls/{call}{more}" for call in calls for more in ("", "/events")),
            )
        )
        before = on_disk(hub)
        assert tracebacks(hub) == []
    # They went where they belong …
    assert by_path["/p"].headers["x-own"] == PLANTED["header"]
    assert by_path["/p"].headers["authorization"] == PLANTED["resent"]
    assert by_path["/v10"].headers["authorization"] == f"Bearer {PLANTED['auth10']}"
    assert by_path["/v10"].headers["x-a2a-notification-token"] == PLANTED["token10"]
    assert by_path["/v03"].headers["authorization"] == f"Bearer {PLANTED['auth03']}"
    assert by_path["/v03"].headers["x-a2a-notification-token"] == PLANTED["token03"]
    # … and stand nowhere else, while the hub runs and after it.
    for place in (before, on_disk(hub), pages, hub.log.read_bytes()):
        assert [name for name, secret in planted.items() if secret.encode() in place] == []


def _by_path(receiver: CallbackReceiver, wanted: set[str]) -> dict[str, Arrived]:
    def found() -> dict[str, Arrived] | None:
        known = {each.path: each for each in receiver.got}
        return known if known.keys() >= wanted else None

    return eventually(found, f"notices at {wanted}")


def test_what_is_sealed_outlives_the_hub(tmp_path: Path, receiver: CallbackReceiver) -> None:
    """A config is set while the task runs, the hub is killed, and the next life still proves itself there."""
    with locked_agent(lambda headers: "x-late" in headers) as agent:
        hub = HubProcess(tmp_path / "data").start()
        try:
            given = {"type": "apiKey", "token": PLANTED["later"], "header": "X-Late"}
            name = hub.register(agent.card(), id="sealed", credentials=given)["id"]
            receiver.statuses = [503]
            callback = {"url": receiver.url, "headers": {"X-Own": PLANTED["header"]}}
            call = {"skill": "talk", "input": {"text": "hi"}, "target_agent_id": name, "callback": callback}
            assert hub.post("/v1/a2a/call/async", call).status == 202
            receiver.wait_for(1)
            (delivery,) = eventually(lambda: _tried(hub), "the first attempt is noted")
            hub.kill()
            hub.start()
            assert hub.call("talk", {"text": "hi"}, name).status == 200
            assert hub.post("/v1/deliveries/replay", {"ids": [delivery["id"]]}).status == 200
            assert receiver.wait_for(2)[1].headers["x-own"] == PLANTED["header"]
        finally:
            hub.stop()


def _tried(hub: HubProcess) -> list[Any]:
    items = hub.get("/v1/deliveries").json["items"]
    return [item for item in items if item.get("last_error") or item.get("attempts") or item.get("tries")]


def test_a_sealed_callback_opens_for_its_own_task_alone() -> None:
    task, other = new_task(ManualClock()), new_task(ManualClock())
    secrets = CallbackSecrets(Sealer(RootKey(bytes(range(32)))))
    auth = {"scheme": "Bearer", "credentials": "c"}
    plain = Callback(id="cb", dialect="a2a-1.0", url="http://x/", headers={"A": "b"}, token="t", auth=auth)
    hidden = secrets.hidden(plain, task)
    assert (hidden.headers, hidden.token, hidden.auth) == (None, None, {"scheme": "Bearer"})
    assert secrets.hidden(hidden, task) == hidden
    assert secrets.revealed(hidden, task) == plain
    moved = msgspec.structs.replace(other, id=f"{task.id}x")
    with pytest.raises(CannotOpen):
        secrets.revealed(hidden, moved)
    with pytest.raises(CannotOpen):
        secrets.revealed(hidden, msgspec.structs.replace(task, tenant="another"))


def test_a_callback_of_before_is_read_as_it_is() -> None:
    task = new_task(ManualClock())
    secrets = CallbackSecrets(Sealer(RootKey(bytes(range(32)))))
    old = msgspec.msgpack.encode({"id": "cb", "dialect": "platform", "url": "http://x/", "headers": {"A": "b"}})
    read = msgspec.msgpack.decode(old, type=Callback)
    assert secrets.revealed(read, task) == read
    bare = Callback(id="cb", dialect="platform", url="http://x/")
    assert secrets.hidden(bare, task) is bare
