"""What it costs to know who calls: no more than a few digests once a key was seen, a few dozen before."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.config import load
from dragoman.hub.authenticate import Authenticator
from dragoman.model.errors import NotAuthenticated
from dragoman.ports.clock import SystemClock
from dragoman.ports.store import StoredKey
from dragoman.security.keys import digest, new_key
from dragoman.server.app import sqlite_store
from tests.support.security_figures import Figures

ROUNDS: Final = 7
TIMES: Final = 3000
PEPPER: Final = b"p" * 32
WARM_US: Final = 50.0
WARM_HMACS: Final = 15.0


def _hmac_us(message: bytes) -> float:
    """One HMAC-SHA256 over a key, the best of some rounds, in microseconds."""

    def one() -> None:
        for _ in range(TIMES):
            hmac.new(PEPPER, message, hashlib.sha256).digest()

    return min(_timed(one) for _ in range(ROUNDS)) / TIMES * 1e6


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


async def _best_us(ask: Callable[[], Awaitable[object]], times: int = TIMES) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(times):
            await ask()
        best = min(best, time.perf_counter() - began)
    return best / times * 1e6


class Costs:
    """What the ways of telling who calls cost, in microseconds."""

    def __init__(self, data: Path, slowed: Callable[[], object] | None = None) -> None:
        self._data = data
        self._slowed = slowed
        self.hmac_us = self.remembered_us = self.warm_us = self.wrong_us = 0.0
        asyncio.run(self._measure())

    async def _measure(self) -> None:
        settings = load({"data": str(self._data), "auth": "token"}, {}, None)
        self._data.mkdir(parents=True)
        clock, bus = SystemClock(), LocalBus()
        store = sqlite_store(settings, clock, bus)
        await store.start()
        made = new_key(lambda count: bytes(range(count)))
        key = StoredKey(
            key_id=made.keyid,
            digest=digest(PEPPER, made.key),
            tenant="default",
            principal="key_x",
            name="x",
            scopes=("a2a:call",),
            created_at=clock.now(),
        )
        await store.add_key(key)

        async def no_token(*_: object) -> None:
            return None

        known = Authenticator(keys=store, clock=clock, pepper=PEPPER, admin_token=None, trusting=False, verify=no_token)
        header = b"Bearer " + made.key.reveal().encode()
        wrong = header[:-8] + b"AAAAAAAA"

        async def warm() -> None:
            if self._slowed is not None:
                self._slowed()
            assert await known.caller(header, None, "192.0.2.1")

        async def remembered() -> None:
            assert known.remembered(header, None)

        async def refused() -> None:
            with pytest.raises(NotAuthenticated):
                await known.caller(wrong, None, "192.0.2.2")

        await warm()
        self.hmac_us = _hmac_us(made.key.reveal().encode())
        self.warm_us = await _best_us(warm, TIMES if self._slowed is None else 3)
        self.remembered_us = await _best_us(remembered)
        self.wrong_us = await _best_us(refused, 200)
        await bus.close()
        await store.close()

    @property
    def too_dear(self) -> bool:
        """Whether a known key costs more than was promised."""
        return self.warm_us > WARM_US or self.warm_us > WARM_HMACS * self.hmac_us


@pytest.mark.serial
def test_a_known_key_costs_no_more_than_a_few_digests(tmp_path: Path, figures: Figures) -> None:
    costs = Costs(tmp_path / "data")
    figures(
        "S9",
        hmac_us=round(costs.hmac_us, 2),
        remembered_us=round(costs.remembered_us, 2),
        warm_us=round(costs.warm_us, 2),
        wrong_us=round(costs.wrong_us, 2),
    )
    assert not costs.too_dear, vars(costs)
    assert costs.remembered_us <= costs.warm_us * 1.5


@pytest.mark.planted
def test_a_password_hash_on_every_request_is_found(tmp_path: Path) -> None:
    def slow() -> object:
        return hashlib.scrypt(b"key", salt=b"salt", n=2**14, r=8, p=1)

    assert Costs(tmp_path / "data", slow).too_dear
