"""Bugs in how calls are traced, and in who sees it."""

import msgspec

from dragoman.backends.sqlite import listing
from dragoman.hub import outbox
from dragoman.model.http import Headers
from dragoman.model.task import Trace
from dragoman.observe.notice_spans import next_span_id
from dragoman.observe.trace import read_trace
from dragoman.ports.deliveries import Pending
from dragoman.server import exchange
from tests.support.planting import altered, put_in_place


def new_trace_at_the_second_hop(_: int) -> None:
    """A call that an agent makes begins a trace of its own, whatever it passes on."""

    def forgetful(headers: Headers, request_id: str) -> Trace:
        return read_trace({} if b"traceparent" in headers else headers, request_id)

    put_in_place(exchange, "read_trace", forgetful)


def traces_of_every_tenant(_: int) -> None:
    """A trace is looked for without its tenant."""
    looks = ("tasks_of_trace", "task_of_trace")
    open_to_all = {name: altered(listing.SQL[name], "tenant = :tenant", ":tenant IS NOT NULL") for name in looks}
    put_in_place(listing, "SQL", {**listing.SQL, **open_to_all})


def one_span_for_all_attempts_to_call_back(_: int) -> None:
    """Whoever is called back is told the same span at each attempt."""

    def first(call_id: str, pending: Pending) -> str:
        return next_span_id(call_id, msgspec.structs.replace(pending, tries=0, replays=0))

    put_in_place(outbox, "next_span_id", first)
