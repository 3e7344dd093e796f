"""A caller that signs its requests, in words of its own: by the two specifications, not by the hub's code."""

import hashlib
import hmac
import http.client
import itertools
import json
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from standardwebhooks import Webhook

from dragoman.model.json import Json, is_object
from tests.support.hub import HubProcess, Reply

NONE: Final[Mapping[str, str]] = {}

_numbers = itertools.count(1)


class Sent(msgspec.Struct, frozen=True):
    """A request as it went over the wire, and as somebody who listened could send it again."""

    path: str
    headers: dict[str, str]
    body: bytes


class Signer:
    """One key and its signing secret."""

    def __init__(self, hub: HubProcess, made: Mapping[str, Any]) -> None:
        self.hub = hub
        self.key: str = made.get("key") or made["token"]
        self.secret: str = made["signing_secret"]

    def webhook(
        self,
        path: str,
        body: object,
        *,
        id: str = "",
        at: int | None = None,
        secret: str = "",
        headers: Mapping[str, str] = NONE,
    ) -> Sent:
        """A request signed in the form of Standard Webhooks, by its own library."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        id, at = id or f"msg_{next(_numbers)}", int(time.time()) if at is None else at
        moment = datetime.fromtimestamp(at, UTC)
        signature = Webhook(secret or self.secret).sign(id, moment, raw.decode())
        told = {"webhook-id": id, "webhook-timestamp": str(at), "webhook-signature": signature}
        return Sent(path, {**self._own(), **told, **headers}, raw)

    def first_form(self, path: str, body: object, *, at: int | None = None) -> Sent:
        """A request signed in the platform's own form."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        signature = hmac.new(self.secret.encode(), raw, hashlib.sha256).hexdigest()
        told = {"X-Signature": f"sha256={signature}", "X-Timestamp": str(int(time.time()) if at is None else at)}
        return Sent(path, {**self._own(), **told}, raw)

    def _own(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}


class Wire:
    """One connection to a hub, on which many requests are sent."""

    def __init__(self, hub: HubProcess) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30)

    def send(self, sent: Sent, **changed: str) -> Reply:
        """Send a request, with other headers in place of its own; `_` stands for `-`, "" leaves one out."""
        others = {name.replace("_", "-"): value for name, value in changed.items()}
        headers = {name: value for name, value in {**sent.headers, **others}.items() if value}
        self._connection.request("POST", sent.path, sent.body, headers)
        answer = self._connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def new_signer(hub: HubProcess, **more: Any) -> Signer:
    """A fresh key that may call, with its secret."""
    reply = hub.post("/v1/keys", {"name": "signs", "scopes": ["a2a:call"], **more})
    assert reply.status == 201, reply.body
    return Signer(hub, reply.json)


def ago(seconds: int) -> int:
    """A time that lies so many seconds back when it arrives, or a little less."""
    return math.ceil(time.time()) - seconds


def ahead(seconds: int) -> int:
    """A time that lies so many seconds ahead when it arrives, or a little less."""
    return int(time.time()) + seconds


def reason(reply: Reply) -> str:
    """Why a request was refused, in whatever dialect."""
    body: Any = reply.json
    error: Json = body.get("error")
    if not is_object(error):
        return str(body["payload"]["details"]["reason"])
    details: Json = error.get("details") or error.get("data") or {}
    facts: Json = details if is_object(details) else details[0].get("metadata")
    return str(facts.get("reason"))
