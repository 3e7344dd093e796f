"""Rows: a table on a terminal, tab-separated values in a pipe, one JSON document with --json.

On a narrow terminal texts are cut at their end and ids in their middle; nothing is ever wrapped. Piped values are
whole: full ids, ISO times, no colour.
"""

import enum
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from dragoman.cli.fault import wrong_usage
from dragoman.cli.limits import in_a_line
from dragoman.cli.output import BOLD, DIM, GREEN, RED, YELLOW, Output, one_line, visible
from dragoman.cli.times import ago
from dragoman.model.json import Json, JsonObject, is_array, is_object

GAP: Final = 2
STATE_STYLES: Final = {
    "active": GREEN, "registered": GREEN, "paused": YELLOW, "unreachable": RED, "removed": DIM,
    "completed": GREEN, "failed": RED, "rejected": RED, "canceled": DIM, "input-required": YELLOW,
    "auth-required": YELLOW,
}  # fmt: skip


class Kind(enum.Enum):
    """How a value is shown and which end gives way."""

    TEXT = "text"
    ID = "id"
    NUMBER = "number"
    TIME = "time"
    STATE = "state"
    LIMITS = "limits"


NARROWEST: Final = {Kind.TEXT: 8, Kind.LIMITS: 8, Kind.ID: 11}
# Down to here each gives way before anything else does: an agent's id can still be read, and typed.
COMFORTABLE: Final = {Kind.TEXT: 12, Kind.LIMITS: 12, Kind.ID: 20}


class Column(NamedTuple):
    """One column: its heading, the field it shows, and how."""

    title: str
    field: str
    kind: Kind = Kind.TEXT


def chosen(columns: Sequence[Column], shown: Sequence[str], wanted: str | None) -> list[Column]:
    """The columns of --columns a,b,c, or those shown when nothing is said. Raises Fault for an unknown one."""
    by_field = {column.field: column for column in columns}
    names = [name.strip() for name in wanted.split(",")] if wanted else list(shown)
    unknown = [name for name in names if name not in by_field]
    if unknown:
        raise wrong_usage(f"no column {unknown[0]!r}", next=f"--columns {','.join(by_field)}")
    return [by_field[name] for name in names]


def show_rows(output: Output, rows: Sequence[JsonObject], columns: Sequence[Column]) -> None:
    """Print the rows: with headings on a terminal, tab-separated without them in a pipe."""
    if not output.human:
        for row in rows:
            print("\t".join(one_line(plain(row.get(column.field))) for column in columns))
        return
    now = _now()
    cells = [[_human(row.get(column.field), column.kind, now) for column in columns] for row in rows]
    _show_table(output, columns, cells)


def show_facts(output: Output, facts: Mapping[str, Json], times: Iterable[str] = ()) -> None:
    """Print names and values: aligned on a terminal, tab-separated in a pipe; absent ones are left out."""
    there = {name: value for name, value in facts.items() if value not in (None, "", [], ())}
    if not output.human:
        for name, value in there.items():
            print(f"{name}\t{one_line(plain(value))}")
        return
    width = max(map(len, there), default=0)
    moments = set(times)
    now = _now()
    for name, value in there.items():
        shown = _human(value, Kind.TIME if name in moments else Kind.TEXT, now)
        print(f"{output.paint(name.ljust(width), DIM, sys.stdout)}  {shown}")


def plain(value: Json) -> str:
    """A JSON value as the text of one field."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _ if is_array(value):
            return ",".join(plain(one) for one in value)
        case _ if is_object(value):
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def shortened(text: str, width: int) -> str:
    """An id cut in its middle: both ends tell it apart from others."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def within_terminal(line: str) -> str:
    """A line cut where the terminal ends."""
    wide = shutil.get_terminal_size().columns
    return line if len(line) <= wide else f"{line[: wide - 1]}…"


def _now() -> datetime:
    # Brings asyncio: only for people, who read "3 min ago".
    from dragoman.ports.clock import SystemClock

    return SystemClock().now()


def _human(value: Json, kind: Kind, now: datetime) -> str:
    if kind is Kind.TIME and isinstance(value, str):
        return ago(value, now)
    if kind is Kind.LIMITS:
        return in_a_line(value)
    if is_array(value):
        return visible(", ".join(one_line(plain(one)) for one in value))
    return visible(one_line(plain(value)))


def _show_table(output: Output, columns: Sequence[Column], cells: list[list[str]]) -> None:
    # Takes 50 ms to import: only where a table is really drawn.
    from rich.cells import cell_len, set_cell_size
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    wide = shutil.get_terminal_size().columns
    natural = [max([len(c.title), *(cell_len(row[i]) for row in cells)]) for i, c in enumerate(columns)]
    widths = _fitted(natural, [column.kind for column in columns], wide)
    colored = output.colored(sys.stdout)
    console = Console(file=sys.stdout, width=wide, no_color=not colored, force_terminal=colored, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=True, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        right = column.kind is Kind.NUMBER
        table.add_column(column.title, width=width, no_wrap=True, justify="right" if right else "left")
    for row in cells:
        shown: list[Text] = []
        for text, column, width in zip(row, columns, widths, strict=True):
            if cell_len(text) > width:
                cut = (
                    shortened(text, width) if column.kind is Kind.ID else set_cell_size(text, width - 1).rstrip() + "…"
                )
            else:
                cut = text
            style = STATE_STYLES.get(text) if column.kind is Kind.STATE else None
            shown.append(Text(cut, style=_RICH_STYLES.get(style or "", "")))
        table.add_row(*shown)
    console.print(table)


_RICH_STYLES: Final = {GREEN: "green", RED: "red", YELLOW: "yellow", DIM: "dim", BOLD: "bold"}


def _fitted(natural: Sequence[int], kinds: Sequence[Kind], wide: int) -> list[int]:
    """Widths that fit: the widest text or id gives way first; numbers, times and states never do."""
    widths = list(natural)
    for least in (COMFORTABLE, NARROWEST):
        while sum(widths) + GAP * (len(widths) - 1) > wide:
            giving = [i for i, kind in enumerate(kinds) if widths[i] > least.get(kind, widths[i])]
            if not giving:
                break
            widths[max(giving, key=lambda i: widths[i])] -= 1
    return widths
