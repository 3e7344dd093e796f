"""Names are API: the code, the manual, the dashboard and the alerts all use those of `names.py`, and no others."""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from dragoman.cli.entry import dragoman
from dragoman.hub.flow.pressure import LAG_BOUNDS_S
from dragoman.observe import names
from dragoman.observe.names import Kind, Metric

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = ROOT / "src/dragoman"
DEPLOY: Final = ROOT / "deploy"
GUIDE: Final = ROOT / "docs/guides/operations.md"
LEVELS: Final = {
    "exception": names.ERRORS,
    "error": names.ERRORS,
    "warning": names.WARNINGS,
    "info": names.INFOS,
}
# Where `message` is handed in: these are found where it is handed over.
HANDED_ON: Final = {("writer.py", "exception"), ("outbox.py", "warning"), ("noticed.py", "info")}
EVERYWHERE: Final = {"instance", "job", "le"}  # labels that Prometheus or the histogram itself brings
WORDS: Final = {
    *("sum", "max", "min", "by", "rate", "increase", "delta", "deriv", "avg_over_time", "histogram_quantile", "and"),
    *("time", "up"),
}

BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in names.METRICS}


def _series() -> dict[str, set[str]]:
    """Every series that a scrape can have, and its labels."""
    found: dict[str, set[str]] = {}
    for metric in names.METRICS:
        labels = {str(label) for label in metric.labels}
        if metric.kind is Kind.HISTOGRAM:
            found |= {f"{metric.name}{end}": labels for end in ("_bucket", "_count", "_sum")}
        else:
            found[metric.name] = labels
    return found


SERIES: Final = _series()


def alerts() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    return rules


def records() -> dict[str, str]:
    groups = yaml.safe_load((DEPLOY / "prometheus/recording.yml").read_text())["groups"]
    return {rule["record"]: rule["expr"] for rule in groups[0]["rules"]}


def queries() -> Iterator[tuple[str, str]]:
    """Every expression that is asked of Prometheus, and where it stands."""
    yield from ((f"alert {alert['alert']}", alert["expr"]) for alert in alerts())
    yield from ((f"rule {name}", expr) for name, expr in records().items())
    board = json.loads((DEPLOY / "grafana/dragoman.json").read_text())
    for panel in board["panels"]:
        yield from ((f"panel {panel['title']}", target["expr"]) for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"])
        assert found is not None
        yield f"variable {variable['name']}", f'{found[1]}{{{found[2]}=""}}'


def _checked(where: str, expr: str, series: dict[str, set[str]]) -> None:
    """Every name is a series, and every label one of those that the expression's series have."""
    known: set[str] = set(EVERYWHERE)
    bare = re.sub(r'"[^"]*"', '""', expr)
    for name in re.findall(
        r"(?<![\w:$\"])([a-z][\w:]*)(?=[{\[)\s]|$)(?!\s*\()", re.sub(r"by \([^)]*\)|\{[^}]*\}", "{", bare)
    ):
        if name in WORDS:
            continue
        assert name in series, f"{where}: {name} is no metric"
        known |= series[name]
    labels = [label.strip() for group in re.findall(r"by \(([^)]*)\)", bare) for label in group.split(",")]
    labels += [label for group in re.findall(r"\{([^}]*)\}", bare) for label in re.findall(r"(\w+)\s*[=!]", group)]
    assert {*labels} <= known, f"{where}: {labels}"


@pytest.mark.parametrize(("where", "expr"), [*queries()], ids=lambda value: value if len(value) < 50 else "")
def test_dashboard_rules_and_alerts_ask_for_what_there_is(where: str, expr: str) -> None:
    made = {name: {"target_id", "status", "instance"} for name in records()}
    _checked(where, expr, {**SERIES, **made})


def test_the_check_finds_a_metric_and_a_label_that_are_not_there() -> None:
    for expr in ('rate(a2a_calls_made_total{status="failed"}[5m])', "sum by (tenant) (rate(a2a_calls_total[5m])) > 1"):
        with pytest.raises(AssertionError):
            _checked("here", expr, SERIES)


def test_every_metric_is_on_the_dashboard() -> None:
    shown = (DEPLOY / "grafana/dragoman.json").read_text()
    assert [metric.name for metric in names.METRICS if metric.name not in shown] == []


def test_the_manual_has_every_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| `([a-z0-9_]+)` \| (\w+) \| ([^|]*) \|", GUIDE.read_text(), re.MULTILINE)
    told = {name: (kind, labels.strip()) for name, kind, labels in rows}
    assert told == {metric.name: (str(metric.kind), ", ".join(metric.labels)) for metric in names.METRICS}


def test_every_alert_has_its_section_in_the_manual_and_a_command_that_exists() -> None:
    sections = re.findall(r"^### (\w+)$", GUIDE.read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in alerts()]
    for alert in alerts():
        notes = alert["annotations"]
        assert notes["runbook"] == f"docs/guides/operations.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in ("page", "ticket")
        words = shlex.split(notes["command"].replace("{{ $labels.target_id }}", "AGENT"))[1:]
        group: click.Command = dragoman
        context = click.Context(dragoman, info_name="dragoman", resilient_parsing=True)
        while isinstance(group, click.Group):
            command = group.get_command(context, words.pop(0))
            assert command is not None, notes["command"]
            group, context = command, click.Context(command, parent=context, info_name=command.name)
        group.make_parser(context).parse_args(words)


def test_the_compose_file_names_files_that_are_there() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    mounted = [volume.split(":")[0] for each in compose["services"].values() for volume in each["volumes"]]
    for source in (each for each in mounted if each.startswith("./")):
        assert (DEPLOY / source).exists(), source
    rules = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["rule_files"]
    assert all((DEPLOY / "prometheus" / each).exists() for each in rules)


def _written() -> Iterator[tuple[str, str, str]]:
    """Every log line in the hub's code: file, level, message. Agents and commands have logs of their own."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] in ("sdk", "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and re.search(r"(?i)\blog$", ast.unparse(node.func.value).replace("_", " ").strip())
            ):
                yield path.name, node.func.attr, ast.unparse(node.args[0])


def test_every_message_of_a_log_line_stands_in_names_py_at_its_level() -> None:
    for file, level, message in _written():
        if (file, level) in HANDED_ON:
            continue
        words = (
            getattr(names, message.removeprefix("names.")) if message.isupper() or message.startswith("names.") else ""
        )
        assert (words or ast.literal_eval(message)) in LEVELS[level], f"{file}: {message} is not in observe/names.py"


def test_names_py_has_no_message_that_nobody_writes() -> None:
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "names.py")
    constants = {value: name for name, value in vars(names).items() if isinstance(value, str)}
    for message in names.ERRORS | names.WARNINGS | names.INFOS:
        named = constants.get(message)
        started = message.startswith("a callback is ")  # and then how it stands
        assert started or message in source or (named is not None and named in source), message


def test_the_loops_delay_is_counted_in_the_buckets_that_are_shown() -> None:
    assert names.LOOP_LAG.bounds == LAG_BOUNDS_S
