"""`dragoman translate FROM TO [FILE]`: the same thing in another dialect, without a hub or a network.

The translation is on stdout; what the other dialect cannot say is listed on stderr.
"""

import json
import sys
from pathlib import Path

import click

from dragoman.cli.discover import DIALECTS
from dragoman.cli.fault import Fault, wrong_usage
from dragoman.cli.output import DIM, YELLOW, Output, say
from dragoman.cli.session import current_output, showing
from dragoman.model.json import Json, JsonObject, is_object

KINDS = ("request", "answer", "event", "card")
EXAMPLE = """'{"skill":"echo","input":{}}'"""


@click.command("translate", epilog=f"Example: dragoman translate platform a2a-0.3 {EXAMPLE}")
@click.argument("source", metavar="FROM", type=click.Choice(DIALECTS))
@click.argument("target", metavar="TO", type=click.Choice(DIALECTS))
@click.argument("file", metavar="[FILE|JSON]", default="-")
@click.option("--kind", type=click.Choice(KINDS), help="What it is; told by its shape when left away.")
@showing
def command(source: str, target: str, file: str, kind: str | None) -> None:
    """Put a message, answer, event or card into another dialect.

    FROM and TO are dialects. Without FILE the JSON is read from stdin. A request becomes what an agent of TO would be
    sent, an answer what a caller of TO would be answered, a card what the hub would serve.
    """
    output = current_output()
    body = _body(file)
    # msgspec takes longer to import than --help may take.
    from dragoman.dialects import DIALECTS as SPOKEN
    from dragoman.dialects.translation import Kind, translate
    from dragoman.model.errors import BadRequest, ContentRefused, DragomanError
    from dragoman.ports.clock import SystemClock

    named = None if kind is None else Kind(kind)
    try:
        made = translate(body, SPOKEN[source], SPOKEN[target], at=SystemClock().now(), kind=named)
    except DragomanError as error:
        message = error.message.rstrip(".")
        if isinstance(error, BadRequest) and not isinstance(error, ContentRefused):
            advice = f"check that it is {source}, or say what it is: --kind {'|'.join(KINDS)}"
            raise wrong_usage(message, next=advice, details=error.details or None) from None
        advice = f"{target} cannot carry it; dragoman translate {source} OTHER shows which dialects can"
        raise Fault(message, next=advice, code="NOT_CARRIED", details=error.details or None) from None
    losses = [{"facet": loss.facet, "becomes": loss.becomes} for loss in made.losses]
    if output.json:
        about: JsonObject = {"from": source, "to": target, "kind": made.kind.value, "body": made.body}
        if made.method is not None:
            about["request"] = {"method": made.method, "url": made.url}
        output.document({**about, "losses": losses})
        return
    output.document(made.body)
    _show_losses(output, target, losses)


def _show_losses(output: Output, target: str, losses: list[dict[str, str]]) -> None:
    if output.quiet or not losses:
        return
    width = max(len(loss["facet"]) for loss in losses)
    say(output.paint(f"{target} cannot say all of it:", YELLOW))
    for loss in losses:
        say(f"  {loss['facet'].ljust(width)}  {output.paint('→', DIM)} {loss['becomes']}")


def _body(name: str) -> JsonObject:
    """The JSON object in a file, on stdin, or in the argument itself. Raises Fault."""
    place = "stdin" if name == "-" else "the argument" if name.lstrip().startswith("{") else name
    try:
        text = sys.stdin.read() if name == "-" else name if place == "the argument" else Path(name).read_text("utf-8")
        body: Json = json.loads(text)
    except OSError as error:
        raise wrong_usage(f"{name} cannot be read: {error.strerror}", next="dragoman translate FROM TO FILE") from error
    except ValueError as error:
        raise wrong_usage(f"{place} is not JSON: {error}", next="check it") from error
    if not is_object(body):
        raise wrong_usage(f"{place} holds no JSON object", next="one message, answer, event or card at a time")
    return body
