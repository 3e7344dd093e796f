"""A client that signs: each request anew, so that an agent which demands it can be called, again and again."""

import asyncio

import pytest

from dragoman import A2AClient, errors
from dragoman.security.signing import new_signing_secret
from tests.end_to_end.world import join
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

SIGNED = {"type": "bearer", "signing": "required"}


@pytest.mark.req("P-29")
def test_a_client_with_its_secret_signs_every_request_anew(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent, authentication=SIGNED)["id"]
    made = hub.post("/v1/keys", {"name": "sdk", "scopes": ["a2a:call"]}).json

    async def scenario() -> None:
        async with A2AClient(hub.url, made["key"], signing_secret=made["signing_secret"]) as client:
            for _ in range(3):
                assert await client.call(name, "echo", {"a": 1}) == {"a": 1}
            events = [event.type async for event in client.stream(name, "echo", {"a": 2})]
            assert events[-1] == "complete"
            handle = await client.submit(name, "echo", {"a": 3})
            assert await handle.result() == {"a": 3}
        for secret in (None, new_signing_secret(bytes(32))):
            async with A2AClient(hub.url, made["key"], signing_secret=secret) as other:
                with pytest.raises(errors.NotAuthenticated) as raised:
                    await other.call(name, "echo", {"a": 1})
                reason = "signature_missing" if secret is None else "signature_invalid"
                assert raised.value.details["reason"] == reason

    asyncio.run(scenario())
    assert len(agent.requests) == 5


def test_what_is_no_secret_is_refused_without_being_shown() -> None:
    with pytest.raises(errors.BadParams) as raised:
        A2AClient("http://127.0.0.1:9", "ap_x", signing_secret="my-password-7")
    assert "whsec_" in str(raised.value) and "my-password-7" not in str(raised.value)
