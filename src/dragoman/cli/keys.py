"""`dragoman keys create|ls|rotate|revoke|rotate-signing`: who may do what at the hub, and what it signs with.

A key and its signing secret are shown once, on stdout alone, so that they can be piped into a secret store.
"""

from datetime import timedelta
from typing import Final

import click

from dragoman.cli.fault import wrong_usage
from dragoman.cli.find import one_of, pages
from dragoman.cli.hub import Hub, segment
from dragoman.cli.limits import budgeted, given, limited
from dragoman.cli.output import Output
from dragoman.cli.paging import paged, show_page
from dragoman.cli.session import common, confirm, current_hub, current_output
from dragoman.cli.table import Column, Kind, chosen, show_facts
from dragoman.cli.times import DURATION, moment
from dragoman.model.json import JsonObject

SCOPES: Final = ("a2a:call", "a2a:receive", "a2a:register", "a2a:admin")
COLUMNS: Final = (
    Column("key", "key_id", Kind.ID),
    Column("name", "name"),
    Column("scopes", "scopes"),
    Column("allow", "allow"),
    Column("agent", "agent_id", Kind.ID),
    Column("limits", "rate_limits", Kind.LIMITS),
    Column("budget", "budget", Kind.LIMITS),
    Column("created", "created_at", Kind.TIME),
    Column("expires", "expires_at", Kind.TIME),
    Column("revoked", "revoked_at", Kind.TIME),
    Column("last used", "last_used_at", Kind.TIME),
    Column("principal", "principal", Kind.ID),
    Column("tenant", "tenant", Kind.ID),
)
SHOWN: Final = (
    "key_id", "name", "scopes", "allow", "rate_limits", "budget", "created_at", "expires_at", "revoked_at",
    "last_used_at",
)  # fmt: skip


@click.group("keys", epilog="Example: dragoman keys create --name ci --scope a2a:call")
def command() -> None:
    """Create, list, rotate and revoke keys."""


@command.command("create", epilog="Example: dragoman keys create --name ci --scope a2a:call --expires 90d")
@click.option("--name", required=True, metavar="NAME", help="What it is for.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="What it may do. [default: a2a:call]")
@click.option("--allow", multiple=True, metavar="TARGET:SKILL", help="Only these calls; * stands for anything.")
@click.option("--agent", "agent_id", metavar="ID", help="The agent it speaks for.")
@click.option("--tenant", metavar="TENANT", help="The tenant it belongs to.")
@click.option("--expires", metavar="90d|TIME", help="When it ends.")
@limited
@budgeted
@common
def create(
    name: str,
    scopes: tuple[str, ...],
    allow: tuple[str, ...],
    agent_id: str | None,
    tenant: str | None,
    expires: str | None,
    per_minute: int | None,
    per_hour: int | None,
    concurrent: int | None,
    **budget: float | None,
) -> None:
    """Create a key; it and its signing secret are shown this once."""
    output = current_output()
    body: JsonObject = {"name": name, "scopes": list(scopes) or ["a2a:call"]}
    more = {
        "agent_id": agent_id,
        "tenant": tenant,
        "expires_at": _end(expires),
        "allow": list(allow) or None,
        "rate_limits": given(per_minute=per_minute, per_hour=per_hour, concurrent=concurrent),
        "budget": given(**budget),
    }
    body.update({field: value for field, value in more.items() if value is not None})
    _show_new(output, current_hub(output).ask("POST", "/v1/keys", body=body) or {})


@command.command("ls", epilog="Example: dragoman keys ls --columns key_id,name,expires_at")
@paged(100)
@common
def ls(limit: int, cursor: str | None, columns: str | None) -> None:
    """List keys; their secrets are never shown again."""
    output = current_output()
    picked = chosen(COLUMNS, SHOWN, columns)
    show_page(output, "/v1/keys", {"cursor": cursor}, picked, limit=limit)


@command.command("rotate", epilog="Example: dragoman keys rotate k7f2Qx0aZ91b --overlap 24h")
@click.argument("key")
@click.option("--overlap", "overlap_s", type=DURATION, default="24h", show_default=True, help="How long both work.")
@common
def rotate(key: str, overlap_s: float) -> None:
    """Make a key's successor; the old one works until the overlap is over."""
    output = current_output()
    hub = current_hub(output)
    key_id = _key_id(hub, key)
    item = hub.ask("POST", f"/v1/keys/{segment(key_id)}/rotate", body={"overlap_s": round(overlap_s)})
    _show_new(output, item or {})
    if not output.json:
        output.note(f"the old one, {key_id}, works until the overlap is over")


@command.command("revoke", epilog="Example: dragoman keys revoke k7f2Qx0aZ91b --yes")
@click.argument("key")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def revoke(key: str, yes: bool) -> None:
    """End a key at once."""
    output = current_output()
    hub = current_hub(output)
    key_id = _key_id(hub, key)
    confirm(f"Revoke the key {key_id}? Whoever uses it is locked out at once.", yes=yes)
    item = hub.ask("DELETE", f"/v1/keys/{segment(key_id)}") or {}
    if output.json:
        output.document(item)
        return
    output.answer(key_id)
    output.note("it is revoked")


@command.command("rotate-signing", epilog="Example: dragoman keys rotate-signing")
@click.option("--now", "at_once", is_flag=True, help="The key leaked: a new one signs at once, old tokens are void.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def rotate_signing(at_once: bool, yes: bool) -> None:
    """Have the hub's signing key followed by a new one, in an hour."""
    output = current_output()
    hub = current_hub(output)
    if at_once:
        confirm("Make every token that the hub has issued void at once?", yes=yes)
    item = hub.ask("POST", "/v1/signing-keys/rotate", body={"now": at_once}) or {}
    if output.json:
        output.document(item)
        return
    newest = item["items"][-1]
    output.answer(str(newest["kid"]))
    output.note("it signs now" if newest["signs"] else f"it is published, and signs from {newest['signs_from']} on")


def _key_id(hub: Hub, text: str) -> str:
    known, _ = pages(hub, "/v1/keys", {})
    return one_of("key", text, [str(item["key_id"]) for item in known])


def _show_new(output: Output, item: JsonObject) -> None:
    if output.json:
        output.document(item)
        return
    show_facts(output, {"key": item.get("key"), "signing_secret": item.get("signing_secret")})
    scopes = ", ".join(str(scope) for scope in item.get("scopes") or ())
    output.note(f"key {item.get('key_id')} ({item.get('name')}) may {scopes}; it is shown this once")


def _end(text: str | None) -> str | None:
    """When a key ends, from a duration or a time."""
    if text is None:
        return None
    at = moment(text)
    if at is None:
        # Only here is the time of day needed.
        from dragoman.ports.clock import SystemClock

        at = SystemClock().now() + timedelta(seconds=DURATION.convert(text, None, None))
    if at.year > 9000:
        raise wrong_usage(f"--expires {text} is too far away", next="--expires 365d")
    return at.isoformat().replace("+00:00", "Z")
