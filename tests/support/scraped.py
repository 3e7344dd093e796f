"""What a hub's /metrics says, read by the official parser, and how to ask it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as open_parser
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from tests.support.hub import HubProcess

OPEN: Final = {"Accept": "application/openmetrics-text; version=1.0.0"}


def parse_open(text: str) -> list[Metric]:
    """OpenMetrics, as the official parser reads it."""
    parse: Callable[[str], Iterable[Metric]] = getattr(open_parser, "text_string_to_metric_families")  # noqa: B009 - it has no types
    return list(parse(text))


class Scraped:
    """One scrape."""

    def __init__(self, hub: HubProcess) -> None:
        reply = hub.get("/metrics")
        assert reply.status == 200, reply.body
        self.text = reply.body.decode()
        self.families = {family.name: family for family in parse_plain(self.text)}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The sum of all series of a name that have these labels."""
        return sum(each.value for each in self.samples if each.name == name and labels.items() <= each.labels.items())

    def series(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """All series of a name."""
        return [(each.labels, each.value) for each in self.samples if each.name == name]

    def ended(self, target: str) -> dict[str, float]:
        """How often calls of a target ended, by their status."""
        found = [
            (labels["status"], value)
            for labels, value in self.series("a2a_calls_total")
            if labels["target_id"] == target
        ]
        return dict(found)


def exemplars(hub: HubProcess, name: str, **labels: str) -> list[Any]:
    """The exemplars of a metric's series with these labels."""
    text = hub.get("/metrics", OPEN).body.decode()
    families = parse_open(text)
    samples = [sample for family in families if family.name == name for sample in family.samples]
    return [each.exemplar for each in samples if each.exemplar and labels.items() <= each.labels.items()]
