"""The tables of `docs/dialects` that say what a dialect cannot: made from what it declares, so that they are true.

`python -m tests.dialects.manual` writes them anew, between the heading and the next one.
"""

from pathlib import Path
from typing import Final

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect

PAGES: Final = Path(__file__).parents[2] / "docs" / "dialects"
HEADING: Final = "## What is lost\n"
_INTRODUCTION: Final = (
    "What the hub can say and this dialect cannot. What stands in `metadata.dragoman` another hub reads back.\n"
)


def page_of(dialect: Dialect) -> Path:
    """A dialect's page of the manual."""
    return PAGES / f"{dialect.slug}.md"


def table_of(dialect: Dialect) -> str:
    """What a dialect declares as lost, what becomes the same on one line."""
    rows: dict[str, list[str]] = {}
    for loss in dialect.losses:
        rows.setdefault(loss.becomes, []).append(f"`{loss.facet}`")
    lines = [f"| {', '.join(facets)} | {becomes} |" for becomes, facets in rows.items()]
    return "\n".join((_INTRODUCTION + "| of the model | becomes |", "|---|---|", *lines)) + "\n"


def section_of(page: str) -> str:
    """What stands below the heading, up to the next one."""
    _, found, rest = page.partition(HEADING)
    assert found, f"there is no {HEADING!r}"
    return rest.partition("\n## ")[0].strip() + "\n"


def rewrite() -> None:
    """Put the tables as they are now into the pages."""
    for dialect in DIALECTS.values():
        path = page_of(dialect)
        before, found, rest = path.read_text().partition(HEADING)
        _, following, after = rest.partition("\n## ") if found else ("", "", "")
        page = f"{before.rstrip()}\n\n{HEADING}{table_of(dialect)}"
        path.write_text(f"{page}\n## {after}" if following else page)


if __name__ == "__main__":
    rewrite()
