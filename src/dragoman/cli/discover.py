"""`dragoman discover [SKILL]`: agents that fit, best first."""

from typing import Final

import click

from dragoman.cli.completion import skills
from dragoman.cli.find import did_you_mean, pages, skills_of
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.table import Column, Kind, show_rows
from dragoman.cli.times import DURATION
from dragoman.model.json import JsonObject

COLUMNS: Final = (
    Column("id", "id", Kind.ID),
    Column("name", "name"),
    Column("skills", "skills"),
    Column("rating", "rating", Kind.NUMBER),
    Column("p95 ms", "response_time_p95_ms", Kind.NUMBER),
    Column("available", "availability", Kind.NUMBER),
    Column("dialect", "dialect", Kind.STATE),
    Column("state", "status", Kind.STATE),
)
DIALECTS: Final = ("envelope", "platform", "dotted", "directory", "agentvault", "a2a-0.3", "a2a-1.0")


@click.command("discover", epilog="Example: dragoman discover summarize --min-rating 4")
@click.argument("skill", required=False, shell_complete=skills)
@click.option("--q", metavar="WORDS", help="Words in names, descriptions and skills.")
@click.option("--tag", metavar="TAG", help="A tag it has.")
@click.option("--capability", metavar="NAME", help="A capability it has, such as streaming.")
@click.option("--dialect", type=click.Choice((*DIALECTS, "mcp")), help="What it speaks.")
@click.option("--status", metavar="STATE", help="Its state, such as active.")
@click.option("--min-rating", type=click.FloatRange(0, 5), metavar="1-5", help="At least this rating.")
@click.option("--max-p95", "max_p95_s", type=DURATION, metavar="2s", help="95 of 100 calls are this quick.")
@click.option("--min-availability", type=click.FloatRange(0, 1), metavar="0-1", help="At least this share of time.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many.")
@click.option("--cursor", metavar="CURSOR", help="Where an earlier page ended.")
@common
def command(
    skill: str | None,
    q: str | None,
    tag: str | None,
    capability: str | None,
    dialect: str | None,
    status: str | None,
    min_rating: float | None,
    max_p95_s: float | None,
    min_availability: float | None,
    limit: int,
    cursor: str | None,
) -> None:
    """Find agents, best first."""
    output = current_output()
    hub = current_hub(output)
    asked = {
        "skill": skill,
        "q": q,
        "tag": tag,
        "capability": capability,
        "dialect": dialect,
        "status": status,
        "min_rating": min_rating,
        "max_p95_ms": None if max_p95_s is None else round(max_p95_s * 1000),
        "min_availability": min_availability,
        "cursor": cursor,
    }
    query = {name: str(value) for name, value in asked.items() if value is not None}
    found, following = pages(hub, "/v1/a2a/discover", query, items="agents", limit=limit)
    if output.json:
        output.document({"items": found, "next_cursor": following})
        return
    show_rows(output, found, COLUMNS)
    if not found:
        everybody, _ = pages(hub, "/v1/a2a/discover", {}, items="agents", limit=limit)
        output.note(_nobody(skill, everybody))
    elif following:
        output.note(f"more: --cursor {following}")


def _nobody(skill: str | None, everybody: list[JsonObject]) -> str:
    if not everybody:
        return "no agent is registered\nnext: dragoman register URL"
    near = did_you_mean(skill, skills_of(everybody)) if skill else ""
    return f"no agent fits{near}"
