"""An outbox on a real store, a real client and a clock that stands still; receivers that say what the test wants."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.delivery.courier import HttpCourier
from dragoman.delivery.credentials import Credentials
from dragoman.delivery.over_http import Wire
from dragoman.dialects import spoken
from dragoman.hub.callback_secrets import CallbackSecrets
from dragoman.hub.deliveries import DeliveryDesk
from dragoman.hub.key_ring import KeyRing
from dragoman.hub.outbox import Outbox
from dragoman.hub.owed import owed
from dragoman.hub.registry import Registry
from dragoman.model.call import Caller
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.events import TaskEvent
from dragoman.model.lifecycle import fold
from dragoman.model.task import Task, Trace
from dragoman.net import AddressRule, Client, Resolver
from dragoman.observe.span import Span
from dragoman.ports.clock import SteadyClock
from dragoman.ports.deliveries import Delivery, DeliveryQuery
from dragoman.ports.store import CALLBACKS, CALLS, Growth, Job, NewJob, Opening, Owner, Scope
from dragoman.security.card_signing import CardSigner
from dragoman.security.sealed import RootKey, Sealer
from dragoman.security.tokens import HubTokens, new_signing_key
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import completed, new_task
from tests.unit.net.servers import Line, Server, serving

TENANT = "acme"
EVERYONE = Scope(tenant=TENANT, principal=None)
ALICE = Caller(tenant=TENANT, id="alice", scopes=frozenset({"a2a:call"}))


class Got(msgspec.Struct, frozen=True):
    """A notice as it arrived."""

    at: datetime
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)


class Receiver:
    """Answers with what is next in `answers`, then with 200; remembers what came. Without an answer it stays silent."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.answers: list[tuple[int, dict[str, str]] | None] = []
        self.always: tuple[int, dict[str, str]] | None = (200, {})
        self.got: list[Got] = []
        self.busy = 0
        self.most_busy = 0
        self.server: Server
        self._changed = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{self.server.url}done"

    def statuses(self, *codes: int) -> None:
        """Answer with these, one after the other."""
        self.answers = [(code, {}) for code in codes]

    async def arrived(self, count: int) -> None:
        """Return when so many have come."""
        while len(self.got) < count:
            self._changed.clear()
            await self._changed.wait()

    async def script(self, line: Line) -> None:
        while raw := await line.request():
            head, _, body = raw.partition(b"\r\n\r\n")
            pairs = (one.decode().split(": ", 1) for one in head.split(b"\r\n")[1:])
            self.got.append(Got(self._clock.now(), {name.lower(): value for name, value in pairs}, body))
            self._changed.set()
            answer = self.answers.pop(0) if self.answers else self.always
            if answer is None:
                self.busy += 1
                self.most_busy = max(self.most_busy, self.busy)
                try:
                    await line.closed()
                finally:
                    self.busy -= 1
                return
            status, headers = answer
            words = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            line.answer(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{words}\r\n".encode())


@contextlib.asynccontextmanager
async def receiving(clock: ManualClock) -> AsyncGenerator[Receiver]:
    """A receiver until the block ends."""
    receiver = Receiver(clock)
    async with serving(receiver.script) as receiver.server:
        yield receiver


class Post:
    """The outbox and all it stands on, in one life."""

    def __init__(self, store: SqliteStore, clock: ManualClock, owner: Owner, resolve: Resolver | None) -> None:
        self.store = store
        self.clock = clock
        self.steady = SteadyClock(clock)
        self.owner = owner
        self.spans: list[Span] = []  # of the attempts so far
        sealer = Sealer(RootKey(bytes(range(32))))
        self.ring = KeyRing(
            keys=store, vault=store, clock=clock, pepper=bytes(32), sealer=sealer, random_bytes=os.urandom
        )
        self.client = Client(clock=clock, rule=AddressRule.of(("127.0.0.1/32",)), resolve=resolve)
        dialects = spoken(lenient_envelope_ids=False)
        key = new_signing_key()
        tokens = HubTokens(lambda _: key, issuer="http://localhost:8700")
        wire = Wire(client=self.client, max_answer=1024)
        credentials = Credentials(
            vault=store,
            sealer=sealer,
            clock=clock,
            tokens=tokens,
            signing_secret=self.ring.agent_secret,
            fetch=wire.fetch,
            check=wire.check,
            spoken={},
        )
        courier = HttpCourier(
            wire=wire,
            credentials=credentials,
            boxes=store,
            clock=clock,
            dialects=dialects,
            hub_url="http://localhost:8700",
            hub_id="8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02",
        )
        registry = Registry(
            store=store,
            courier=courier,
            clock=clock,
            spoken={},
            hub_uuid="8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02",
            protected=True,
            default_agent=None,
            signer=CardSigner(lambda _: key, jku="http://localhost:8700/jwks.json", now=clock.now),
        )
        self.outbox = Outbox(
            store=store,
            clock=self.steady,
            registry=registry,
            courier=courier,
            keys=self.ring,
            secrets=CallbackSecrets(sealer),
            traced=self._traced,
        )
        self.desk = DeliveryDesk(store=store, clock=clock, due=lambda: None)

    def _traced(self, _: Trace, span: Span) -> None:
        self.spans.append(span)

    async def owe(self, url: str) -> Task:
        """A call that has ended, which is owed to a callback."""
        task = await self.open(Callback(id="cb", dialect="platform", url=url))
        return await self.grow(task, completed(self.clock))

    async def open(self, callback: Callback) -> Task:
        """A call of Alice's that has begun."""
        task = msgspec.structs.replace(new_task(self.clock), callbacks=(callback,))
        await self.store.open(Opening(task=task, job=NewJob(queue=CALLS), durable=True))
        return task

    async def grow(self, task: Task, *events: TaskEvent) -> Task:
        """The task with these events, each owed to its callback."""
        grown = fold(task, events)
        jobs = tuple(
            owed(callback, seq)
            for callback in task.callbacks
            for seq, event in enumerate(events, task.last_seq + 1)
            if callback.tells is Tells.EVENTS or event is events[-1]
        )
        assert await self.store.append(Growth(task=grown, after=task.last_seq, events=events, jobs=jobs)) is None
        return grown

    async def due(self) -> Sequence[Job]:
        """Claim what is due."""
        return await self.store.lease((CALLBACKS,), 1000, self.owner)

    async def work(self) -> int:
        """Deliver all that is due, also what falls due by that; how many attempts that took."""
        count = 0
        while jobs := await self.due():
            await asyncio.gather(*(self.outbox.deliver(job) for job in jobs))
            count += len(jobs)
        return count

    async def pass_time(self) -> float:
        """Go to the time of the next attempt, and make it; how many seconds that took."""
        due = await self.store.next_due(CALLBACKS)
        assert due is not None
        wait_s = (due - self.steady.now()).total_seconds()
        self.clock.advance(wait_s)
        await self.work()
        return wait_s

    async def listed(self, **query: Any) -> list[Delivery]:
        """The deliveries of the tenant, oldest first."""
        page = await self.store.list_deliveries(EVERYONE, DeliveryQuery(**query))
        return list(reversed(page.deliveries))

    async def states(self) -> list[str]:
        """How they all stand, oldest first."""
        return [str(one.state) for one in await self.listed(limit=1000)]


Begin = Callable[..., contextlib.AbstractAsyncContextManager[Post]]


def post_office(folder: Path, clock: ManualClock) -> Begin:
    """Runs the outbox on one folder; begun again, it is the next life of the same hub."""

    @contextlib.asynccontextmanager
    async def begin(resolve: Resolver | None = None) -> AsyncGenerator[Post]:
        store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
        await store.start()
        post = Post(store, clock, await store.begin_epoch("hub"), resolve)
        try:
            yield post
        finally:
            await post.client.close()
            await store.close()

    return begin
