"""Agents and skills by what people type: whole ids, unique beginnings, and "did you mean" for the rest."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dragoman.cli.fault import Fault, not_found, wrong_usage
from dragoman.cli.hub import Hub, segment
from dragoman.model.json import JsonArray, JsonObject, is_array, is_object

PAGE: Final = 100
# A prefix is looked for among so many; whoever has more agents can type an id.
SEARCHED: Final = 1000


def pages(
    hub: Hub,
    path: str,
    query: Mapping[str, str],
    *,
    items: str = "items",
    limit: int | None = None,
    position: str = "cursor",
) -> tuple[list[JsonObject], str | None]:
    """Up to `limit` entries of a list (all without one) and the cursor of what follows, asked for as `position`."""
    found: list[JsonObject] = []
    cursor = query.get(position)
    while True:
        left = PAGE if limit is None else min(PAGE, limit - len(found))
        asked = {**query, "limit": str(left), **({position: cursor} if cursor else {})}
        answer = hub.get(path, asked)
        found.extend(item for item in items_of(answer, items) if is_object(item))
        cursor = answer.get("next_cursor") or None
        if cursor is None or (limit is not None and len(found) >= limit):
            return found, cursor


def items_of(answer: JsonObject, name: str = "items") -> JsonArray:
    """The entries of a list that the hub answered with."""
    found = answer.get(name)
    return found if is_array(found) else []


def agent_item(hub: Hub, text: str) -> JsonObject:
    """The agent's entry in the registry, by id or unique beginning. Raises Fault: unknown or ambiguous."""
    name, at, version = text.partition("@")
    answer = hub.ask("GET", f"/v1/agents/{segment(text)}", missing_ok=True)
    if answer is not None:
        return answer
    known, _ = pages(hub, "/v1/agents", {}, limit=SEARCHED)
    resolved = one_of("agent", name, [str(item["id"]) for item in known])
    return hub.get(f"/v1/agents/{segment(resolved + at + version)}")


def agent_card(hub: Hub, text: str) -> tuple[str, JsonObject]:
    """The agent's id, as it is called by, and its card. Raises Fault: unknown or ambiguous."""
    answer = hub.ask("GET", f"/v1/a2a/agents/{segment(text)}/card", missing_ok=True)
    if answer is not None:
        return text, answer
    name, at, version = text.partition("@")
    known, _ = pages(hub, "/v1/a2a/discover", {}, items="agents", limit=SEARCHED)
    resolved = one_of("agent", name, [str(item["id"]) for item in known]) + at + version
    return resolved, hub.get(f"/v1/a2a/agents/{segment(resolved)}/card")


def skills_of(items: Iterable[JsonObject]) -> list[str]:
    """Every skill name in a page of agents, each once."""
    return list(dict.fromkeys(_names(items)))


def one_of(what: str, text: str, known: Sequence[str]) -> str:
    """The id that was meant. Raises Fault with the candidates when it is ambiguous, the nearest when unknown."""
    if text in known:
        return text
    fitting = [one for one in known if text and one.startswith(text)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise wrong_usage(
            f'"{text}" is the beginning of {len(fitting)} {what}s',
            next=f"write more of it, such as {fitting[0]}",
            lines=fitting[:20],
            details={"candidates": fitting},
        )
    raise (
        unknown_agent(text, known)
        if what == "agent"
        else not_found("NOT_FOUND", f'no {what} "{text}"{did_you_mean(text, known)}', next=f"dragoman {what}s ls")
    )


def unknown_agent(text: str, known: Sequence[str]) -> Fault:
    """There is no such agent."""
    return not_found("AGENT_NOT_FOUND", f'no agent "{text}"{did_you_mean(text, known)}', next="dragoman discover")


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """`; did you mean x?`, or nothing when nothing is near."""
    near = difflib.get_close_matches(text, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _names(items: Iterable[JsonObject]) -> Iterator[str]:
    for item in items:
        for skill in item.get("skills") or ():
            yield str(skill)
