"""What calls came to over time: how many, how they ended, how long they took; by the minute or by the hour."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from dragoman.dialects.times import wire_time
from dragoman.hub.series import Series, SeriesQuery
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams
from dragoman.model.figures import Outcome, Tally
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.server.pages.page import Page, json_reply, query_of, time_of

MINUTES: Final[Mapping[str, int]] = {"minute": 1, "hour": 60}
USUAL: Final = 60  # stretches, where only one end is said or none
MOST: Final = 1500  # a day of minutes, two months of hours
_ASKED: Final = frozenset({"agent", "skill", "from", "to", "by"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class SeriesSums(msgspec.Struct, frozen=True, kw_only=True):
    """Calls by how they ended. `success`, the times and `availability` are of those that count for their agents:
    neither cancelled nor `refused` (failed by their caller's or the hub's own fault); the times of completed ones."""

    calls: int
    completed: int
    failed: int
    timeout: int
    unreachable: int
    cancelled: int
    refused: int
    success: float | None
    availability: float | None  # health checks count in it, too
    mean_ms: int | None
    p50_ms: int | None
    p95_ms: int | None


class SeriesItem(SeriesSums, frozen=True, kw_only=True):
    """The sums of one minute or hour, by its beginning."""

    at: str


class SeriesView(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """What calls came to from one time up to another; stretches without any call are left out."""

    by: Literal["minute", "hour"]
    from_: str
    to: str
    items: list[SeriesItem]
    total: SeriesSums


def pages(series: Series) -> tuple[Page, ...]:
    """The page of what calls came to."""

    async def shown(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        values = query_of(request, _ASKED)
        by = _by(values)
        since, until = _span(values, MINUTES[by], arrival.at)
        asked = SeriesQuery(
            since=since, until=until, by=MINUTES[by], agent=values.get("agent"), skill=values.get("skill")
        )
        stretches, total = await series.of(caller, asked)
        items = [SeriesItem(at=_time(at), **_sums(tally)) for at, tally in stretches if tally.calls]
        view = SeriesView(by=by, from_=_time(since), to=_time(until), items=items, total=SeriesSums(**_sums(total)))
        return json_reply(200, view)

    return (Page(method="GET", path="/v1/calls/series", answer=shown, heavy=True),)


def _sums(tally: Tally) -> JsonObject:
    return {
        "calls": tally.calls,
        "completed": tally.of(Outcome.COMPLETED),
        "failed": tally.of(Outcome.FAILED),
        "timeout": tally.of(Outcome.TIMED_OUT),
        "unreachable": tally.of(Outcome.UNREACHABLE),
        "cancelled": tally.of(Outcome.CANCELED),
        "refused": tally.of(Outcome.REFUSED),
        "success": _rounded(tally.success),
        "availability": _rounded(tally.availability),
        "mean_ms": tally.mean_ms,
        "p50_ms": tally.quantile_ms(0.5),
        "p95_ms": tally.quantile_ms(0.95),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _by(values: Mapping[str, str]) -> Literal["minute", "hour"]:
    match values.get("by", "minute"):
        case "minute":
            return "minute"
        case "hour":
            return "hour"
        case _:
            raise BadParams("by: expected minute or hour", errors=[{"path": "by", "message": "unknown"}])


def _span(values: Mapping[str, str], by: int, now: datetime) -> tuple[int, int]:
    """The first minute, and the first one after the last."""
    last = _minute(time_of(values, "to") or now) // by * by + by
    given = time_of(values, "from")
    first = last - USUAL * by if given is None else _minute(given) // by * by
    if not first < last <= first + MOST * by:
        message = f"from, to: expected at most {MOST} at a time, from before to; ask for a shorter time, or by=hour"
        raise BadParams(message, errors=[{"path": "from", "message": "out of range"}])
    return first, last


def _minute(at: datetime) -> int:
    return int((at - _EPOCH).total_seconds()) // 60


def _time(minute: int) -> str:
    return wire_time(_EPOCH + timedelta(minutes=minute))
