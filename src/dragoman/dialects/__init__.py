"""How each protocol says it: one folder each, pure, around the canonical model. This is the list of them.

Who installs a package with an entry point `dragoman.dialects` adds one: it names a `Dialect`, and a hub speaks it from
its next start on.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final

from dragoman.dialects import a2a_v03, a2a_v10, agentvault, directory, dotted, envelope, mcp, platform
from dragoman.dialects.dialect import Dialect

ENTRY_POINTS: Final = "dragoman.dialects"

# In the order in which a card's shape is tried: the most telling key first, the shape without one last.
DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.slug: dialect
    for dialect in (
        a2a_v10.DIALECT,
        a2a_v03.DIALECT,
        agentvault.DIALECT,
        envelope.DIALECT,
        directory.DIALECT,
        platform.DIALECT,
        dotted.DIALECT,
    )
}


def spoken(*, lenient_envelope_ids: bool) -> Mapping[str, Dialect]:
    """The dialects of one hub, by its settings and by what is installed; with that of MCP, whose servers are called.

    Raises TypeError, ValueError for an installed one that is none, or that has the name of another.
    """
    own = dict(DIALECTS)
    if lenient_envelope_ids:
        own[envelope.DIALECT.slug] = envelope.make_dialect(lenient_ids=True)
    own[mcp.DIALECT.slug] = mcp.DIALECT
    # Nearly every card has what dotted asks for, so that is asked last.
    last = own.pop(dotted.DIALECT.slug)
    for dialect in _installed():
        if dialect.slug in own or dialect.slug == last.slug:
            raise ValueError(f"There are two dialects {dialect.slug!r}: one of them is installed as {ENTRY_POINTS}.")
        own[dialect.slug] = dialect
    return {**own, last.slug: last}


def _installed() -> list[Dialect]:
    found: list[Dialect] = []
    for entry in sorted(entry_points(group=ENTRY_POINTS)):
        loaded: object = entry.load()
        if not isinstance(loaded, Dialect):
            raise TypeError(f"{entry.value}, installed as {ENTRY_POINTS}, is no Dialect.")
        found.append(loaded)
    return found
