"""What a look at a URL brought to light, as plain data: what was asked, what answered, and what is odd about it.

Decides nothing and shows nothing: `look.py` fills it in, `report.py` puts it into words.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from dragoman.model.agent import AgentCard, Binding
from dragoman.model.json import JsonObject


class _Finding(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Tried(_Finding, frozen=True, kw_only=True):
    """One request and what came of it; without a status nothing came back."""

    what: str  # the question, for people: "card", "GetTask"
    request: str  # the method and the URL
    says: str
    status: int | None = None
    ms: float | None = None

    @property
    def line(self) -> str:
        """The same as one line of a table."""
        return f"{self.what}, {self.request}: {self.says}"


class SeenCard(_Finding, frozen=True, kw_only=True):
    """A card, where it was found and what it is."""

    url: str
    path: str  # below the URL or its origin; empty where the URL itself is the card
    dialect: str
    body: JsonObject
    card: AgentCard
    digest: str
    raw: bytes  # the very bytes
    merged: bool = False  # of 1.0 and 0.3 at once
    signed: bool = False


class Spoken(_Finding, frozen=True, kw_only=True):
    """One dialect in one framing: whether the card claims it, and whether it was answered."""

    dialect: str
    binding: Binding
    url: str
    claimed: bool
    answered: bool
    evidence: str
    version: str | None = None  # a variant of the dialect, or the version the card names
    tenant: str | None = None
    locked: bool = False  # it answers, and wants a credential
    asked: bool = True  # False: there is nothing that can be asked without starting work
    note: str = ""


class Oddity(_Finding, frozen=True, kw_only=True):
    """A known quirk that was seen, and what it means for calls through the hub."""

    id: str
    seen: str
    consequence: str


class Said(_Finding, frozen=True, kw_only=True):
    """What came of one real message."""

    dialect: str
    binding: Binding
    state: str | None  # None: it never got that far
    text: str = ""
    places: tuple[str, ...] = ()  # where the answer is; the first is the one that counts
    polls: int = 0
    ms: float = 0.0
    problem: str = ""


class Verdict(StrEnum):
    """What all of it comes to."""

    USABLE = "usable"
    LOCKED = "needs a credential"
    UNUSABLE = "nothing usable"  # a card, but no dialect that answers
    NO_AGENT = "no agent"  # something answers, but neither a card nor a dialect
    SILENT = "nothing answers"


class Examined(_Finding, frozen=True, kw_only=True):
    """Everything that was found out about a URL."""

    url: str
    at: datetime
    card: AgentCard | None  # to be called by: with the endpoints that answer, best first
    found: SeenCard | None = None
    problem: str = ""  # why a card that was found cannot be used
    spoken: tuple[Spoken, ...] = ()
    tried: tuple[Tried, ...] = ()
    oddities: tuple[Oddity, ...] = ()
    locked: bool = False  # something wanted a credential
    challenge: str | None = None  # the scheme it named
    reach: str = ""  # why nothing came back, where nothing did
    clock_skew_s: float | None = None
    latency_ms: float | None = None
    named: str | None = None  # the dialect that the user named
    everything: bool = False  # all dialects were asked, whether or not something points to them
    said: Said | None = None

    @property
    def verdict(self) -> Verdict:
        """What it comes to."""
        open_ones = [each for each in self.spoken if each.answered and not each.locked]
        if self.card is not None and open_ones:
            return Verdict.USABLE
        if self.locked:
            return Verdict.LOCKED
        if self.found is not None or self.problem:
            return Verdict.UNUSABLE
        return Verdict.NO_AGENT if any(each.status is not None for each in self.tried) else Verdict.SILENT
