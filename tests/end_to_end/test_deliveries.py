"""Callbacks over real sockets: what became of each is listed, and what was given up is sent once more."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from standardwebhooks import Webhook

from tests.cli.terminal import environment, piped
from tests.end_to_end.agentvault_world import mount, result, taken_in, text
from tests.end_to_end.world import eventually, failing_paths, fresh, join, refused
from tests.support.agents import agentvault
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.platform_agent import PlatformAgent
from tests.support.receiver import CallbackReceiver, callback_receiver

# platform.md, "Verification": the function that receivers were told to use, word for word.
VERIFY: Final = """
import hmac
import hashlib

def verify_signature(payload: bytes, signature: str, secret: str) -> bool:
    expected = hmac.new(
        secret.encode(),
        payload,
        hashlib.sha256
    ).hexdigest()
    return hmac.compare_digest(f"sha256={expected}", signature)
"""


@pytest.fixture
def receiver() -> Iterator[CallbackReceiver]:
    with callback_receiver() as receiver:
        yield receiver


@pytest.fixture
def target(hub: HubProcess, agent: PlatformAgent) -> str:
    target: str = join(hub, agent)["id"]
    return target


def call(hub: HubProcess, target: str, url: str, token: str = "") -> str:
    body = {"target_agent_id": target, "skill": "echo", "input": {"text": "hi"}, "callback": {"url": url}}
    reply = hub.post("/v1/a2a/call/async", body, token=token)
    assert reply.status == 202, reply.body
    call_id: str = reply.json["call_id"]
    return call_id


def listed(hub: HubProcess, token: str = "", **query: str) -> list[dict[str, Any]]:
    reply = hub.get(f"/v1/deliveries?{urlencode(query)}", token=token)
    assert reply.status == 200, reply.body
    items: list[dict[str, Any]] = reply.json["items"]
    return items


def stands(hub: HubProcess, call_id: str, state: str) -> dict[str, Any]:
    """The delivery of a call, as soon as it is in that state."""

    def look() -> dict[str, Any] | None:
        return next((one for one in listed(hub, call=call_id) if one["state"] == state), None)

    return eventually(look, f"the callback of {call_id} is {state}")


def gone(hub: HubProcess, target: str, receiver: CallbackReceiver, token: str = "") -> dict[str, Any]:
    """A delivery to an address that has said that it is gone."""
    receiver.statuses = [410]
    return stands(hub, call(hub, target, f"{receiver.url}/{fresh('gone')}", token), "disabled")


@pytest.mark.req("P-61")
def test_a_receiver_that_fails_and_then_succeeds_is_told_and_it_is_listed_how(
    hub: HubProcess, target: str, receiver: CallbackReceiver
) -> None:
    receiver.statuses = [500]
    url = f"{receiver.url}/done"
    call_id = call(hub, target, url)
    receiver.wait_for(1)
    eventually(lambda: listed(hub, call=call_id)[0]["attempts"] == 1, "the first attempt is noted")
    (waiting,) = listed(hub, call=call_id)
    created, following = (datetime.fromisoformat(waiting[name]) for name in ("created_at", "next_attempt_at"))
    assert timedelta(seconds=4) <= following - created <= timedelta(seconds=7)
    assert waiting == {
        "id": waiting["id"],
        "state": "pending",
        "url": url,
        "call_id": call_id,
        "event": waiting["event"],
        "caller": waiting["caller"],
        "attempts": 1,
        "replays": 0,
        "last_answer": "HTTP 500",
        "last_attempt_at": waiting["last_attempt_at"],
        "next_attempt_at": waiting["next_attempt_at"],
        "created_at": waiting["created_at"],
        "enabled": True,
        "disabled_reason": None,
    }
    first, second = receiver.wait_for(2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == f"cb_{call_id}"
    assert first.raw == second.raw
    delivered = stands(hub, call_id, "delivered")
    assert (delivered["attempts"], delivered["last_answer"], delivered["next_attempt_at"]) == (2, "HTTP 200", None)


@pytest.mark.req("P-59")
@pytest.mark.req("P-60")
def test_the_signatures_satisfy_the_documents_function_and_the_standards_library(
    hub: HubProcess, target: str, receiver: CallbackReceiver
) -> None:
    made = hub.post("/v1/keys", {"name": "signed", "scopes": ["a2a:call"]}).json
    call(hub, target, f"{receiver.url}/done", made["key"])
    (arrived,) = receiver.wait_for(1)
    known: dict[str, Callable[[bytes, str, str], bool]] = {}
    exec(VERIFY, known)  # noqa: S102 - the document's own words, which are to work as they stand
    verify = known["verify_signature"]
    assert verify(arrived.raw, arrived.headers["x-signature"], made["signing_secret"])
    assert not verify(arrived.raw + b" ", arrived.headers["x-signature"], made["signing_secret"])
    assert abs(int(arrived.headers["x-timestamp"]) - datetime.now(UTC).timestamp()) < 60
    verified = Webhook(made["signing_secret"]).verify(arrived.raw, dict(arrived.headers))
    assert verified == arrived.body


@pytest.mark.req("P-61")
def test_an_address_that_is_gone_is_not_dialled_until_a_replay_arrives(
    hub: HubProcess, target: str, receiver: CallbackReceiver
) -> None:
    first = gone(hub, target, receiver)
    assert (first["enabled"], first["disabled_reason"], first["last_answer"]) == (False, "HTTP 410", "HTTP 410")
    second = stands(hub, call(hub, target, first["url"]), "disabled")
    assert (second["attempts"], len(receiver.got)) == (0, 1)
    reply = hub.post(f"/v1/deliveries/{first['id']}/replay", {})
    assert (reply.status, reply.json["id"], reply.json["state"]) == (200, first["id"], "pending")
    delivered = stands(hub, first["call_id"], "delivered")
    assert (delivered["enabled"], delivered["replays"]) == (True, 1)
    again, once_more = receiver.wait_for(2)
    assert again.headers["webhook-id"] == once_more.headers["webhook-id"]
    # What was held back meanwhile is sent by a replay of all to that address.
    done = hub.post("/v1/deliveries/replay", {"url": first["url"]}).json
    assert [one["id"] for one in done["items"]] == [second["id"]]
    stands(hub, second["call_id"], "delivered")


def test_an_address_is_disabled_and_enabled_by_its_owner(
    hub: HubProcess, target: str, receiver: CallbackReceiver
) -> None:
    url = f"{receiver.url}/{fresh('switched')}"
    first = stands(hub, call(hub, target, url), "delivered")
    place = f"/v1/deliveries/{first['id']}"
    off = hub.request("PATCH", place, {"enabled": False}).json
    assert (off["enabled"], off["state"]) == (False, "delivered")
    stands(hub, call(hub, target, url), "disabled")
    assert len(receiver.got) == 1
    assert hub.request("PATCH", place, {"enabled": True}).json["enabled"]
    stands(hub, call(hub, target, url), "delivered")


def test_deliveries_are_replayed_by_the_command(
    hub: HubProcess, target: str, receiver: CallbackReceiver, tmp_path: Path
) -> None:
    env = environment(tmp_path, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=ADMIN_TOKEN)
    first, second = gone(hub, target, receiver), gone(hub, target, receiver)
    ran = piped("deliveries", "ls", "--state", "disabled", "--url", first["url"], "--since", "1h", env=env)
    assert ran.out.split("\t")[:3] == [first["id"], "disabled", first["url"]]
    assert piped("deliveries", "replay", first["id"], env=env).out == f"{first['id']}\tpending\n"
    stands(hub, first["call_id"], "delivered")
    ran = piped("deliveries", "replay", "--all", "--url", second["url"], "--yes", env=env)
    assert (ran.code, ran.out) == (0, f"{second['id']}\n")
    stands(hub, second["call_id"], "delivered")
    assert piped("deliveries", "replay", "dlv_999999", env=env).code == 4


def test_pages_go_on_where_the_one_before_ended(hub: HubProcess, target: str, receiver: CallbackReceiver) -> None:
    url = f"{receiver.url}/{fresh('paged')}"
    calls = [call(hub, target, url) for _ in range(5)]
    for each in calls:
        stands(hub, each, "delivered")
    seen: list[str] = []
    query = {"url": url, "limit": "2"}
    while True:
        page = hub.get(f"/v1/deliveries?{urlencode(query)}").json
        seen += [one["call_id"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert (len(seen), set(seen)) == (5, set(calls))
    assert listed(hub, url=url, since=(datetime.now(UTC) + timedelta(hours=1)).isoformat()) == []
    refused(hub.get(f"/v1/deliveries?{urlencode({**query, 'state': 'parked'})}"), 400, "VALIDATION_ERROR")


def test_another_callers_delivery_looks_unknown(hub: HubProcess, target: str, receiver: CallbackReceiver) -> None:
    mine, other = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    foreign = hub.new_key("a2a:call", "a2a:admin", tenant="elsewhere")
    one = gone(hub, target, receiver, mine)
    assert [each["id"] for each in listed(hub, mine)] == [one["id"]]
    for token in (other, foreign):
        assert listed(hub, token) == []
        assert listed(hub, token, call=one["call_id"]) == listed(hub, token, url=one["url"]) == []
        refused(hub.post(f"/v1/deliveries/{one['id']}/replay", {}, token=token), 404, "NOT_FOUND")
        refused(hub.request("PATCH", f"/v1/deliveries/{one['id']}", {"enabled": True}, token=token), 404, "NOT_FOUND")
        assert hub.post("/v1/deliveries/replay", {"ids": [one["id"]]}, token=token).json["items"] == []
        assert hub.post("/v1/deliveries/replay", {"url": one["url"]}, token=token).json["items"] == []
    assert [each["state"] for each in listed(hub, mine)] == ["disabled"]
    lacking = hub.new_key("a2a:register")
    refused(hub.get("/v1/deliveries", token=lacking), 403, "AUTHORIZATION_ERROR")
    assert hub.get("/v1/deliveries", headers={"Authorization": ""}).status == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/deliveries?state=lost", None),
        ("GET", "/v1/deliveries?since=soon", None),
        ("GET", "/v1/deliveries?limit=0", None),
        ("GET", "/v1/deliveries?cursor=x", None),
        ("GET", "/v1/deliveries?colour=red", None),
        ("POST", "/v1/deliveries/replay", {}),
        ("POST", "/v1/deliveries/replay", {"ids": []}),
        ("POST", "/v1/deliveries/replay", {"ids": ["dlv_1"], "state": "parked"}),
        ("POST", "/v1/deliveries/replay", {"state": "pending"}),
        ("POST", "/v1/deliveries/replay", {"ids": ["x"] * 101}),
        ("POST", "/v1/deliveries/replay", b"["),
        ("POST", "/v1/deliveries/dlv_1/replay", {"now": True}),
        ("PATCH", "/v1/deliveries/dlv_1", {}),
        ("PATCH", "/v1/deliveries/dlv_1", {"enabled": "no"}),
    ],
)
def test_a_wrong_request_is_refused(hub: HubProcess, method: str, path: str, body: Any) -> None:
    error = refused(hub.request(method, path, body), 400, "VALIDATION_ERROR")
    if path.endswith(("lost", "soon", "=0")):
        assert failing_paths(error)


@pytest.mark.parametrize(
    "delivery", ["dlv_999999", "dlv_", "dlv_-1", "dlv_x", "1", "dlv_" + "9" * 40, "%00", "dlv_%D9%A3"]
)
def test_an_unknown_delivery_is_not_found(hub: HubProcess, delivery: str) -> None:
    place = f"/v1/deliveries/{delivery}"
    refused(hub.post(f"{place}/replay", {}), 404, "NOT_FOUND")
    refused(hub.request("PATCH", place, {"enabled": False}), 404, "NOT_FOUND")


def test_the_order_of_events_holds_over_a_restart(tmp_path: Path, receiver: CallbackReceiver) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        with agentvault.agent(fresh("told")) as stub:
            agent = taken_in(hub, stub)
            receiver.statuses = [500]
            params = {"message": text("hello"), "webhookUrl": f"{receiver.url}/hook"}
            task_id: str = result(hub, mount(agent), "tasks/send", params)["id"]
            receiver.wait_for(1)
            eventually(lambda: len(listed(hub, call=task_id)) > 1, "the later ones are owed")
            eventually(lambda: listed(hub, call=task_id)[-1]["attempts"] == 1, "the first one failed")
            hub.kill()
            hub.start()
            owed = len(listed(hub, call=task_id))
            heard = [json.loads(one.raw)["state"] for one in receiver.wait_for(owed + 1)]
        assert (heard[0], heard[-1]) == (heard[1], "COMPLETED")
        assert [one["event"] for one in listed(hub, call=task_id)] == sorted(
            (one["event"] for one in listed(hub, call=task_id)), reverse=True
        )
        numbers = [int(one.headers["webhook-id"].rpartition("_")[2]) for one in receiver.got]
        assert numbers == sorted(numbers)
    finally:
        hub.stop()
