"""Bugs in how calls are traced, and in who sees it."""

from dragoman.backends.sqlite import listing
from dragoman.model.http import Headers
from dragoman.model.task import Trace
from dragoman.observe.trace import read_trace
from dragoman.server import exchange
from tests.support.planting import put_in_place


def new_trace_at_the_second_hop(_: int) -> None:
    """A call that an agent makes begins a trace of its own, whatever it passes on."""

    def forgetful(headers: Headers, request_id: str) -> Trace:
        return read_trace({} if b"traceparent" in headers else headers, request_id)

    put_in_place(exchange, "read_trace", forgetful)


def traces_of_every_tenant(_: int) -> None:
    """A trace is looked for without its tenant."""
    open_to_all = listing.SQL["tasks_of_trace"].replace("AND tenant = :tenant", "AND :tenant IS NOT NULL")
    put_in_place(listing, "SQL", {**listing.SQL, "tasks_of_trace": open_to_all})
