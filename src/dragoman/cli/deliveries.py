"""`dragoman deliveries ls|replay|enable|disable`: callbacks and webhooks, what became of them, and a second chance."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

import click

from dragoman.cli.fault import Fault, not_found, wrong_usage
from dragoman.cli.find import items_of, pages
from dragoman.cli.hub import Hub, segment
from dragoman.cli.output import Output
from dragoman.cli.paging import paged, show_page
from dragoman.cli.session import common, confirm, current_hub, current_output
from dragoman.cli.table import Column, Kind, chosen
from dragoman.cli.times import since_time
from dragoman.model.json import JsonObject, is_object

STATES: Final = ("pending", "parked", "disabled", "delivered")
GIVEN_UP: Final = ("parked", "disabled")
AT_ONCE: Final = 20  # replayed by one request, so that the bar moves
MOST: Final = 10_000  # replayed by one command
COLUMNS: Final = (
    Column("id", "id", Kind.ID),
    Column("state", "state", Kind.STATE),
    Column("url", "url"),
    Column("call", "call_id", Kind.ID),
    Column("tries", "attempts", Kind.NUMBER),
    Column("last answer", "last_answer"),
    Column("next try", "next_attempt_at", Kind.TIME),
    Column("created", "created_at", Kind.TIME),
    Column("last try", "last_attempt_at", Kind.TIME),
    Column("replays", "replays", Kind.NUMBER),
    Column("event", "event", Kind.NUMBER),
    Column("caller", "caller", Kind.ID),
    Column("enabled", "enabled", Kind.STATE),
    Column("disabled because", "disabled_reason"),
)
SHOWN: Final = ("id", "state", "url", "call_id", "attempts", "last_answer", "next_attempt_at", "created_at")
TAB: Final = "\t"


@click.group("deliveries", epilog="Example: dragoman deliveries ls --state parked")
def command() -> None:
    """List callbacks and webhooks, and send them once more."""


@command.command("ls", epilog="Example: dragoman deliveries ls --state parked --since 2h")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--since", metavar="2h|TIME", help="Only those born since then.")
@click.option("--url", metavar="URL", help="Only those to this address.")
@click.option("--call", metavar="ID", help="Only those that tell of this call.")
@paged(50)
@common
def ls(
    state: str | None,
    since: str | None,
    url: str | None,
    call: str | None,
    limit: int,
    cursor: str | None,
    columns: str | None,
) -> None:
    """List deliveries, newest first."""
    output = current_output()
    picked = chosen(COLUMNS, SHOWN, columns)
    query = {"state": state, "since": since_time(since), "url": url, "call": call, "cursor": cursor}
    ending = partial(_ending, filtered=any(query.values()))
    show_page(output, "/v1/deliveries", query, picked, limit=limit, ending=ending)


@command.command("replay", epilog="Example: dragoman deliveries replay --all --state parked --yes")
@click.argument("delivery", required=False)
@click.option("--all", "everything", is_flag=True, help="All that were given up.")
@click.option("--state", type=click.Choice(GIVEN_UP), help="With --all: only those in this state.")
@click.option("--url", metavar="URL", help="With --all: only those to this address.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def replay(delivery: str | None, everything: bool, state: str | None, url: str | None, yes: bool) -> None:
    """Send a delivery once more, or all that were given up."""
    output = current_output()
    if everything == (delivery is not None):
        raise wrong_usage("name one delivery, or say --all", next="dragoman deliveries ls --state parked")
    if delivery is not None and (state or url):
        raise wrong_usage("--state and --url go with --all", next=f"dragoman deliveries replay {delivery}")
    hub = current_hub(output)
    if delivery is None:
        _replay_all(output, hub, state, url, yes=yes)
        return
    item = _one(hub, "POST", f"/v1/deliveries/{segment(delivery)}/replay", delivery, None)
    _show(output, item, f"it is on its way; dragoman deliveries ls --call {item.get('call_id')} shows what comes of it")


@command.command("disable", epilog="Example: dragoman deliveries disable dlv_1 --yes")
@click.argument("delivery")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def disable(delivery: str, yes: bool) -> None:
    """Send nothing more to a delivery's address."""
    output = current_output()
    hub = current_hub(output)
    confirm(f"Send nothing more to the address of {delivery}?", yes=yes)
    item = _one(hub, "PATCH", f"/v1/deliveries/{segment(delivery)}", delivery, {"enabled": False})
    _show(output, item, f"{item.get('url')} gets nothing until: dragoman deliveries enable {delivery}")


@command.command("enable", epilog="Example: dragoman deliveries enable dlv_1")
@click.argument("delivery")
@common
def enable(delivery: str) -> None:
    """Send to a delivery's address again."""
    output = current_output()
    hub = current_hub(output)
    item = _one(hub, "PATCH", f"/v1/deliveries/{segment(delivery)}", delivery, {"enabled": True})
    held = "what was held back stays so until: dragoman deliveries replay --all --state disabled"
    _show(output, item, f"{item.get('url')} is enabled; {held}")


def _replay_all(output: Output, hub: Hub, state: str | None, url: str | None, *, yes: bool) -> None:
    found: list[JsonObject] = []
    for each in (state,) if state else GIVEN_UP:
        query = {"state": each, **({"url": url} if url else {})}
        found += pages(hub, "/v1/deliveries", query, limit=MOST)[0]
    ids = [str(item["id"]) for item in found]
    if ids:
        addresses = _count(len({item.get("url") for item in found}), "address", "addresses")
        confirm(f"Send {_count(len(ids), 'delivery', 'deliveries')} once more, to {addresses}?", yes=yes)
    done: list[JsonObject] = []
    shown = sys.stderr.isatty() and not output.quiet and not output.json
    with click.progressbar(length=len(ids), label="replaying", file=sys.stderr, hidden=not shown) as bar:
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            answer = hub.ask("POST", "/v1/deliveries/replay", body={"ids": some}) or {}
            done += [item for item in items_of(answer) if is_object(item)]
            bar.update(len(some))
    if output.json:
        output.document({"items": done, "next_cursor": None})
        return
    for item in done:
        output.answer(str(item.get("id")))
    if not ids:
        output.note(_nothing(filtered=True))
        return
    moving = _count(len(done), "delivery is", "deliveries are")
    output.note(f"{moving} on the way; dragoman deliveries ls shows what comes of it")


def _one(hub: Hub, method: str, path: str, delivery: str, body: JsonObject | None) -> JsonObject:
    item = hub.ask(method, path, body=body, missing_ok=True)
    if item is None:
        raise _unknown(delivery)
    return item


def _show(output: Output, item: JsonObject, said: str) -> None:
    if output.json:
        output.document(item)
        return
    output.answer(f"{item.get('id')}{' ' if output.human else TAB}{item.get('state')}")
    output.note(said)


def _unknown(delivery: str) -> Fault:
    return not_found("NOT_FOUND", f'no delivery "{delivery}"', next="dragoman deliveries ls")


def _ending(found: Sequence[JsonObject], *, filtered: bool) -> str | None:
    if not found:
        return _nothing(filtered=filtered)
    given_up = any(item.get("state") in GIVEN_UP for item in found)
    return "next: dragoman deliveries replay ID, or --all" if given_up else None


def _nothing(*, filtered: bool) -> str:
    if filtered:
        return "no delivery matches\nnext: dragoman deliveries ls"
    return "nothing was to be delivered yet\nnext: dragoman call SKILL --callback URL"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
