"""Durations and times: as people type them, and as people read them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# From the largest down: the first that fits once is the unit of "… ago".
_AGES: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


class Duration(click.ParamType[float]):
    """`500ms`, `30s`, `5m`, `2h` or `7d`, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; refuses anything without a unit, because 30 could be either."""
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no duration; write 500ms, 30s, 5m, 2h or 7d", param, ctx)
        return float(found[1]) * SECONDS[found[2]]


DURATION: Final = Duration()


def moment(text: object) -> datetime | None:
    """An ISO 8601 time of the hub; None for anything else. Without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def since_time(text: str | None) -> str | None:
    """A time as the hub takes it, from a duration back from now, or a time."""
    if text is None:
        return None
    at = moment(text)
    if at is None:
        # Only here is the time of day needed.
        from dragoman.ports.clock import SystemClock

        at = SystemClock().now() - timedelta(seconds=min(DURATION.convert(text, None, None), 3650 * 86400.0))
    return at.isoformat().replace("+00:00", "Z")


def ago(text: str, now: datetime) -> str:
    """`3 min ago`, `in 2 h`, `just now`; the text itself when it is no time."""
    at = moment(text)
    if at is None:
        return text
    seconds = (now - at).total_seconds()
    # What is to come is rounded: a key made for 90 days ends in 90 days, not in 89, while the first second passes.
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
        if -seconds >= size:
            return f"in {round(-seconds / size)} {unit}"
    return "just now"


def took(seconds: float) -> str:
    """`3 ms`, `2.4 s`, `4 min 10 s`."""
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
