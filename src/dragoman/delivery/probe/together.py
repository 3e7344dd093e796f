"""What the answers to the first three questions mean, read together: no one of them tells enough alone.

    GetTask   tasks/get   message/send {}
    yes       –           –                  1.0
    –         yes, or     -32602, -32600     0.3
    –         yes         -32601             AgentVault
    yes       yes         HTTP 500           hybrid: only its 1.0 is used

Pure: what was answered comes in, what is spoken goes out.
"""

import msgspec

from dragoman.delivery.probe.findings import Oddity
from dragoman.delivery.probe.oddities import oddity
from dragoman.delivery.probe.questions import (
    DOTTED,
    UNKNOWN_METHOD,
    V03,
    V10,
    VAULT,
    Reaction,
    is_broken_message,
)
from dragoman.dialects.a2a_v03.legacy import LEGACY
from dragoman.dialects.dotted.outbound import SLASH


class Meant(msgspec.Struct, frozen=True, kw_only=True):
    """A dialect that is spoken, or almost, and the answer that shows it."""

    dialect: str
    by: Reaction
    evidence: str
    answered: bool = True
    version: str | None = None
    note: str = ""
    oddity: Oddity | None = None


def understood(
    one: Reaction, two: Reaction, three: Reaction, *, kind: str | None, dotted: Reaction | None
) -> list[Meant]:
    """What is spoken where these were answered; `kind` is the card's, `dotted` the answer to a dotted agent's own."""
    if kind == V03 and any(is_broken_message(each.reply) for each in (one, two, three)):
        seen = oddity("Q17", "the card claims 0.3, and a server of A2A 0.1 answers")
        said = f"{one.evidence}, with a message in it"
        return [Meant(dialect=V03, by=one, evidence=said, version=LEGACY, note="A2A 0.1", oddity=seen)]
    found = [Meant(dialect=V10, by=one, evidence=one.evidence)] if one.yes else []
    if dotted is not None and dotted.yes:
        found.append(Meant(dialect=DOTTED, by=dotted, evidence=dotted.evidence))
    both = f"{two.evidence}, {three.evidence}"
    if two.yes and three.code == UNKNOWN_METHOD:
        found.append(Meant(dialect=VAULT, by=two, evidence=both))
    elif one.yes and two.yes and three.broken:
        seen = oddity("Q4", "0.3's methods answer between 0.3 and 1.0")
        note = "hybrid, 1.0 is used"
        found.append(Meant(dialect=V03, by=three, evidence=both, answered=False, note=note, oddity=seen))
    elif three.yes or (two.yes and three.reply is not None):
        found.append(_slashed(three if three.yes else two, both, kind, dotted))
    return found


def _slashed(by: Reaction, both: str, kind: str | None, dotted: Reaction | None) -> Meant:
    """Whose the methods of 0.3 are: its own, AgentVault's by its card, or a dotted agent's that knows no others."""
    if kind == DOTTED and dotted is not None and not dotted.yes:
        said = f"{dotted.evidence}, {both}"
        return Meant(dialect=DOTTED, by=by, evidence=said, version=SLASH, note="by 0.3's names")
    return Meant(dialect=VAULT if kind == VAULT and by.question.dialect != V03 else V03, by=by, evidence=both)
