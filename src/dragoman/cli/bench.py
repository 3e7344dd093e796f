"""`dragoman bench`: load on a hub of this machine, and what it makes of it.

Only loopback: nobody's hub is put under load by mistake. The load runs on the same machine and takes its share of it;
the figures are for comparing settings, agents and versions with each other.
"""

import sys
from typing import TYPE_CHECKING, Final

import click

from dragoman.cli.calls.skill import input_schema, target_of
from dragoman.cli.completion import agents, skills
from dragoman.cli.fault import Exit, wrong_usage
from dragoman.cli.inputs import read_input
from dragoman.cli.output import Output
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.table import show_facts
from dragoman.cli.times import DURATION
from dragoman.sdk.client.settings import is_loopback

if TYPE_CHECKING:
    from dragoman.cli.load import Figures
    from dragoman.model.json import JsonObject

MOST_AT_ONCE: Final = 256
LONGEST_S: Final = 600.0


@click.command("bench", epilog="Example: dragoman bench --skill echo --input text=hi -c 4 -d 200ms")
@click.option("--agent", metavar="ID", shell_complete=agents, help="The agent. [default: the best that has the skill]")
@click.option("--skill", required=True, metavar="SKILL", shell_complete=skills, help="The skill to call.")
@click.option("--input", "given", multiple=True, metavar="K=V|@FILE|-", help="Its input, as for dragoman call.")
@click.option("--text", metavar="TEXT", help="A text, for skills that take one.")
@click.option("-c", "at_once", type=click.IntRange(1, MOST_AT_ONCE), default=16, show_default=True, help="At once.")
@click.option("-d", "seconds", type=DURATION, default="10s", show_default=True, help="For how long.")
@click.option("--stream", is_flag=True, help="Stream each call.")
@common
def command(
    agent: str | None,
    skill: str,
    given: tuple[str, ...],
    text: str | None,
    at_once: int,
    seconds: float,
    stream: bool,
) -> int:
    """Put load on a hub of this machine and measure it."""
    output = current_output()
    hub = current_hub(output)
    if not is_loopback(hub.url):
        raise wrong_usage(f"bench is for a hub of this machine, not for {hub.url}", next="--hub http://127.0.0.1:8700")
    if not 0 < seconds <= LONGEST_S:
        raise wrong_usage("-d is more than nothing and at most 10m", next="-d 10s")
    agent_id, card = target_of(hub, agent, skill)
    schema = input_schema(card, skill)
    value = read_input(given, text, schema, advice=f"dragoman agents show {card.get('id') or agent_id}")
    body: JsonObject = {"skill": skill, "input": value}
    if agent_id is not None:
        body["target_agent_id"] = agent_id
    # Brings the HTTP client.
    from dragoman.cli.load import put_load

    shown = sys.stderr.isatty() and not output.quiet and not output.json
    with click.progressbar(length=100, label="measuring", file=sys.stderr, hidden=not shown) as bar:
        figures = put_load(
            hub.http(), body, at_once, seconds, lambda share: bar.update(round(share * 100) - bar.pos), stream=stream
        )
    _show(output, figures, at_once)
    return Exit.DONE if figures.calls else Exit.FAILED


def _show(output: Output, figures: "Figures", at_once: int) -> None:
    facts: JsonObject = {
        "calls": figures.calls,
        "seconds": round(figures.seconds, 3),
        "at_once": at_once,
        "calls_per_s": round(figures.calls / figures.seconds, 1) if figures.seconds else 0.0,
        "p50_ms": figures.quantile(0.5),
        "p99_ms": figures.quantile(0.99),
        "hub_overhead_ms": figures.overhead_ms,
        "errors": sum(figures.errors.values()),
    }
    if output.json:
        output.document({**facts, "error_codes": dict(figures.errors)})
        return
    show_facts(output, {name.replace("_", " "): value for name, value in facts.items()})
    for code, count in figures.errors.items():
        output.note(f"{count} x {code}")
