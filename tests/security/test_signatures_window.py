"""A signature in time: from the first moment at which it counts to long after the last, a copy of it never does."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.signatures import Signatures
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadSignature
from dragoman.model.secret import Secret
from dragoman.model.task import Trace
from dragoman.security.signing import new_signing_secret, sign_headers
from tests.contracts.manual_clock import ManualClock

SECRET: Final = new_signing_secret(bytes(range(32)))
BODY: Final = b'{"a": 1}'
CALLER: Final = Caller(tenant="default", id="key_1", key_id="1")


async def _secrets(_tenant: str, _caller: str) -> tuple[Secret, ...]:
    return (SECRET,)


async def _taken(store: SqliteStore, clock: ManualClock, headers: dict[bytes, bytes]) -> str:
    """Why it is refused; empty where it is taken."""
    checks = Signatures(seen=store, secrets=_secrets, clock=clock, strict=False, knows_all=True)
    trace = Trace(trace_id="0" * 32, span_id="0" * 16)
    arrival = Arrival(task_id="t", request_id="r", at=clock.now(), dialect="platform", trace=trace, since=0.0)
    try:
        arrival = await checks.checked(CALLER, headers, BODY, arrival)
    except BadSignature as error:
        return str(error.details["reason"])
    assert arrival.signed == (b"webhook-id" in headers)
    return ""


@pytest.mark.req("P-29")
@pytest.mark.parametrize("form", [b"webhook-", b"x-"])
def test_a_copy_is_never_taken_in_the_window_or_after_it(tmp_path: Path, form: bytes) -> None:
    async def scenario() -> None:
        clock, bus = ManualClock(), LocalBus()
        store = SqliteStore(tmp_path / "hub.db", clock=clock, bus=bus, inline=True)
        await store.start()
        # As early as it may come, so that it could count for as long as possible.
        at = int(clock.now().timestamp()) + 300
        whole = sign_headers(SECRET, id="msg_1", timestamp=at, body=BODY)
        headers = {name: value for name, value in whole.items() if name.startswith(form)}
        assert await _taken(store, clock, headers) == ""
        for second in range(620):
            if second == 310:
                await store.close()
                store = SqliteStore(tmp_path / "hub.db", clock=clock, bus=bus, inline=True)
                await store.start()
            expected = "replayed" if second <= 600 else "timestamp_out_of_range"
            assert await _taken(store, clock, headers) == expected, second
            clock.advance(1)
        await store.close()

    asyncio.run(scenario())
