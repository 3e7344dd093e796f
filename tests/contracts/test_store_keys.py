"""Keys and sealed values."""

from datetime import timedelta

import msgspec

from dragoman.model.agent import RateLimits
from dragoman.model.budget import Budget
from dragoman.ports.bus import KEY_REVOKED, Bus, Lost, Said
from dragoman.ports.store import StoredKey
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run


def new_key(clock: ManualClock, key_id: str, tenant: str = "acme") -> StoredKey:
    return StoredKey(
        key_id=key_id,
        digest=b"d" * 32,
        tenant=tenant,
        principal="alice",
        name="laptop",
        scopes=("a2a:call",),
        created_at=clock.now(),
        allow=("weather:*",),
        expires_at=clock.now() + timedelta(days=90),
        signing_secret=b"sealed",
    )


def test_a_key_is_kept_and_listed_newest_first(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            kept: list[StoredKey] = []
            for number in range(4):
                clock.advance(1)
                key = new_key(clock, f"k{number}", tenant="acme" if number % 2 else "other")
                await running.add_key(key)
                kept.append(key)
        async with store() as running:
            assert await running.find_key("k2") == kept[2]
            assert await running.find_key("k9") is None
            assert list(await running.list_keys("acme")) == [kept[3], kept[1]]
            assert list(await running.list_keys(None)) == kept[::-1]

    run(scenario())


def test_a_revoked_key_stays_known_and_everyone_is_told(store: Running, clock: ManualClock, bus: Bus) -> None:
    async def scenario() -> None:
        async with store() as running, bus.subscribe(KEY_REVOKED) as told:
            assert await anext(told) is Lost.LOST
            await running.add_key(new_key(clock, "k1"))
            revoked_at = clock.now()
            assert await running.revoke_key("k1", revoked_at)
            assert await anext(told) == Said(topic=KEY_REVOKED, data=b"k1")
            clock.advance(5)
            assert await running.revoke_key("k1", clock.now())
            assert not await running.revoke_key("k9", clock.now())
            key = await running.find_key("k1")
            assert key is not None
            assert key.revoked_at == revoked_at

    run(scenario())


def test_a_keys_limits_and_budget_are_kept_and_changed(store: Running, clock: ManualClock, bus: Bus) -> None:
    async def scenario() -> None:
        key = msgspec.structs.replace(new_key(clock, "k1"), limits=RateLimits(requests_per_minute=60))
        async with store() as running:
            await running.add_key(key)
            await running.add_key(new_key(clock, "k2"))
        async with store() as running, bus.subscribe(KEY_REVOKED) as told:
            assert await anext(told) is Lost.LOST
            assert await running.find_key("k1") == key
            budget = Budget(usd_per_day=2.5, calls_per_conversation=10)
            assert await running.change_key("k1", None, budget)
            assert await anext(told) == Said(topic=KEY_REVOKED, data=b"k1"), "who remembers it reads it again"
            assert await running.find_key("k1") == msgspec.structs.replace(key, limits=None, budget=budget)
            assert await running.find_key("k2") == new_key(clock, "k2")
            assert not await running.change_key("k9", None, None)

    run(scenario())


def test_the_use_of_a_key_is_noted_once_a_minute(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.add_key(new_key(clock, "k1"))
            noted: list[object] = []
            for seconds in (0, 59, 1, 30):
                clock.advance(seconds)
                await running.key_used("k1", clock.now())
                key = await running.find_key("k1")
                assert key is not None
                noted.append(key.last_used_at)
            start = clock.now() - timedelta(seconds=90)
            assert noted == [start, start, start + timedelta(seconds=60), start + timedelta(seconds=60)]

    run(scenario())


def test_a_sealed_value_is_kept_until_it_is_replaced(store: Running) -> None:
    async def scenario() -> None:
        async with store() as running:
            assert await running.get_sealed("a") is None
            await running.put_sealed("a", b"one")
            await running.put_sealed("a", b"two")
        async with store() as running:
            assert await running.get_sealed("a") == b"two"

    run(scenario())


def test_a_store_that_can_write_says_so(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            assert await running.check()
            clock.advance(60)
            assert await running.check()

    run(scenario())
