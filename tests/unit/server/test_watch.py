from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_network
from math import inf

from dragoman.server.limits import Limits
from dragoman.server.watch import Watch


class ByHand:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.time = 100.0
        self.timers: list[tuple[float, Callable[[], object]]] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def call_at(self, when: float, function: Callable[[], object]) -> "ByHand":
        self.timers.append((when, function))
        return self

    def cancel(self) -> None:
        pass

    def new_id(self, prefix: str) -> str:
        return prefix

    def jitter(self, seconds: float, share: float) -> float:
        return seconds * (1 + 0 * share)

    def advance(self, seconds: float) -> None:
        self.time += seconds
        due = [timer for timer in self.timers if timer[0] <= self.time]
        self.timers = [timer for timer in self.timers if timer[0] > self.time]
        for _, function in due:
            function()


class Client:
    def __init__(self, watch: Watch, *, reads_for_s: float = inf, writes_for_s: float = inf) -> None:
        self.watch = watch
        self.read_deadline = watch.now + reads_for_s
        self.write_deadline = watch.now + writes_for_s
        self.stream_deadline = inf
        self.late: list[float] = []
        watch.add(self)

    def overdue(self, now: float) -> None:
        self.late.append(now)
        self.watch.discard(self)


def test_one_timer_serves_all_connections_and_ends_with_the_last() -> None:
    clock = ByHand()
    watch = Watch(Limits(), clock, public=False)
    assert watch.admit("127.0.0.1") is not None
    clients = [Client(watch, reads_for_s=2.5), Client(watch, writes_for_s=1.5), Client(watch)]
    assert len(clock.timers) == 1
    for _ in range(4):
        clock.advance(1.0)
        assert len(clock.timers) == 1
    assert [client.late for client in clients] == [[103.0], [102.0], []]
    watch.discard(clients[2])
    clock.advance(1.0)
    assert clock.timers == []
    clock.advance(50.0)
    assert watch.admit("127.0.0.1") is not None
    assert watch.now == clock.time


def test_an_address_has_its_share_on_a_public_bind_alone() -> None:
    limits = Limits(connections_per_address=2)
    private = Watch(limits, ByHand(), public=False)
    assert [private.admit("10.0.0.1") for _ in range(3)] == ["", "", ""]
    public = Watch(limits, ByHand(), public=True, uncapped=[ip_network("10.0.0.9/32")])
    assert [public.admit("10.0.0.1") for _ in range(3)] == ["10.0.0.1", "10.0.0.1", None]
    assert [public.admit("10.0.0.9") for _ in range(3)] == ["", "", ""]
    assert public.admit("10.0.0.2") == "10.0.0.2"
    public.release("10.0.0.1")
    assert public.admit("10.0.0.1") == "10.0.0.1"
    assert public.refused == {"CONNECTIONS_PER_ADDRESS": 1}


def test_all_addresses_of_one_ipv6_site_share_one_share() -> None:
    watch = Watch(Limits(connections_per_address=2), ByHand(), public=True)
    assert watch.admit("2001:db8::1") == watch.admit("2001:db8::ffff:2") == "2001:db8::/64"
    assert watch.admit("2001:db8::3") is None
    assert watch.admit("2001:db8:0:1::1") == "2001:db8:0:1::/64"


def test_no_more_connections_than_allowed_are_open() -> None:
    watch = Watch(Limits(connections=2), ByHand(), public=False)
    assert [watch.admit(None) for _ in range(3)] == ["", "", None]
    assert watch.open == 2
    watch.release("")
    assert watch.admit(None) == ""
