"""What calls used up, for those who made them and for administrators: as JSON, or as CSV for a spreadsheet.

Sums of money are decimal digits in a string: no digit of them is lost.
"""

import csv
import io
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

from dragoman.hub.usage import UsageDesk, Used
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.usage import Sums, decimal_usd
from dragoman.ports.usage import By
from dragoman.server.pages.page import Page, json_reply, query_of

USUAL_DAYS: Final = 30
MOST_DAYS: Final = 400
_ASKED: Final = frozenset({"by", "from", "to", "format"})
_EPOCH: Final = date(1970, 1, 1)
_CSV_HEADERS: Final = {b"content-type": b"text/csv; charset=utf-8"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for one


class UsageItem(msgspec.Struct, frozen=True, kw_only=True):
    """What some calls used; `name` is the caller, target, skill, model, conversation or day that they share."""

    name: str
    calls: int
    tokens: int
    input_tokens: int
    output_tokens: int
    cost_usd: str
    estimated_usd: str  # the part of the cost that no agent told


class UsageView(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """What was used from one day to another (UTC, both included), the most expensive first.

    `complete` is false where only the newest calls were looked at.
    """

    by: By
    from_: str
    to: str
    items: list[UsageItem]
    total: UsageItem
    complete: bool


def pages(desk: UsageDesk) -> tuple[Page, ...]:
    """The page of what was used."""

    async def used(request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        values = query_of(request, _ASKED)
        by, (first, last) = _by(values), _days(values, desk.today())
        view = _view(by, first, last, await desk.by(caller, by, first, last))
        return _as_csv(view) if _wants_csv(values, request) else json_reply(200, view)

    return (Page(method="GET", path="/v1/calls/usage", answer=used, heavy=True),)


def _view(by: By, first: int, last: int, used: Used) -> UsageView:
    items = [_item(_day(int(each.name)) if by is By.DAY else each.name, each.sums) for each in used.items]
    return UsageView(
        by=by, from_=_day(first), to=_day(last), items=items, total=_item("", used.total), complete=used.complete
    )


def _item(name: str, sums: Sums) -> UsageItem:
    return UsageItem(
        name=name,
        calls=sums.calls,
        tokens=sums.tokens,
        input_tokens=sums.input_tokens,
        output_tokens=sums.output_tokens,
        cost_usd=decimal_usd(sums.cost_nano),
        estimated_usd=decimal_usd(sums.estimated_nano),
    )


def _as_csv(view: UsageView) -> HttpReply:
    text = io.StringIO()
    writer = csv.writer(text)
    names = UsageItem.__struct_fields__
    writer.writerow([view.by.value, *names[1:]])
    for item in view.items:
        shown = f"'{item.name}" if item.name.startswith(_FORMULA) else item.name
        writer.writerow([shown, *[getattr(item, name) for name in names[1:]]])
    return HttpReply(status=200, headers=_CSV_HEADERS, body=text.getvalue().encode())


def _wants_csv(values: Mapping[str, str], request: HttpRequest) -> bool:
    named = values.get("format")
    if named is None:
        return request.headers.get(b"accept", b"").split(b";")[0].strip() == b"text/csv"
    if named not in ("json", "csv"):
        raise BadParams("format: expected json or csv", errors=[{"path": "format", "message": "unknown"}])
    return named == "csv"


def _by(values: Mapping[str, str]) -> By:
    named = values.get("by", By.DAY.value)
    if named not in set(By):
        raise BadParams(f"by: expected {', '.join(By)}", errors=[{"path": "by", "message": "unknown"}])
    return By(named)


def _days(values: Mapping[str, str], today: int) -> tuple[int, int]:
    last = _day_in(values, "to", today)
    first = _day_in(values, "from", last - USUAL_DAYS + 1)
    if not first <= last < first + MOST_DAYS:
        message = f"from, to: expected at most {MOST_DAYS} days, from not after to"
        raise BadParams(message, errors=[{"path": "from", "message": "out of range"}])
    return first, last


def _day_in(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name)
    if text is None:
        return default
    try:
        at = datetime.fromisoformat(text)
        day = at.date() if at.tzinfo is None else at.astimezone(UTC).date()
    except (ValueError, OverflowError):
        message = f"{name}: expected a day such as 2026-01-12"
        raise BadParams(message, errors=[{"path": name, "message": "not a day"}]) from None
    return (day - _EPOCH).days


def _day(number: int) -> str:
    return (_EPOCH + timedelta(days=number)).isoformat()
