"""Limits and budgets on the command line: the options that set them, and how they are shown in a line."""

from collections.abc import Callable
from typing import Final, TypeVar

import click

from dragoman.model.json import Json, JsonObject, is_object

Command = TypeVar("Command", bound=Callable[..., object])

MOST: Final = 1_000_000
LIMITS: Final = {
    "per_minute": "requests_per_minute",
    "per_hour": "requests_per_hour",
    "concurrent": "concurrent_requests",
}
SHOWN: Final = {
    "requests_per_minute": "{}/min",
    "requests_per_hour": "{}/h",
    "concurrent_requests": "{} at once",
    "usd_per_day": "{} USD/day",
    "tokens_per_day": "{} tokens/day",
    "usd_per_conversation": "{} USD/conversation",
    "calls_per_conversation": "{} calls/conversation",
}


def limited(command: Command) -> Command:
    """The options that say how often."""
    count = click.IntRange(1, MOST)
    for option in (
        click.option("--concurrent", type=count, metavar="N", help="Most calls at once."),
        click.option("--per-hour", type=count, metavar="N", help="Most calls an hour."),
        click.option("--per-minute", type=count, metavar="N", help="Most calls a minute."),
    ):
        command = option(command)
    return command


def budgeted(command: Command) -> Command:
    """The options that say how much may be spent."""
    dollars = click.FloatRange(0, MOST, min_open=True)
    for option in (
        click.option("--calls-per-conversation", type=click.IntRange(1, MOST), metavar="N", help="Most calls in one."),
        click.option("--usd-per-conversation", type=dollars, metavar="USD", help="Most spent in one."),
        click.option("--tokens-per-day", type=click.IntRange(1, 10**12), metavar="N", help="Most tokens a day."),
        click.option("--usd-per-day", type=dollars, metavar="USD", help="Most spent a day."),
    ):
        command = option(command)
    return command


def given(**values: float | None) -> JsonObject | None:
    """The fields of limits or of a budget that were given; None where none was."""
    named: JsonObject = {LIMITS.get(name, name): value for name, value in values.items() if value is not None}
    return named or None


def in_a_line(value: Json) -> str:
    """Limits or a budget for people, such as `60/min, 10 at once`."""
    if not is_object(value):
        return ""
    return ", ".join(SHOWN.get(name, name + " {}").format(each) for name, each in value.items())
