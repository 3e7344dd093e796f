"""What a look brought to light, as JSON to be shown and kept, and as the refusal where nothing can be used."""

from typing import Final
from urllib.parse import urlsplit

from dragoman.delivery.probe.findings import Examined, Said, SeenCard, Spoken, Verdict
from dragoman.delivery.probe.places import is_loopback
from dragoman.dialects.times import wire_time
from dragoman.model.agent import AgentCard
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject
from dragoman.net.addresses import without_login

_WHY: Final = {
    Verdict.SILENT: "nothing answers there",
    Verdict.NO_AGENT: "no agent card was found, and no dialect is spoken there",
    Verdict.LOCKED: "what answers there wants a credential, and nothing says which dialect it speaks",
}


def examined_card(examined: Examined) -> AgentCard:
    """The card by which to call what was examined. Raises BadParams with every request and its answer."""
    if examined.card is not None:
        return examined.card
    why = why_not(examined)
    raise BadParams(
        f"Nothing usable answers at {without_login(examined.url)[:200]}: {why}.",
        errors=[{"path": "url", "message": why}],
        seen=[each.line for each in examined.tried],
        **({"quirks": [each.id for each in examined.oddities]} if examined.oddities else {}),
    )


def why_not(examined: Examined) -> str:
    """Why nothing there can be used."""
    if examined.found is not None:
        return f"the card of {examined.found.card.name!r} was found, but none of its endpoints answers"
    if examined.problem:
        return f"a card was found that cannot be used ({examined.problem}), and no dialect is spoken there"
    wanted = next((each.seen for each in examined.oddities if each.id == "Q21"), "")
    return wanted or _WHY[examined.verdict]


def document(examined: Examined) -> JsonObject:
    """All of it, for programs; it is also what the hub keeps with an agent."""
    return {
        "url": examined.url,
        "at": wire_time(examined.at),
        "verdict": examined.verdict.value,
        "card": None if examined.found is None else _card(examined.found),
        "problem": examined.problem or None,
        "dialects": [_dialect(each) for each in examined.spoken],
        "send": None if examined.said is None else _said(examined.said),
        "stream": {"claimed": bool(examined.card and examined.card.streaming), "tried": False},
        "auth": auth_of(examined),
        "tls": tls_of(examined.url),
        "clock_skew_s": examined.clock_skew_s,
        "latency_ms": examined.latency_ms,
        "signature": None if examined.found is None else "not checked" if examined.found.signed else "none",
        "quirks": [{"id": odd.id, "seen": odd.seen, "consequence": odd.consequence} for odd in examined.oddities],
        "tried": [
            {"what": each.what, "request": each.request, "says": each.says, "ms": each.ms} for each in examined.tried
        ],
    }


def auth_of(examined: Examined) -> JsonObject:
    """What is wanted of callers: by what was answered, and by what the card says."""
    schemes = () if examined.found is None else examined.found.card.auth
    shown: list[Json] = []
    for scheme in schemes:
        facts: JsonObject = {"scheme": scheme.kind, "id": scheme.id, "service_identifier": scheme.service_identifier}
        shown.append({name: value for name, value in facts.items() if value is not None})
    return {"asked": examined.locked, "challenge": examined.challenge, "card": shown}


def tls_of(url: str) -> str:
    """How the connection is protected; a certificate that does not hold never gets this far."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return "verified"
    return "none (loopback)" if is_loopback(parts.hostname or "") else "none"


def _card(found: SeenCard) -> JsonObject:
    card = found.card
    return {
        "url": found.url,
        "path": found.path or None,
        "kind": "a2a-1.0 and a2a-0.3, merged" if found.merged else found.dialect,
        "name": card.name,
        "version": card.version,
        "skills": [skill.id for skill in card.skills],
        "streaming": card.streaming,
        "push": card.push,
        "signed": found.signed,
        "sha256": found.digest,
    }


def _dialect(spoken: Spoken) -> JsonObject:
    shown: JsonObject = {
        "name": spoken.dialect,
        "binding": spoken.binding.value,
        "url": spoken.url,
        "version": spoken.version,
        "claimed": spoken.claimed,
        "answered": spoken.answered if spoken.asked else None,
        "needs_credential": spoken.locked,
        "evidence": spoken.evidence,
        "note": spoken.note or None,
    }
    return shown


def _said(said: Said) -> JsonObject:
    return {
        "dialect": said.dialect,
        "binding": said.binding.value,
        "state": said.state,
        "text": said.text,
        "places": list(said.places),
        "polls": said.polls,
        "ms": round(said.ms, 1),
        "problem": said.problem or None,
    }
