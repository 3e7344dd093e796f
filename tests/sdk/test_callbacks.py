"""Callbacks of a real hub, checked by their receiver; and copies of them that somebody changed."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman import A2AClient, errors
from dragoman.model.secret import Secret
from dragoman.security.signing import new_signing_secret, sign_headers, x_signature
from tests.end_to_end.world import join
from tests.support.hub import HubProcess
from tests.support.hurried_clock import HurriedClock
from tests.support.platform_agent import PlatformAgent
from tests.support.receiver import callback_receiver

SECRET = new_signing_secret(bytes(range(32)))
OTHER = new_signing_secret(bytes(32))
BODY = b'{"call_id": "c1", "status": "completed", "result": {"a": 1}}'
verify = A2AClient.callbacks.verify


def signed(secret: Secret = SECRET, body: bytes = BODY, age_s: float = 0.0) -> dict[str, str]:
    at = int((datetime.now(UTC) - timedelta(seconds=age_s)).timestamp())
    headers = sign_headers(secret, id="cb_c1", timestamp=at, body=body)
    return {name.decode().title(): value.decode() for name, value in headers.items()}


def test_the_callback_of_a_submitted_call_is_verified_with_the_keys_secret(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    agent_id = join(hub, agent)["id"]
    key = hub.post("/v1/keys", {"name": "sdk", "scopes": ["a2a:call"]}).json

    async def submitted(url: str) -> str:
        client = A2AClient(hub.url, key["key"])
        handle = await client.submit(
            agent_id, "echo", {"a": 1}, callback_url=f"{url}/cb", callback_headers={"X-Mine": "yes"}
        )
        return handle.id

    with callback_receiver() as receiver:
        call_id = asyncio.run(submitted(receiver.url))
        arrived = receiver.wait_for(1)[0]
    told = verify(arrived.raw, arrived.headers, key["signing_secret"])
    assert (told["call_id"], told["status"], told["result"]) == (call_id, "completed", {"a": 1})
    assert arrived.headers["x-mine"] == "yes"
    with pytest.raises(errors.BadSignature):
        verify(arrived.raw + b" ", arrived.headers, key["signing_secret"])


def test_any_of_several_secrets_will_do_while_they_are_rotated() -> None:
    assert verify(BODY, signed(), [OTHER.reveal(), SECRET])["call_id"] == "c1"
    with pytest.raises(errors.BadSignature):
        verify(BODY, signed(), OTHER)


@pytest.mark.parametrize("age_s", [290.0, -290.0])
def test_three_hundred_seconds_either_way_are_allowed(age_s: float) -> None:
    assert verify(BODY, signed(age_s=age_s), SECRET)["status"] == "completed"


@pytest.mark.parametrize("age_s", [310.0, -310.0])
def test_more_are_not(age_s: float) -> None:
    with pytest.raises(errors.BadSignature) as raised:
        verify(BODY, signed(age_s=age_s), SECRET)
    assert raised.value.details == {"reason": "timestamp_out_of_range"}
    assert "clock" in str(raised.value)


@pytest.mark.parametrize("form", ["X-Signature", "Webhook-Signature"])
def test_every_signature_that_is_there_has_to_be_right(form: str) -> None:
    wrong = signed() | {form: signed(OTHER)[form]}
    with pytest.raises(errors.BadSignature):
        verify(BODY, wrong, SECRET)


@pytest.mark.parametrize("prefix", ["X-", "Webhook-"])
def test_either_form_alone_is_enough(prefix: str) -> None:
    alone = {name: value for name, value in signed().items() if name.startswith(prefix)}
    assert verify(BODY, alone, SECRET)["call_id"] == "c1"


def test_a_callback_without_a_signature_is_none() -> None:
    with pytest.raises(errors.BadSignature) as raised:
        verify(BODY, {"Content-Type": "application/json"}, SECRET)
    assert raised.value.details == {"reason": "signature_missing"}


def test_headers_may_be_bytes_and_the_clock_another() -> None:
    clock = HurriedClock()
    at = int(clock.now().timestamp())
    headers: dict[bytes, bytes] = {b"X-Signature": x_signature(SECRET, BODY).encode(), b"X-Timestamp": b"%d" % at}
    assert verify(BODY, headers, SECRET, clock=clock)["call_id"] == "c1"
    asyncio.run(clock.sleep(400.0))
    with pytest.raises(errors.BadSignature):
        verify(BODY, headers, SECRET, clock=clock)


@pytest.mark.parametrize("body", [b"[1]", b"not json", b"\xff"])
def test_what_is_no_object_is_no_callback(body: Any) -> None:
    with pytest.raises(errors.BadSignature):
        verify(body, signed(body=body), SECRET)
