"""Tokens of agents behind OAuth2, asked for by many at once."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.delivery.oauth_out import Grant, NoToken, Tokens
from dragoman.delivery.over_http import Wire
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.secret import Secret
from dragoman.net import AddressRule, Client, ClientLimits
from dragoman.ports.clock import SystemClock
from tests.support.hub import HubProcess, running_hub
from tests.support.locked_agent import CLIENT, LockedAgent, TokenEndpoint, locked_agent
from tests.support.run import run

SECRET = "planted-secret-91be"
MANY = 1000


@pytest.fixture
def endpoint() -> TokenEndpoint:
    return TokenEndpoint(SECRET)


@pytest.fixture
def agent(endpoint: TokenEndpoint) -> Iterator[LockedAgent]:
    with locked_agent(endpoint.takes, tokens=endpoint) as agent:
        yield agent


def grant_of(agent: LockedAgent, secret: str = SECRET) -> Grant:
    return Grant(url=f"{agent.url}/token", client_id=Secret(CLIENT), client_secret=Secret(secret))


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Client, Tokens]]:
    clock = SystemClock()
    client = Client(clock=clock, rule=AddressRule.of(["loopback"]), limits=ClientLimits(per_origin=MANY))
    try:
        yield client, Tokens(fetch=Wire(client=client, max_answer=1024).fetch, clock=clock)
    finally:
        await client.close()


def test_a_thousand_who_need_a_token_ask_for_one(agent: LockedAgent, endpoint: TokenEndpoint) -> None:
    async def scenario() -> None:
        async with asking() as (_, tokens):
            await asyncio.gather(*[tokens.have("a", grant_of(agent)) for _ in range(MANY)])
            assert len(endpoint.asked) == 1
            first = tokens.last("a")
            assert first is not None
            shown = f"Bearer {first.reveal()}".encode()
            # Each of them is refused with the same token; those that come late find the new one there.
            for _ in range(2):
                for _ in range(MANY):
                    tokens.refused("a", shown)
                await asyncio.gather(*[tokens.have("a", grant_of(agent)) for _ in range(MANY)])
            assert len(endpoint.asked) == 2
            await tokens.have("b", grant_of(agent))
            assert len(endpoint.asked) == 3

    run(scenario())


def test_a_failure_is_told_to_all_who_waited_for_it(agent: LockedAgent, endpoint: TokenEndpoint) -> None:
    async def scenario() -> None:
        async with asking() as (_, tokens):
            wrong = grant_of(agent, "wrong")
            said = await asyncio.gather(*[tokens.have("a", wrong) for _ in range(100)], return_exceptions=True)
            assert {str(error) for error in said} == {"invalid_client"}
            assert all(isinstance(error, NoToken) for error in said)
            assert len(endpoint.asked) == 1
            await tokens.have("a", grant_of(agent))

    run(scenario())


def test_who_gives_up_leaves_the_asking_to_the_next(agent: LockedAgent, endpoint: TokenEndpoint) -> None:
    async def scenario() -> None:
        async with asking() as (client, _):
            asked, answers = asyncio.Event(), Wire(client=client, max_answer=1024)

            async def fetch(request: HttpRequest, deadline: float) -> HttpReply:
                if not asked.is_set():
                    asked.set()
                    await asyncio.Event().wait()  # the first never hears
                return await answers.fetch(request, deadline)

            tokens = Tokens(fetch=fetch, clock=SystemClock())
            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                work = [group.create_task(_quietly(tokens.have("a", grant_of(agent)))) for _ in range(10)]
                await asked.wait()
                work[0].cancel()
            assert len(endpoint.asked) == 1
            assert tokens.last("a") is not None

    run(scenario())


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except asyncio.CancelledError:
        return


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    # As many at one agent as the tests send at once: what is looked at here is its token, not its queue.
    with running_hub(tmp_path / "data", environ={"DRAGOMAN_CALLS_PER_AGENT": str(MANY)}) as hub:
        yield hub


@pytest.mark.parametrize("many", [100, pytest.param(MANY, marks=pytest.mark.full)])
def test_however_many_call_at_once_one_token_is_got(
    hub: HubProcess, agent: LockedAgent, endpoint: TokenEndpoint, many: int
) -> None:
    token_url = f"{agent.url}/token"
    given = {"type": "oauth2", "client_id": CLIENT, "client_secret": SECRET, "token_url": token_url}
    name = hub.register(agent.card(), id="oauth", credentials=given)["id"]
    said = msgspec.json.encode({"skill": "talk", "input": {"text": "hi"}, "target_agent_id": name})
    headers = {b"authorization": f"Bearer {hub.token}".encode(), b"content-type": b"application/json"}
    request = HttpRequest(method="POST", url=f"{hub.url}/v1/a2a/call", headers=headers, body=said)

    async def scenario() -> None:
        async with asking() as (client, _):
            for tokens_so_far in (1, 2):
                deadline = SystemClock().monotonic() + 25
                replies = await asyncio.gather(*[client.send(request, deadline=deadline) for _ in range(many)])
                assert {reply.status for reply in replies} == {200}
                assert len(endpoint.asked) == tokens_so_far
                endpoint.valid.clear()

    run(scenario())
    # Those under way when the first was refused came with it, too; none was asked more than twice.
    assert 2 * many < len(agent.requests) <= 3 * many
