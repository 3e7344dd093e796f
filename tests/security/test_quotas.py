"""Quotas of tenants: over one nothing is taken and nothing is changed; what asks back is always answered."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.hub.quotas import LOOK_S, Quotas
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, completed, new_task, opening, step
from tests.end_to_end.world import eventually, fresh, holds, join, refused, repeats
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.run import run


@pytest.fixture
def agent() -> Generator[PlatformAgent]:
    with platform_agent() as served:
        served.respond = repeats
        yield served


def starting(folder: Path, **quotas: str) -> HubProcess:
    """A hub on this data with these quotas."""
    environ = {f"DRAGOMAN_QUOTAS_{name.upper()}": value for name, value in quotas.items()}
    return HubProcess(folder).start(environ)


def calls_there(hub: HubProcess) -> int:
    return len(hub.get("/v1/calls?limit=100").json["items"])


def test_a_tenant_registers_no_more_agents_than_it_may(tmp_path: Path, agent: PlatformAgent) -> None:
    hub = starting(tmp_path / "data", agents="2")
    try:
        names = [fresh(), fresh(), fresh()]
        for name in names[:2]:
            join(hub, agent, id=name)
        before = hub.get("/v1/audit").json["items"]
        error = refused(hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=names[2])}), 429, "RATE_LIMITED")
        assert error["details"]["reason"] == "quota"
        assert hub.get(f"/v1/agents/{names[2]}").status == 404
        assert hub.get("/v1/audit").json["items"] == before
        again = hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=names[0], version="2.0.0")})
        assert again.status == 200, "a new card of a known agent is no new agent"
        other = hub.new_key("a2a:register", tenant="other")
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=fresh())}, token=other).status == 201
        assert hub.request("DELETE", f"/v1/agents/{names[1]}").status == 200
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=names[2])}).status == 201
    finally:
        hub.stop()


def test_a_tenant_opens_no_more_calls_than_it_may_and_may_end_them(tmp_path: Path, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    first = starting(tmp_path / "data")
    try:
        name = join(first, agent, id=fresh())["id"]
        body: dict[str, Any] = {"target_agent_id": name, "skill": "echo", "input": {}}
        calls = [first.post("/v1/a2a/call/async", body, {"Idempotency-Key": f"k{n}"}).json["call_id"] for n in range(2)]
    finally:
        first.kill()  # Stopped in good order, it would wait for them.
    hub = starting(tmp_path / "data", open_calls="2")
    try:
        reply = eventually(
            lambda: next((r for r in [hub.call("echo", {}, name, timeout_ms=100)] if r.status == 429), None),
            "a refusal",
        )
        error = refused(reply, 429, "RATE_LIMITED")
        assert (error["details"]["reason"], error["details"]["quota"]) == ("quota", "open_calls")
        assert error["retryable"] is True
        there = calls_there(hub)
        assert refused(hub.post("/v1/a2a/call/async", body), 429, "RATE_LIMITED")
        assert calls_there(hub) == there
        repeated = hub.post("/v1/a2a/call/async", body, {"Idempotency-Key": "k0"})
        assert repeated.json["call_id"] == calls[0], "what was taken before is still told"
        assert hub.get(f"/v1/calls/{calls[0]}").status == 200
        assert hub.post(f"/v1/calls/{calls[0]}/cancel", {}).status == 200
        assert hub.request("DELETE", f"/v1/calls/{calls[1]}").status == 200
    finally:
        agent.release.set()
        hub.stop()


def test_what_a_tenant_stores_counts_and_forgetting_makes_room(tmp_path: Path) -> None:
    clock = ManualClock()

    async def scenario() -> None:
        store = SqliteStore(tmp_path / "hub.db", clock=clock, bus=LocalBus())
        await store.start()
        quotas = Quotas(store=store, clock=clock, agents=None, open_calls=None, stored_bytes=20_000)
        await quotas.look()
        assert quotas.over("acme") is None
        ids: list[str] = []
        for _ in range(10):
            task = new_task(clock, said={"words": "w" * 2000})
            await store.open(opening(task))
            await store.append(step(task, completed(clock, {"words": "w" * 500})))
            ids.append(task.id)
        assert quotas.over("acme") is None, "between two looks nothing is counted"
        await quotas.look()
        refusal = quotas.over("acme")
        assert refusal is not None
        assert (refusal.code, refusal.details["quota"]) == ("RATE_LIMITED", "stored_bytes")
        assert quotas.over("other") is None
        await store.forget(ALICE, ids)
        await quotas.look()
        assert quotas.over("acme") is None
        await store.close()

    run(scenario())


def test_figures_are_never_older_than_ten_seconds(tmp_path: Path) -> None:
    clock = ManualClock()

    async def scenario() -> None:
        # Inline: no thread is waited for, so that a few turns of the loop are all that happens.
        store = SqliteStore(tmp_path / "hub.db", clock=clock, bus=LocalBus(), inline=True)
        await store.start()
        quotas = Quotas(store=store, clock=clock, agents=None, open_calls=1, stored_bytes=None)
        looking = asyncio.create_task(quotas.run())
        await turns()
        await store.open(opening(new_task(clock), durable=True))
        assert quotas.over("acme") is None
        clock.advance(LOOK_S)
        await turns()
        assert quotas.over("acme") is not None
        assert LOOK_S <= 10.0
        looking.cancel()
        await store.close()

    async def turns() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    run(scenario())


def test_without_limits_nobody_looks(tmp_path: Path) -> None:
    clock = ManualClock()

    async def scenario() -> None:
        store = SqliteStore(tmp_path / "hub.db", clock=clock, bus=LocalBus())
        await store.start()
        quotas = Quotas(store=store, clock=clock, agents=5, open_calls=None, stored_bytes=None)
        await asyncio.wait_for(quotas.run(), 5)
        await store.close()

    run(scenario())
