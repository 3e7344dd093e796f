"""Tell an address of one event of a task: in its callback's own dialect, signed where the receiver has a secret."""

from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.delivery.over_http import Wire
from dragoman.dialects.dialect import Dialect, Notice
from dragoman.model.callbacks import Callback
from dragoman.model.events import Happened
from dragoman.model.http import HttpRequest
from dragoman.model.secret import Secret
from dragoman.model.task import Task
from dragoman.observe.trace import trace_headers
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Told
from dragoman.security.signing import sign_headers

NOTICE_S: Final = 15.0


class Notices:
    """Puts events into words and posts them, once each."""

    def __init__(self, *, wire: Wire, clock: Clock, dialects: Mapping[str, Dialect], hub_url: str, hub_id: str) -> None:
        self._wire = wire
        self._clock = clock
        self._dialects = dialects
        self._hub_url = hub_url
        self._hub_id = hub_id

    async def notify(
        self,
        callback: Callback,
        task: Task,
        happened: Happened,
        *,
        url: str,
        recipient: str,
        secret: Secret | None,
        span_id: str,
    ) -> Told:
        """Tell an address of one event, once."""
        request = self._worded(callback, task, happened, url, recipient)
        if request is None:
            return Told(delivered=True)  # The callback's dialect has no word for it.
        headers = _trace(task, span_id)
        headers |= {name.lower().encode(): value.encode() for name, value in (callback.headers or {}).items()}
        headers |= request.headers
        notice_id = request.headers.get(b"webhook-id", f"wh_{task.id}_{happened.seq}".encode()).decode()
        headers[b"webhook-id"] = notice_id.encode()
        if secret is not None:
            at = int(self._clock.now().timestamp())
            headers |= sign_headers(secret, id=notice_id, timestamp=at, body=request.body)
        return await self._wire.post(
            msgspec.structs.replace(request, headers=headers), self._clock.monotonic() + NOTICE_S
        )

    def put_into_words(self, callback: Callback, task: Task, happened: Happened, *, recipient: str) -> bytes | None:
        """One event as the callback's dialect would post it."""
        request = self._worded(callback, task, happened, "", recipient)
        return None if request is None else request.body

    def _worded(
        self, callback: Callback, task: Task, happened: Happened, url: str, recipient: str
    ) -> HttpRequest | None:
        notify = self._dialects[callback.dialect].notify
        if notify is None:
            return None
        return notify(
            Notice(
                callback=callback,
                task=task,
                happened=happened,
                url=url,
                recipient=recipient,
                hub_url=self._hub_url,
                hub_id=self._hub_id,
                at=self._clock.now(),
            )
        )


def _trace(task: Task, span_id: str) -> dict[bytes, bytes]:
    """The call's trace, with the span of this very attempt."""
    trace = msgspec.structs.replace(task.trace, span_id=span_id, parent_span_id=task.trace.span_id, given_span=None)
    return trace_headers(trace, task.asked.request_id or f"req_{task.id}")
