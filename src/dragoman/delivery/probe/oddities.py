"""The quirks that a look can see, by their numbers: what each means for calls through the hub.

What was seen is said where it is seen; here is what follows from it.
"""

from collections.abc import Mapping
from typing import Final

from dragoman.delivery.probe.findings import Oddity, SeenCard
from dragoman.model.json import JsonObject, is_array, is_object

CONSEQUENCES: Final[Mapping[str, str]] = {
    "Q2": "the hub asks until it is done",
    "Q3": "read as UTC",
    "Q4": "1.0 is used",
    "Q5": "read as a no",
    "Q10": "the hub makes an artifact of it",
    "Q11": "the hub makes an artifact of it",
    "Q12": "joined without a separator",
    "Q13": "stamped on arrival",
    "Q14": "the hub uses what answers",
    "Q15": "the hub's cards have defaults",
    "Q16": "the hub calls it as it wants",
    "Q17": "the hub calls it in the form of 0.1",
    "Q18": "the hub's cards are its own, and not covered by it",
    "Q21": "register the address of one agent there",
    "Q22": "escaped in paths, otherwise opaque",
    "Q23": "read by the members that are there",
    "Q26": "taken from one place",
    "Q28": "not taken for an answer",
    "Q29": "null is read as absent",
    "Q34": "called where its card was found",
}


def oddity(number: str, seen: str) -> Oddity:
    """A quirk that was seen."""
    return Oddity(id=number, seen=seen, consequence=CONSEQUENCES[number])


def of_card(found: SeenCard) -> list[Oddity]:
    """What is odd about a card itself."""
    seen: list[Oddity] = []
    missing = _missing(found.body) if found.dialect.startswith("a2a-") else []
    if missing:
        seen.append(oddity("Q15", f"the card has {', '.join(missing)}"))
    if found.signed:
        seen.append(oddity("Q18", "the card is signed"))
    return seen


def of_frame(frame: JsonObject | None, request_id: str | None) -> Oddity | None:
    """What is odd about the frame of a JSON-RPC answer."""
    if frame is None:
        return None
    if "result" in frame and "error" in frame:
        return oddity("Q29", "answers have both result and error, one of them null")
    if request_id is not None and frame.get("id") not in (request_id, None):
        return oddity("Q29", "answers carry another id than the request")
    return None


def _missing(card: JsonObject) -> list[str]:
    skills = card.get("skills")
    listed = [each for each in skills if is_object(each)] if is_array(skills) else []
    missing = [] if card.get("description") else ["no description"]
    if not listed:
        missing.append("no skills")
    elif not all(each.get("tags") for each in listed):
        missing.append("skills without tags")
    return missing
