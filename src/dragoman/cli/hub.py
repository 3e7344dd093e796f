"""The hub's HTTP API, as commands use it: one request, one JSON answer, or a Fault that says what to do.

Does not retry and knows no command. Waits with a spinner on a terminal, with a line every 10 s elsewhere.
"""

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from dragoman.cli.fault import Exit, Fault
from dragoman.cli.output import Output
from dragoman.cli.refusals import Refusal, fault_of, read, refused_token
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.client.reach import is_unanswered, unreachable

if TYPE_CHECKING:
    from dragoman.model.errors import DragomanError
    from dragoman.model.http import HttpReply
    from dragoman.sdk.client.http import HubHttp

    Run = Callable[[Coroutine[None, None, HttpReply]], HttpReply]

REQUEST_S: Final = 30.0


class Hub:
    """One hub and the tokens that may be meant for it, best first."""

    def __init__(self, url: str, tokens: Sequence[str], output: Output) -> None:
        """Open nothing yet."""
        self.url = url
        self._tokens: list[str] = list(tokens)
        self._output = output

    @property
    def has_token(self) -> bool:
        """Whether there is a token to show."""
        return bool(self._tokens)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, timeout_s: float = REQUEST_S) -> JsonObject:
        """The JSON object at a path. Raises Fault."""
        answer = self.ask("GET", path, query=query, timeout_s=timeout_s)
        return answer if answer is not None else {}

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_S,
        waiting: str = "waiting for the hub",
        missing_ok: bool = False,
        invalid: Exit = Exit.USAGE,
        agent: str | None = None,
        run: "Run | None" = None,
    ) -> JsonObject | None:
        """The answer's JSON object; None for a 404 with `missing_ok`. Raises Fault for every other refusal.

        `run`: what runs the exchange, where it is not only to be waited for.
        """
        url = self.url + path + (f"?{urlencode(query)}" if query else "")
        while True:
            token = self._tokens[0] if self._tokens else None
            status, answer = self._exchange(method, url, body, _headers(token, body, headers), timeout_s, waiting, run)
            if status == 401 and len(self._tokens) > 1:
                # Of the hubs of this user, another one listens here.
                del self._tokens[0]
                continue
            break
        if 200 <= status < 300 and is_object(answer):
            return answer
        if status == 404 and missing_ok and is_object(answer):
            return None
        raise self.refused(status, answer, invalid=invalid, agent=agent)

    def refused(self, status: int, answer: Json, *, invalid: Exit = Exit.USAGE, agent: str | None = None) -> Fault:
        """The fault that an answer means which is no success."""
        if status < 500 and status != 429 and not is_object(answer):
            return self.unreachable("protocol", sent=False)
        refusal = read(status, answer)
        token = self._tokens[0] if self._tokens else None
        return (
            refused_token(refusal, token) if status in (401, 403) else fault_of(refusal, invalid=invalid, agent=agent)
        )

    def credential(self) -> dict[bytes, bytes]:
        """The header that shows the token, if there is one."""
        return {b"authorization": f"Bearer {self._tokens[0]}".encode()} if self._tokens else {}

    def http(self) -> "HubHttp":
        """The same hub for what goes on for a while: streams, and several requests at once."""
        # Brings the HTTP client.
        from dragoman.sdk.client.http import HubHttp

        return HubHttp(self.url, self._tokens[0] if self._tokens else None)

    def failed(self, error: "DragomanError") -> Fault:
        """The fault that an error of the client means."""
        return fault_of(Refusal(error.http_status, error.code, error.message, dict(error.details), error.retryable))

    def _exchange(
        self,
        method: str,
        url: str,
        body: Json,
        headers: Mapping[str, str],
        timeout_s: float,
        waiting: str,
        run: "Run | None",
    ) -> tuple[int, Json]:
        # asyncio, ssl and the client take longer to import than most commands take to run; --help needs none of them.
        import asyncio

        import msgspec

        from dragoman.cli.exchange import exchange
        from dragoman.model.http import HttpRequest
        from dragoman.net import NetError

        request = HttpRequest(
            method=method,
            url=url,
            headers={name.encode(): value.encode("latin-1", "replace") for name, value in headers.items()},
            body=b"" if body is None else json.dumps(body, ensure_ascii=False).encode(),
        )
        try:
            reply = (run or asyncio.run)(exchange(request, timeout_s, waiting, self._output))
        except NetError as error:
            raise self.unreachable(error.kind.value, sent=error.sent) from error
        try:
            return reply.status, msgspec.json.decode(reply.body) if reply.body else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            if 200 <= reply.status < 300:
                raise self.unreachable("protocol", sent=True) from None
            return reply.status, None

    def unreachable(self, kind: str, *, sent: bool) -> Fault:
        """The fault that there is no answer, and why."""
        message = unreachable(self.url, kind, sent=sent)
        if is_unanswered(kind, sent=sent):
            return Fault(
                message,
                next="it may have been carried out: look before you repeat it",
                exit_code=Exit.UNREACHABLE,
                code="HUB_UNREACHABLE",
            )
        return Fault(
            message,
            next="dragoman dev, or set DRAGOMAN_URL",
            exit_code=Exit.UNREACHABLE,
            code="HUB_UNREACHABLE",
            retryable=True,
        )


def segment(text: str) -> str:
    """A value as one segment of a path."""
    return quote(text, safe="@")


def _headers(token: str | None, body: Json, more: Mapping[str, str] | None) -> dict[str, str]:
    headers = {"accept": "application/json", **(more or {})}
    if body is not None:
        headers["content-type"] = "application/json"
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return headers
