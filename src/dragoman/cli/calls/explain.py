"""How the hub chose the agent of a call: the candidates with their figures, and why this one."""

from typing import Final

from dragoman.cli.hub import Hub, segment
from dragoman.cli.output import Output
from dragoman.cli.table import Column, Kind, show_rows
from dragoman.model.json import Json, JsonObject, is_array, is_object

COLUMNS: Final = (
    Column("agent", "agent", Kind.ID),
    Column("success", "success", Kind.NUMBER),
    Column("calls", "calls", Kind.NUMBER),
    Column("p95 ms", "p95_ms", Kind.NUMBER),
    Column("expected", "expected_ms", Kind.NUMBER),
    Column("waiting", "waiting", Kind.NUMBER),
    Column("rating", "rating", Kind.NUMBER),
    Column("$", "price_usd", Kind.NUMBER),
    Column("", "mark", Kind.STATE),
)


def explain(output: Output, hub: Hub, answer: JsonObject) -> None:
    """Show how the agent of a call was chosen; a call that named its agent has nothing to explain."""
    route = route_of(hub, answer)
    if not is_object(route):
        output.note("the call named its agent: nothing was chosen")
        return
    candidates = route.get("candidates")
    rows = [_row(each, route) for each in candidates if is_object(each)] if is_array(candidates) else []
    output.note("")
    show_rows(output, rows, COLUMNS)
    if route.get("more"):
        output.note(f"and {route['more']} more")
    output.note(str(route.get("why")))


def route_of(hub: Hub, answer: JsonObject) -> Json:
    """How the agent of a call was chosen; None where it was named. Raises Fault."""
    return hub.get(f"/v1/calls/{segment(str(answer.get('call_id') or answer.get('id')))}").get("route")


def _row(candidate: JsonObject, route: JsonObject) -> JsonObject:
    mark = "chosen" if candidate.get("agent") == route.get("chosen") else candidate.get("passed") or ""
    return {**candidate, "mark": mark}
