"""Bugs in how callers are told what became of their calls."""

import itertools

import msgspec

from dragoman.backends.sqlite.store import SqliteStore
from dragoman.delivery.over_http import Wire
from dragoman.model.http import HttpRequest
from dragoman.ports.courier import Told
from dragoman.ports.store import Growth, Raced
from tests.support.planting import Later, put_in_place, serve_on


def new_id_per_attempt(_: int) -> None:
    """Each attempt to deliver a callback has an id of its own."""
    post, numbers = Wire.post, itertools.count()

    async def renamed(wire: Wire, request: HttpRequest, deadline: float) -> Told:
        headers = {**request.headers, b"webhook-id": b"wh_%d" % next(numbers)}
        return await post(wire, msgspec.structs.replace(request, headers=headers), deadline)

    put_in_place(Wire, "post", renamed)


def redirect_followed(_: int) -> None:
    """A callback goes where a redirect says."""
    post = Wire.post

    async def followed(wire: Wire, request: HttpRequest, deadline: float) -> Told:
        reply = await wire.fetch(request, deadline)
        where = reply.headers.get(b"location", request.url.encode()).decode()
        return await post(wire, msgspec.structs.replace(request, url=where), deadline)

    put_in_place(Wire, "post", followed)


def outbox_in_second_transaction(_: int) -> None:
    """What is owed to a caller is written a little after what it tells of."""

    def alter(store: SqliteStore) -> None:
        append, later = store.append, Later()

        async def twice(growth: Growth) -> Raced | None:
            raced = await append(msgspec.structs.replace(growth, jobs=()))
            if raced is None and growth.jobs:
                owed = msgspec.structs.replace(growth, after=growth.task.last_seq, events=())
                later.begin(lambda: append(owed))
            return raced

        put_in_place(store, "append", twice)

    serve_on(alter)
