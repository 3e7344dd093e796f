"""Count the requirements that tests prove.

A test claims rules with `@pytest.mark.req("P-17", "X-19")`. A rule is met when at least one test that claims it passed
and none that claims it failed. An id that is not in ledger.txt fails the collection of its file. The end of the run
shows `met/total` per section and, for a run of the whole suite, the rules that are not met.

Does not judge whether a test really proves its rule: a reader does.

    worker      item.user_properties: ("req", id)
    controller  reports → Outcomes → summary       xdist carries user_properties, so only this end counts
"""

import json
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest

LEDGER: Final = Path(__file__).with_name("ledger.txt")
PROPERTY: Final = "req"
LINE_WIDTH: Final = 110


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of the ledger."""

    id: str
    section: str
    text: str


class Outcomes:
    """What the tests of this run said about each id; registered as a plugin, so that it hears every report."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase (setup, call, teardown) of one test into account."""
        ids = {value for name, value in report.user_properties if name == PROPERTY and isinstance(value, str)}
        if report.failed:
            self.failed |= ids
        elif report.when == "call" and report.passed:
            self.passed |= ids

    def save(self, path: Path) -> None:
        """Write them for a later run to add to its own."""
        path.write_text(json.dumps({"passed": sorted(self.passed), "failed": sorted(self.failed)}))

    def add(self, path: Path) -> None:
        """Take over what an earlier run saved."""
        earlier = msgspec.json.decode(path.read_bytes(), type=dict[str, set[str]])
        self.passed |= earlier["passed"]
        self.failed |= earlier["failed"]

    @property
    def met(self) -> frozenset[str]:
        """Ids with a passing test and no failing one."""
        return frozenset(self.passed - self.failed)


LEDGER_KEY: Final = pytest.StashKey[Mapping[str, Requirement]]()
OUTCOMES_KEY: Final = pytest.StashKey[Outcomes]()


def read_ledger(path: Path) -> dict[str, Requirement]:
    """The rules by id, in the order of the file: `[Section]` lines, then `ID text` lines; `#` begins a comment."""
    found: dict[str, Requirement] = {}
    section = ""
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        identifier, _, text = line.partition(" ")
        if identifier in found:
            raise pytest.UsageError(f"{path}: requirement {identifier} stands there twice.")
        found[identifier] = Requirement(id=identifier, section=section, text=text)
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the ledger is, how much of it to show, and how two runs add up."""
    group = parser.getgroup("requirements")
    group.addoption("--ledger", type=Path, default=LEDGER, help="file of requirements")
    group.addoption(
        "--ledger-show", choices=("auto", "counts", "list"), default="auto", help="auto: list on whole runs"
    )
    group.addoption("--ledger-save", type=Path, help="write the outcomes there instead of showing them")
    group.addoption("--ledger-add", type=Path, help="count the outcomes saved there too")


def pytest_configure(config: pytest.Config) -> None:
    """Announce the marker and read the ledger."""
    config.addinivalue_line("markers", "req(*ids): the requirements that this test proves")
    config.stash[LEDGER_KEY] = read_ledger(Path(str(config.getoption("--ledger"))))
    config.stash[OUTCOMES_KEY] = outcomes = Outcomes()
    config.pluginmanager.register(outcomes, "requirement-outcomes")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the collection of a file whose tests claim what the ledger does not have."""
    report = yield
    ledger = collector.config.stash[LEDGER_KEY]
    items = [found for found in report.result or () if isinstance(found, pytest.Item)]
    wrong = [complaint for item in items for complaint in complaints(item, ledger)]
    if wrong:
        report.outcome = "failed"
        report.longrepr = "\n".join(wrong)
        report.result = []
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let the ids travel with the test's reports."""
    item.user_properties.extend((PROPERTY, identifier) for identifier in dict.fromkeys(claimed(item)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the ledger, or save it for the run that will."""
    outcomes = config.stash[OUTCOMES_KEY]
    earlier: Path | None = config.getoption("--ledger-add")
    if earlier is not None and earlier.exists():
        outcomes.add(earlier)
    target: Path | None = config.getoption("--ledger-save")
    if target is not None:
        outcomes.save(target)
        return
    show = str(config.getoption("--ledger-show"))
    narrowed = config.getoption("keyword") or config.getoption("markexpr")
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not narrowed
    listed = show == "list" or (show == "auto" and whole)
    terminalreporter.section("requirements")
    for line in summary(config.stash[LEDGER_KEY].values(), outcomes, listed=listed):
        terminalreporter.line(line)


def claimed(item: pytest.Item) -> list[str]:
    """The ids that a test names, on itself, its class or its file."""
    return [str(identifier) for mark in item.iter_markers(PROPERTY) for identifier in mark.args]


def complaints(item: pytest.Item, ledger: Mapping[str, Requirement]) -> list[str]:
    """One sentence for each thing wrong with a test's claims."""
    empty = [
        f"{item.nodeid}: the mark 'req' names no requirement."
        for mark in item.iter_markers(PROPERTY)
        if not mark.args or mark.kwargs
    ]
    unknown = [
        f"{item.nodeid} claims requirement {identifier!r}, which is not in the ledger."
        for identifier in claimed(item)
        if identifier not in ledger
    ]
    return empty + unknown


def summary(ledger: Iterable[Requirement], outcomes: Outcomes, *, listed: bool) -> list[str]:
    """The closing lines: met of total per section and together, then what is not met."""
    rules = list(ledger)
    met = outcomes.met
    sections: dict[str, list[Requirement]] = {}
    for rule in rules:
        sections.setdefault(rule.section, []).append(rule)
    counts = [f"{name} {sum(rule.id in met for rule in each)}/{len(each)}" for name, each in sections.items()]
    lines = ["  ".join([*counts, f"together {sum(rule.id in met for rule in rules)}/{len(rules)}"])]
    broken = [rule for rule in rules if rule.id in outcomes.failed]
    if broken:
        lines += ["a test of these failed:", *map(shortened, broken)]
    missing = [rule for rule in rules if rule.id not in met and rule.id not in outcomes.failed]
    if listed and missing:
        lines += ["no passing test yet:", *map(shortened, missing)]
    return lines


def shortened(rule: Requirement) -> str:
    """The rule on one line of a terminal."""
    line = f"  {rule.id} {rule.text}"
    return line if len(line) <= LINE_WIDTH else line[: LINE_WIDTH - 1] + "…"
