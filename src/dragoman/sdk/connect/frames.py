"""What the hub's frames say, as far as the connection has to know it; the rest is for the call's work."""

from datetime import datetime

import msgspec

from dragoman.model.json import JsonObject


class Heard(msgspec.Struct, frozen=True):
    """What of an earlier attempt is on disk: up to which number."""

    attempt: int
    n: int


class Offer(msgspec.Struct, frozen=True):
    """`call`: carry this out."""

    call_id: str
    attempt: int = 1
    answers: list[JsonObject] = []
    deadline: datetime | None = None
    heard: Heard | None = None


class Answer(msgspec.Struct, frozen=True):
    """`input`: what the caller answered to the question of that count."""

    call_id: str
    attempt: int
    ask: int
    message: JsonObject
    heard: Heard | None = None


class Cancel(msgspec.Struct, frozen=True):
    """`cancel`: stop this one."""

    call_id: str
    attempt: int
    reason: str = ""


class Drain(msgspec.Struct, frozen=True):
    """`drain`: the hub goes; come back after a while."""

    reconnect_after_ms: int = 0


class Opened(msgspec.Struct, frozen=True):
    """The answer to a hello: the session, and which of the calls that run here go on."""

    session_id: str
    heartbeat_s: float = 10.0
    keep: list[str] = []
    drop: list[str] = []
