"""Lists: the options they share, and one page of what the hub holds, as rows or as a document.

The hub has one order for each list; --sort puts what is shown into another.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import click

from dragoman.cli.fault import wrong_usage
from dragoman.cli.find import pages
from dragoman.cli.output import Output
from dragoman.cli.session import current_hub
from dragoman.cli.table import Column, show_rows
from dragoman.model.json import Json, JsonObject

Decorated = TypeVar("Decorated", bound=Callable[..., object])
Ending = Callable[[Sequence[JsonObject]], str | None]
SORT: Final = "dragoman.cli.sort"


def paged(limit: int) -> Callable[[Decorated], Decorated]:
    """The options of a list: at most how many, from where on, in which order, and which fields."""

    def decorate(function: Decorated) -> Decorated:
        function = click.option(
            "--sort", metavar="[-]A", expose_value=False, callback=_keep_sort,
            help="Order what is shown by a field; with - the largest first.",
        )(function)  # fmt: skip
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
    found = _sorted(found, click.get_current_context().meta.get(SORT))
    if output.json:
        output.document({"items": found, "next_cursor": following})
        return
    show_rows(output, found, picked)
    note = f"more: --cursor {following}" if following else ending(found)
    if note:
        output.note(note)


def _keep_sort(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[SORT] = value


def _sorted(found: list[JsonObject], sort: object) -> list[JsonObject]:
    """In the order of a field; what has none of it comes last. Raises Fault for a field that nothing has."""
    if not isinstance(sort, str):
        return found
    name = sort.removeprefix("-")
    if found and not any(name in item for item in found):
        raise wrong_usage(f"no field {name!r} to sort by", next=f"--sort {', '.join(found[0])}")
    having = [item for item in found if item.get(name) is not None]
    having.sort(key=lambda item: _rank(item[name]), reverse=sort.startswith("-"))
    return having + [item for item in found if item.get(name) is None]


def _rank(value: Json) -> tuple[bool, float, str]:
    """Numbers by size and before texts; anything else by how it is written."""
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, "" if number else str(value))
