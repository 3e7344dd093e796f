"""The hub's signing keys, over months of a clock that a test moves: published before they sign, and after."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.signing_keys import LOOK_S, NAME, SigningKeys, open_signing_keys
from dragoman.security.sealed import RootKey, Sealer
from dragoman.security.tokens import mint_access_jwt, new_signing_key
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run

HUB: Final = "https://hub.example"
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
SEALER: Final = Sealer(RootKey(bytes(range(32))))


class Noting(ManualClock):
    """A clock that notes when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_for = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waited_for.set()
        await super().sleep(seconds)


class World:
    """A store, a clock, and the keys in one life after the other."""

    def __init__(self, store: SqliteStore, clock: Noting, keys: SigningKeys) -> None:
        self.store, self.clock, self.keys = store, clock, keys

    async def live(self) -> SigningKeys:
        """The keys, read anew from the store."""
        self.keys = await open_signing_keys(self.store, SEALER, self.clock, HUB)
        return self.keys

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """They see to themselves within the block, which begins when they have looked for the first time."""
        background = asyncio.ensure_future(self.keys.run())
        await self.clock.waited_for.wait()
        try:
            yield
        finally:
            background.cancel()
            await asyncio.wait((background,))

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, at least so much that they look, and have looked."""
        self.clock.waited_for.clear()
        self.clock.advance(seconds)
        await self.clock.waited_for.wait()

    def kids(self) -> list[str]:
        """Those that are published."""
        return [key["kid"] for key in self.keys.jwks()["keys"]]

    def signing(self) -> str:
        """The one that signs."""
        return self.keys.signing(self.clock.now()).kid

    def token(self) -> str:
        """A token, signed now."""
        now = self.clock.now()
        return mint_access_jwt(
            self.keys.signing(now),
            issuer=HUB,
            subject="s",
            tenant="default",
            scopes=("a2a:call",),
            now=now,
            life_s=7200,
        )

    def counts(self, token: str) -> bool:
        """Whether a token is taken now."""
        return self.keys.access(token, self.clock.now()) is not None


def in_world(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def life() -> None:
        clock = Noting()
        store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
        await store.start()
        try:
            await scenario(World(store, clock, await open_signing_keys(store, SEALER, clock, HUB)))
        finally:
            await store.close()

    run(life())


def test_the_next_key_is_seen_an_hour_before_it_signs_and_the_old_one_an_hour_after(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        (first,) = world.kids()
        old = world.token()
        await world.keys.rotate()
        _, second = world.kids()
        await world.keys.rotate()  # It is under way: asking again changes nothing.
        assert world.kids() == [first, second]
        world.clock.advance(HOUR - 1)
        assert (world.signing(), world.counts(old)) == (first, True)
        world.clock.advance(1)
        assert (world.signing(), world.kids()) == (second, [first, second])
        assert world.counts(old) and world.counts(world.token())
        world.clock.advance(HOUR - 1)
        assert (world.kids(), world.counts(old)) == ([first, second], True)
        world.clock.advance(1)
        assert (world.kids(), world.counts(old), world.counts(world.token())) == ([second], False, True)

    in_world(tmp_path, scenario)


def test_keys_follow_each_other_every_90_days_by_themselves(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            seen = [world.signing()]
            await world.pass_time(90 * DAY - HOUR - LOOK_S)
            for _ in range(3):
                assert world.kids() == [seen[-1]]
                await world.pass_time(LOOK_S)
                assert len(world.kids()) == 2 and world.signing() == seen[-1]
                await world.pass_time(HOUR)
                assert world.signing() not in seen
                seen.append(world.signing())
                await world.pass_time(HOUR)
                assert world.kids() == [seen[-1]]
                await world.pass_time(90 * DAY - 2 * HOUR - LOOK_S)

    in_world(tmp_path, scenario)


def test_a_hub_that_was_away_for_long_finds_its_keys_and_has_them_followed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.keys.rotate()
        kids, token = world.kids(), world.token()
        await world.live()
        assert (world.kids(), world.counts(token)) == (kids, True)
        world.clock.advance(200 * DAY)
        await world.live()
        assert (world.kids(), world.signing()) == (kids[1:], kids[1])
        async with world.running():
            pass
        # An hour's notice, however late it is.
        assert (len(world.kids()), world.signing()) == (2, kids[1])
        assert world.keys.held()[1].signs_from == world.clock.now() + timedelta(hours=1)

    in_world(tmp_path, scenario)


def test_where_a_key_is_known_to_others_nothing_it_signed_counts(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.keys.rotate()
        before, token = world.kids(), world.token()
        await world.keys.rotate(at_once=True)
        assert set(world.kids()).isdisjoint(before)
        assert not world.counts(token) and world.counts(world.token())
        kids = world.kids()
        await world.live()
        assert world.kids() == kids

    in_world(tmp_path, scenario)


def test_the_key_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        key = new_signing_key()
        plain = key.private_jwk.reveal().encode()
        sealed = SEALER.seal(plain, table="sealed", column="value", row=NAME, tenant="")
        await world.store.put_sealed(NAME, sealed)
        await world.live()
        assert (world.kids(), world.signing()) == ([key.kid], key.kid)
        await world.keys.rotate()
        await world.live()
        assert (len(world.kids()), world.signing()) == (2, key.kid)

    in_world(tmp_path, scenario)
