"""Where a task is told of, and how much of it."""

from enum import StrEnum

import msgspec

from dragoman.model.json import JsonObject


class Tells(StrEnum):
    """What a callback is told: only the end, every change of state, or every event."""

    END = "end"
    STATES = "states"
    EVENTS = "events"


class Callback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a task is told of: a URL, or an agent by its endpoint or mailbox; `sender` is by whom, if it names one.

    Its secrets (headers, token, auth) are in clear only while they are given and sent: a stored one has them `sealed`.
    """

    id: str
    dialect: str
    url: str | None = None
    agent_id: str | None = None
    sender: str | None = None
    tells: Tells = Tells.END
    headers: dict[str, str] | None = None
    token: str | None = None
    auth: JsonObject | None = None
    sealed: bytes | None = None
