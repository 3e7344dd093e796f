"""Lists: the options they share, and one page of what the hub holds, as rows or as a document."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from dragoman.cli.find import pages
from dragoman.cli.output import Output
from dragoman.cli.session import current_hub
from dragoman.cli.table import Column, show_rows
from dragoman.model.json import JsonObject

Decorated = TypeVar("Decorated", bound=Callable[..., object])
Ending = Callable[[Sequence[JsonObject]], str | None]


def paged(limit: int) -> Callable[[Decorated], Decorated]:
    """The options of a list: at most how many, from where on, and which fields."""

    def decorate(function: Decorated) -> Decorated:
        function = click.option("--columns", metavar="A,B,C", help="The fields to show.")(function)
        function = click.option("--cursor", metavar="CURSOR", help="Where an earlier page ended.")(function)
        return click.option(
            "--limit", type=click.IntRange(1, 1000), default=limit, show_default=True, help="At most so many."
        )(function)

    return decorate


def show_page(
    output: Output,
    path: str,
    query: Mapping[str, str | None],
    picked: Sequence[Column],
    *,
    limit: int,
    ending: Ending = lambda _: None,
) -> None:
    """Ask for what fits the query and show it. `ending` is what is noted about the last page, if anything is."""
    asked = {name: value for name, value in query.items() if value}
    found, following = pages(current_hub(output), path, asked, limit=limit)
    if output.json:
        output.document({"items": found, "next_cursor": following})
        return
    show_rows(output, found, picked)
    note = f"more: --cursor {following}" if following else ending(found)
    if note:
        output.note(note)
