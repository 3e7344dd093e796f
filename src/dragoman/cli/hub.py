"""The hub's HTTP API, as commands use it: one request, one JSON answer, or a Fault that says what to do.

Does not retry and knows no command. Waits with a spinner on a terminal, with a line every 10 s elsewhere.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from dragoman.cli.fault import Exit, Fault
from dragoman.cli.output import Output
from dragoman.cli.refusals import fault_of, read, refused_token
from dragoman.model.json import Json, JsonObject, is_object

REQUEST_S: Final = 30.0
REASONS: Final = {
    "forbidden": "no usable address", "unresolved": "no such host", "refused": "connection refused",
    "tls": "TLS failed", "timeout": "no answer in time", "reset": "connection closed",
    "protocol": "what answers there is no hub", "too_large": "answer too large",
    "compressed": "answer is compressed", "closed": "closed",
}  # fmt: skip


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
    ) -> JsonObject | None:
        """The answer's JSON object; None for a 404 with `missing_ok`. Raises Fault for every other refusal."""
        url = self.url + path + (f"?{urlencode(query)}" if query else "")
        while True:
            token = self._tokens[0] if self._tokens else None
            status, answer = self._exchange(method, url, body, _headers(token, body, headers), timeout_s, waiting)
            if status == 401 and len(self._tokens) > 1:
                # Of the hubs of this user, another one listens here.
                del self._tokens[0]
                continue
            break
        if 200 <= status < 300 and is_object(answer):
            return answer
        if status < 500 and status != 429 and not is_object(answer):
            raise self._unreachable("protocol", sent=False)
        if status == 404 and missing_ok:
            return None
        refusal = read(status, answer)
        raise refused_token(refusal, token) if status in (401, 403) else fault_of(refusal, invalid=invalid, agent=agent)

    def _exchange(
        self, method: str, url: str, body: Json, headers: Mapping[str, str], timeout_s: float, waiting: str
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
            reply = asyncio.run(exchange(request, timeout_s, waiting, self._output))
        except NetError as error:
            raise self._unreachable(error.kind.value, sent=error.sent) from error
        try:
            return reply.status, msgspec.json.decode(reply.body) if reply.body else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            if 200 <= reply.status < 300:
                raise self._unreachable("protocol", sent=True) from None
            return reply.status, None

    def _unreachable(self, kind: str, *, sent: bool) -> Fault:
        reason = REASONS.get(kind, kind)
        if sent and kind in ("timeout", "reset"):
            return Fault(
                f"{self.url} took the request and gave no answer ({reason})",
                next="it may have been carried out: look before you repeat it",
                exit_code=Exit.UNREACHABLE,
                code="HUB_UNREACHABLE",
            )
        return Fault(
            f"no hub answers at {self.url} ({reason})",
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
