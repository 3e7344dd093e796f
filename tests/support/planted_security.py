"""Bugs in what the hub promises about security, and a gauge that tells where it connects to."""

import functools
import ipaddress
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

import msgspec

from dragoman.hub import handle
from dragoman.hub.authorize import authorize
from dragoman.hub.handle import Hub
from dragoman.hub.reader import Reader
from dragoman.hub.sending import stream_of
from dragoman.model.answers import Stream
from dragoman.model.call import Caller
from dragoman.model.errors import TaskNotFound
from dragoman.model.operations import FollowTask, GetTask, ListTasks, Operation
from dragoman.model.task import Task
from dragoman.net import client, dial
from dragoman.net.addresses import Target, judge, literal
from dragoman.net.dial import Dialler, DialLimits, Names, Resolver
from dragoman.net.errors import NetError, Reach
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope
from dragoman.security.sealed import Sealer
from dragoman.server import exchange
from tests.support.planting import put_in_place

DIALLED: Final = "DIALLED"
OPEN: Final = "127.7.7.7"  # the one address that tests of forbidden ones allow
NAMES: Final = ".canary.example"

Attempt = Callable[[str, int], Coroutine[Any, Any, socket.socket | NetError]]


def tells_dials(port: int) -> None:
    """Each connection that is opened is told in the log; of loopback addresses all lead to that port.

    Nothing else is reached: other addresses refuse at once. Names below `canary.example` say themselves what they
    resolve to (`x` and an address in hex; `afterN` before the last: not until it was asked so often), no others do.
    """
    attempt: Attempt = vars(dial)["_attempt"]
    asked: dict[str, int] = {}

    async def told(address: str, wanted: int) -> socket.socket | NetError:
        if address == OPEN:
            return await attempt(address, wanted)
        sys.stdout.write(f"{DIALLED} {address} {wanted}\n")
        sys.stdout.flush()
        if ipaddress.ip_address(address).is_loopback:
            return await attempt("::1" if ":" in address else "127.0.0.1", port)
        return NetError(Reach.REFUSED)

    async def resolve(host: str) -> Sequence[str]:
        if not host.endswith(NAMES):
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            return [str(entry[4][0]) for entry in found]
        asked[host] = asked.get(host, 0) + 1
        labels = host.removesuffix(NAMES).split(".")
        addresses = [_address(label) for label in labels if label.startswith("x")]
        changes = next((int(label[5:]) for label in labels if label.startswith("after")), None)
        if changes is None:
            return addresses
        return addresses[:1] if asked[host] <= changes else addresses[1:]

    def forgetful(names: Names, clock: Clock, resolver: Resolver, limits: DialLimits) -> None:
        made(names, clock, resolver, msgspec.structs.replace(limits, names_s=0.0))

    made = Names.__init__
    put_in_place(Names, "__init__", forgetful)
    put_in_place(client, "system_resolver", resolve)
    put_in_place(dial, "_attempt", told)


def _address(label: str) -> str:
    return str(ipaddress.ip_address(bytes.fromhex(label[1:])))


def name_judged_only(_: int) -> None:
    """What a URL says is judged, not what it resolves to."""

    async def judged(dialler: Dialler, target: Target) -> tuple[str, ...]:
        names: Names = getattr(dialler, "_names")  # noqa: B009 - a part of the inside
        if literal(target.host) is not None:
            judge(target, [target.host], getattr(dialler, "_rule"))  # noqa: B009
        return await names.addresses(target.host)

    put_in_place(Dialler, "judged", judged)


def resolved_again(_: int) -> None:
    """What is dialled is resolved anew, after the addresses were judged."""
    connect: Callable[[Dialler, Target, Sequence[str]], Awaitable[socket.socket]] = vars(Dialler)["_connect"]

    async def again(dialler: Dialler, target: Target, _: Sequence[str]) -> socket.socket:
        names: Names = getattr(dialler, "_names")  # noqa: B009 - a part of the inside
        return await connect(dialler, target, await names.addresses(target.host))

    put_in_place(Dialler, "_connect", again)


def tasks_listed_to_strangers(_: int) -> None:
    """One operation is let through without a credential."""

    def lenient(caller: Caller, operation: Operation) -> None:
        if not isinstance(operation, ListTasks):
            authorize(caller, operation)

    put_in_place(handle, "authorize", lenient)


def followed_without_owner(_: int) -> None:
    """The loader of tasks is passed by where a task is followed: the tenant is looked at, its caller is not."""

    async def follow(hub: Hub, caller: Caller, asked: FollowTask) -> Stream:
        task = await _of_tenant(hub, caller, asked.task_id)
        store, bus = getattr(hub, "_store"), getattr(hub, "_bus")  # noqa: B009 - parts of the inside
        return stream_of(task, Reader(task, store=store, bus=bus, after=asked.after))

    put_in_place(Hub, "_follow", follow)


def shown_to_every_tenant(_: int) -> None:
    """A task is shown to whoever knows its id, of whatever tenant."""

    async def get(hub: Hub, _: Caller, asked: GetTask) -> Task:
        store = getattr(hub, "_store")  # noqa: B009 - a part of the inside
        for tenant in ("default", "other"):
            task: Task | None = await store.load(Scope(tenant=tenant, principal=None), asked.task_id)
            if task is not None:
                return task
        raise TaskNotFound(f"There is no call or task {asked.task_id!r}.", call_id=asked.task_id)

    put_in_place(Hub, "_get", get)


async def _of_tenant(hub: Hub, caller: Caller, task_id: str) -> Task:
    store = getattr(hub, "_store")  # noqa: B009 - a part of the inside
    task: Task | None = await store.load(Scope(tenant=caller.tenant, principal=None), task_id)
    if task is None:
        raise TaskNotFound(f"There is no call or task {task_id!r}.", call_id=task_id)
    return task


def nothing_sealed(_: int) -> None:
    """What is to be sealed is stored as it is."""

    def plain(_sealer: Sealer, secret: bytes, **_where: str) -> bytes:
        return secret

    put_in_place(Sealer, "seal", plain)
    put_in_place(Sealer, "open", plain)


def depth_unchecked(_: int) -> None:
    """How deep a body nests is left to its decoder to find."""
    put_in_place(exchange, "check_depth", functools.partial(_ignored))


def _ignored(*_: object) -> None:
    """Look at nothing."""
