"""How long a token that was verified is taken without another look: a minute, and never past its end or its key's."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.authenticate import Authenticator
from dragoman.hub.key_ring import KeyRing
from dragoman.hub.signing_keys import open_signing_keys
from dragoman.model.errors import NotAuthenticated
from dragoman.security.sealed import RootKey, Sealer
from dragoman.security.tokens import Access, mint_access_jwt
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run

HUB: Final = "https://hub.example"
PEPPER: Final = bytes(range(32))
SEALER: Final = Sealer(RootKey(bytes(range(32))))


class World:
    """One authenticator on a real store, under a clock that a test moves; it counts how often a token is looked at."""

    def __init__(self, store: SqliteStore, clock: ManualClock) -> None:
        self.store, self.clock, self.looked = store, clock, 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.ring = KeyRing(
            keys=store, vault=store, clock=clock, pepper=PEPPER, sealer=SEALER, random_bytes=lambda size: bytes(size)
        )

    async def begin(self) -> None:
        """Its keys, and one client."""
        keys = await open_signing_keys(self.store, SEALER, self.clock, HUB)

        async def verify(token: str, now: datetime) -> Access | None:
            self.looked += 1
            self.meanwhile()
            return keys.access(token, now)

        self.signing = keys.signing
        self.authenticator = Authenticator(
            keys=self.store, clock=self.clock, pepper=PEPPER, admin_token=None, trusting=False, verify=verify
        )

    async def key(self, **more: Any) -> str:
        """The id of a fresh key."""
        made = await self.ring.create(
            tenant="default", principal=None, name="k", scopes=("a2a:call", "a2a:receive"), **more
        )
        return made.stored.key_id

    def header(self, client_id: str | None, life_s: int, *scopes: str) -> bytes:
        """A token as it comes."""
        now = self.clock.now()
        token = mint_access_jwt(
            self.signing(now),
            issuer=HUB,
            subject="s",
            tenant="default",
            scopes=scopes or ("a2a:call",),
            client_id=client_id,
            now=now,
            life_s=life_s,
        )
        return b"Bearer " + token.encode()

    async def taken(self, header: bytes) -> bool:
        """Whether it is taken now, as a request would find out."""
        if self.authenticator.remembered(header, None) is not None:
            return True
        try:
            await self.authenticator.caller(header, None, "127.0.0.1")
        except NotAuthenticated:
            return False
        return True


def in_world(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def life() -> None:
        clock = ManualClock()
        store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
        await store.start()
        try:
            world = World(store, clock)
            await world.begin()
            await scenario(world)
        finally:
            await store.close()

    run(life())


def test_a_token_is_looked_at_once_a_minute(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        header = world.header(await world.key(), 900)
        for passed, looked in ((0, 1), (59, 1), (1, 2), (59, 2), (1, 3)):
            world.clock.advance(passed)
            assert await world.taken(header)
            assert world.looked == looked

    in_world(tmp_path, scenario)


def test_a_token_is_not_remembered_past_its_end(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        header = world.header(await world.key(), 20)
        for passed, taken, looked in (
            (0, True, 1),
            (19, True, 1),
            (1, True, 2),
            (1, True, 3),
            (28, True, 4),
            (1, False, 5),
        ):
            world.clock.advance(passed)
            assert (await world.taken(header), world.looked) == (taken, looked)

    in_world(tmp_path, scenario)


@pytest.mark.parametrize("end", ["expires", "overlap"])
def test_a_token_is_not_remembered_past_the_end_of_its_key(tmp_path: Path, end: str) -> None:
    async def scenario(world: World) -> None:
        ends = world.clock.now() + timedelta(seconds=20)
        client_id = await world.key(expires_at=ends if end == "expires" else None)
        if end == "overlap":
            await world.store.revoke_key(client_id, ends)
        header = world.header(client_id, 900)
        assert await world.taken(header)
        world.clock.advance(19)
        assert (await world.taken(header), world.looked) == (True, 1)
        world.clock.advance(1)
        assert not await world.taken(header)

    in_world(tmp_path, scenario)


def test_a_token_has_no_scope_that_its_key_lacks(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        header = world.header(await world.key(allow=("agt_a:*",)), 900, "a2a:call", "a2a:admin")
        caller = await world.authenticator.caller(header, None, "127.0.0.1")
        assert (caller.scopes, caller.allow, caller.admin) == (frozenset({"a2a:call"}), ("agt_a:*",), False)

    in_world(tmp_path, scenario)


def test_what_is_forgotten_while_it_is_looked_at_is_not_remembered(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        header = world.header(await world.key(), 900)
        world.meanwhile = lambda: world.authenticator.forget("any")
        assert await world.taken(header)
        assert world.authenticator.remembered(header, None) is None
        world.meanwhile = lambda: None
        assert await world.taken(header)
        assert world.authenticator.remembered(header, None) is not None

    in_world(tmp_path, scenario)


def test_a_token_of_a_key_that_is_gone_is_forgotten_at_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        client_id = await world.key()
        header = world.header(client_id, 900)
        assert await world.taken(header)
        await world.store.revoke_key(client_id, world.clock.now())
        world.authenticator.forget(client_id)
        assert not await world.taken(header)
        assert not await world.taken(world.header("nobody-here", 900))

    in_world(tmp_path, scenario)
