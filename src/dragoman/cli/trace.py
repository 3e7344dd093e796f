"""`dragoman trace`: one trace as a tree of spans with bars, by its id, by one of its calls, or by an X-Trace-ID."""

import shutil
from typing import Final

import click

from dragoman.cli.fault import not_found, wrong_usage
from dragoman.cli.find import items_of, pages
from dragoman.cli.hub import Hub, segment
from dragoman.cli.output import Output, one_line
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.waterfall import draw
from dragoman.model.json import JsonObject, is_object

NARROWEST: Final = 60
WIDEST: Final = 200
CANDIDATES: Final = 20  # of an ambiguous beginning
FIELDS: Final = ("depth", "offset_ms", "duration_ms", "name", "status", "error_code", "call_id", "span_id")


@click.command("trace", epilog="Example: dragoman trace a2a_call_7c1e")
@click.argument("name", metavar="ID")
@click.option("--width", type=click.IntRange(NARROWEST, WIDEST), help="How wide to draw; the terminal's if left out.")
@common
def command(name: str, width: int | None) -> None:
    """Show a trace: every call in it, its attempts, and how long each took."""
    output = current_output()
    found = _trace_of(current_hub(output), name)
    if output.json:
        output.document(found)
    elif output.human or width is not None:
        draw(output, found, width or max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns)))
    else:
        _list(output, found)


def _trace_of(hub: Hub, name: str) -> JsonObject:
    """A trace by what people have: any of its ids, or a unique beginning of a call's. Raises Fault."""
    found = hub.ask("GET", f"/v1/traces/{segment(name)}", missing_ok=True)
    if found is not None:
        return found
    known, _ = pages(hub, "/v1/calls", {"prefix": name}, limit=CANDIDATES)
    traces = list(dict.fromkeys(str(item.get("trace_id")) for item in known))
    if len(traces) == 1:
        return hub.get(f"/v1/traces/{segment(traces[0])}")
    if traces:
        ids = [str(item.get("id")) for item in known]
        raise wrong_usage(
            f'"{name}" is the beginning of {len(ids)} calls', next=f"write more of it, such as {ids[0]}", lines=ids
        )
    raise not_found(
        "TRACE_NOT_FOUND", f'no trace or call "{name}"', next="dragoman tasks ls; calls of other keys look unknown"
    )


def _list(output: Output, found: JsonObject) -> None:
    """One line for each span, for programs."""
    for span in items_of(found, "spans"):
        if is_object(span):
            output.answer("\t".join("" if span.get(name) is None else one_line(str(span[name])) for name in FIELDS))
