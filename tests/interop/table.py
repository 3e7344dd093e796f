"""The table of all pairs: printed at the end of a run, and written as a page where `--interop-page` names one.

A test notes its pairs with the fixture `note_pair`; xdist carries them.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.interop.frameworks import CLIENTS, SERVERS, Framework

PROPERTY: Final = "interop"
PAIRS_KEY: Final = pytest.StashKey["Pairs"]()
INTRODUCTION: Final = """\
# Interoperability

Every client of eight frameworks at every agent of eleven: one text message, once through the hub and once without it.
The hub is told nothing of an agent but its URL, and a client nothing but the agent's address at the hub. A pair works
when the client gives its user the agent's answer, whole and once. Clients run as their frameworks have them by default.

The frameworks are the real ones, unmodified, in the versions named here, each in an environment of its own. Their
models are fakes that say what they heard; nothing needs a key. The programs are `tests/peers/interop_*.py`.
"""
ADDENDUM: Final = """\
Not measured: files, questions and answers, cancelling, push, authentication, bindings other than JSON-RPC, frameworks
of other languages. Those are tested with the A2A SDKs, with stubs of what these frameworks do on the wire
(`tests/support/quirks`), and in TypeScript.

pydantic-ai is served by fasta2a, whose client stands for it. google-adk's client is read as its documentation shows,
piece by piece; its own session keeps no more than the last piece of a streamed artifact, with a hub and without.

LangGraph, CrewAI and python-a2a are here as agents alone. `langgraph dev` has no client. python-a2a's client has a
format of its own that is no version of A2A. CrewAI's adds up every text that it hears, with a space between the pieces
of a stream: it gets its answers through the hub, but not always as they were said.
"""

Note = Callable[[Framework, Framework, str, str], None]


class Pair(msgspec.Struct, frozen=True):
    """What went wrong between a client and a server, without the hub and with it; empty where nothing did."""

    server: str
    client: str
    direct: str
    through: str


class Pairs:
    """The pairs of a run; registered as a plugin, so that it hears every report."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Pair] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what one test noted."""
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, str):
                pair = Pair(*json.loads(value))
                self.found[pair.server, pair.client] = pair

    @property
    def complete(self) -> bool:
        """Whether every pair is there."""
        return len(self.found) == len(SERVERS) * len(CLIENTS)


@pytest.fixture
def note_pair(request: pytest.FixtureRequest) -> Note:
    """`note_pair(server, client, direct, through)`: add to the table."""

    def note(server: Framework, client: Framework, direct: str, through: str) -> None:
        told = json.dumps([server.name, client.name, direct, through])
        request.node.user_properties.append((PROPERTY, told))

    return note


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the page goes."""
    parser.getgroup("selection").addoption("--interop-page", metavar="FILE", help="write the table of frameworks there")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to listen."""
    pairs = config.stash[PAIRS_KEY] = Pairs()
    config.pluginmanager.register(pairs, "interop-pairs")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the tables, if anything was noted, and write the page, if everything was."""
    pairs = config.stash[PAIRS_KEY]
    if not pairs.found:
        return
    terminalreporter.section("interoperability")
    for line in body(pairs.found).splitlines():
        terminalreporter.write_line(line)
    file = config.getoption("--interop-page")
    if file and pairs.complete:
        Path(file).write_text(page(pairs.found, datetime.now(UTC)))
    elif file:
        terminalreporter.write_line(f"{file} is as it was: not every pair was measured")


def page(found: dict[tuple[str, str], Pair], at: datetime) -> str:
    """The whole page."""
    when = f"Measured on {at:%Y-%m-%d} by `scripts/interop`, which writes this page.\n"
    return "\n".join([INTRODUCTION, when, body(found), ADDENDUM])


def body(found: dict[tuple[str, str], Pair]) -> str:
    """Both tables, and what went wrong."""
    faults = sorted({fault for each in found.values() for fault in (each.direct, each.through) if fault})
    through, direct = (
        _table({place: getattr(pair, way) for place, pair in found.items()}, faults) for way in ("through", "direct")
    )
    parts = ["## Through the hub", through, "## Without it", direct]
    if faults:
        shown = [fault.replace("`", "'") for fault in faults]
        said = "\n".join(f"{number}. `{fault}`" for number, fault in enumerate(shown, 1))
        parts += ["What the numbers stand for, in the clients' own words:", said]
    return "\n\n".join(parts) + "\n"


def _table(faults: dict[tuple[str, str], str], numbered: list[str]) -> str:
    clients, servers = [each.name for each in CLIENTS], [each.name for each in SERVERS]
    rows = [["agent ↓ client →", *clients], ["---"] * (len(clients) + 1)]
    for server in servers:
        seen = [faults.get((server, client)) for client in clients]
        if any(each is not None for each in seen):
            rows.append([server, *("" if each is None else _cell(each, numbered) for each in seen)])
    working = sum(fault == "" for fault in faults.values())
    return f"{working} of {len(faults)} pairs work.\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(fault: str, numbered: list[str]) -> str:
    return f"no: {numbered.index(fault) + 1}" if fault else "yes"
