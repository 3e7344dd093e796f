"""`dragoman agents ls|show|pause|resume|approve|limit|rm|versions`: the registry, for owners and administrators."""

from collections.abc import Sequence
from typing import Final

import click

from dragoman.cli.completion import agents
from dragoman.cli.credential_file import key_file, read_credential_file
from dragoman.cli.find import agent_item, items_of
from dragoman.cli.fitting import schema_lines
from dragoman.cli.hub import segment
from dragoman.cli.limits import given, in_a_line, limited
from dragoman.cli.output import Output
from dragoman.cli.paging import paged, show_page
from dragoman.cli.session import common, confirm, current_hub, current_output
from dragoman.cli.table import Column, Kind, chosen, show_facts
from dragoman.model.json import Json, JsonObject, is_array, is_object

COLUMNS: Final = (
    Column("id", "id", Kind.ID),
    Column("name", "name"),
    Column("version", "version", Kind.STATE),
    Column("dialect", "dialect", Kind.STATE),
    Column("state", "status", Kind.STATE),
    Column("skills", "skills"),
    Column("rating", "rating", Kind.NUMBER),
    Column("updated", "updated_at", Kind.TIME),
    Column("registered", "registered_at", Kind.TIME),
    Column("p95 ms", "response_time_p95_ms", Kind.NUMBER),
    Column("available", "availability", Kind.NUMBER),
    Column("success", "success", Kind.NUMBER),
    Column("calls", "calls", Kind.NUMBER),
    Column("seen", "last_seen_at", Kind.TIME),
    Column("circuit", "circuit", Kind.STATE),
    Column("owner", "owner", Kind.ID),
    Column("tags", "tags"),
    Column("open", "open", Kind.STATE),
    Column("private", "private", Kind.STATE),
    Column("uuid", "uuid", Kind.ID),
    Column("base", "base_url"),
)
SHOWN: Final = ("id", "name", "version", "dialect", "status", "skills", "rating", "updated_at", "last_seen_at")
FACTS: Final = (
    "id", "uuid", "name", "description", "version", "dialect", "status", "doubt", "trust", "signed_by",
    "open", "private", "rating",
    "response_time_p95_ms", "availability", "success", "calls", "last_seen_at", "circuit",
    "owner", "tags", "rate_limits", "registered_endpoint", "credential", "endpoint", "base_url",
    "registered_at", "updated_at",
)  # fmt: skip
TAB: Final = "\t"
TIMES: Final = ("registered_at", "updated_at", "last_seen_at")


@click.group("agents", epilog="Example: dragoman agents show agt_editor")
def command() -> None:
    """List, show, pause, resume, limit and remove agents."""


@command.command("ls", epilog="Example: dragoman agents ls --status active --columns id,status")
@click.option("--status", metavar="STATE", help="Only those in this state.")
@click.option("--q", metavar="WORDS", help="Words in names, descriptions and skills.")
@paged(50)
@common
def ls(status: str | None, q: str | None, limit: int, cursor: str | None, columns: str | None) -> None:
    """List agents."""
    output = current_output()
    picked = chosen(COLUMNS, SHOWN, columns)
    query = {"status": status, "q": q, "cursor": cursor}
    show_page(output, "/v1/agents", query, picked, limit=limit, ending=_ending)


@command.command("show", epilog="Example: dragoman agents show agt_editor")
@click.argument("agent", shell_complete=agents)
@common
def show(agent: str) -> None:
    """Show one agent, its figures and its skills."""
    output = current_output()
    item = agent_item(current_hub(output), agent)
    if output.json:
        output.document(item)
        return
    item["credential"] = _credential(item.get("credential"))
    item["rate_limits"] = in_a_line(item.get("rate_limits"))
    show_facts(output, {name: item.get(name) for name in FACTS}, TIMES)
    card = item.get("card")
    skills = card.get("skills") if is_object(card) else None
    for skill in skills if is_array(skills) else ():
        if is_object(skill):
            _show_skill(output, skill)


@command.command("pause", epilog="Example: dragoman agents pause agt_editor")
@click.argument("agent", shell_complete=agents)
@common
def pause(agent: str) -> None:
    """Take no more calls for an agent."""
    _change(agent, "paused", "it takes no calls until: dragoman agents resume {id}")


@command.command("resume", epilog="Example: dragoman agents resume agt_editor")
@click.argument("agent", shell_complete=agents)
@common
def resume(agent: str) -> None:
    """Take calls for a paused agent again."""
    _change(agent, "active", "it takes calls again")


@command.command("approve", epilog="Example: dragoman agents approve agt_editor")
@click.argument("agent", shell_complete=agents)
@common
def approve(agent: str) -> None:
    """Trust the card of a quarantined agent, and its new key."""
    output = current_output()
    hub = current_hub(output)
    item = agent_item(hub, agent)
    changed = hub.ask("PATCH", f"/v1/agents/{segment(str(item['id']))}", body={"trust": "approve"})
    _show_change(output, changed or {}, f"it is found and called again, though {item.get('doubt')}")


@command.command("credentials", epilog="Example: dragoman agents credentials agt_editor")
@click.argument("agent", shell_complete=agents)
@key_file
@common
def credentials(agent: str, key_file: str | None) -> None:
    """Store the credential that the hub shows to an agent, or say which kind there is."""
    output = current_output()
    given = None if key_file is None else read_credential_file(key_file)
    hub = current_hub(output)
    item = agent_item(hub, agent)
    if given is not None:
        item = hub.ask("PATCH", f"/v1/agents/{segment(str(item['id']))}", body={"credentials": given}) or {}
    if output.json:
        output.document({"id": item.get("id"), "credential": item.get("credential")})
        return
    output.answer(_credential(item.get("credential")) or "none is set")


@command.command("limit", epilog="Example: dragoman agents limit agt_editor --per-minute 60 --concurrent 10")
@click.argument("agent", shell_complete=agents)
@limited
@common
def limit(agent: str, **limits: int | None) -> None:
    """Set how often an agent may be called; with no limit those of its card hold again."""
    output = current_output()
    hub = current_hub(output)
    item = agent_item(hub, agent)
    changed = hub.ask("PATCH", f"/v1/agents/{segment(str(item['id']))}", body={"rate_limits": given(**limits)}) or {}
    held = in_a_line(changed.get("rate_limits"))
    _show_change(output, changed, f"it takes {held}" if held else "neither its owner nor its card limits it")


@command.command("rm", epilog="Example: dragoman agents rm agt_editor --yes")
@click.argument("agent", shell_complete=agents)
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def rm(agent: str, yes: bool) -> None:
    """Remove an agent from the registry."""
    output = current_output()
    hub = current_hub(output)
    item = agent_item(hub, agent)
    confirm(f"Remove {item['id']} ({item.get('name')})?", yes=yes)
    _show_change(
        output, hub.ask("DELETE", f"/v1/agents/{segment(str(item['id']))}") or {}, "it is no longer registered"
    )


@command.command("versions", epilog="Example: dragoman agents versions agt_editor")
@click.argument("agent", shell_complete=agents)
@common
def versions(agent: str) -> None:
    """List the versions of an agent's card, as ID@VERSION takes them."""
    output = current_output()
    hub = current_hub(output)
    item = agent_item(hub, agent)
    answer = hub.get(f"/v1/agents/{segment(str(item['id']))}/versions")
    found = items_of(answer)
    if output.json:
        output.document({"items": found, "next_cursor": answer.get("next_cursor")})
        return
    for version in found:
        output.answer(str(version))


def _ending(found: Sequence[JsonObject]) -> str | None:
    return None if found else "no agent is registered\nnext: dragoman register URL"


def _change(agent: str, status: str, said: str) -> None:
    output = current_output()
    hub = current_hub(output)
    item = agent_item(hub, agent)
    changed = hub.ask("PATCH", f"/v1/agents/{segment(str(item['id']))}", body={"status": status})
    _show_change(output, changed or {}, said.format(id=item["id"]))


def _show_change(output: Output, item: JsonObject, said: str) -> None:
    if output.json:
        output.document(item)
        return
    output.answer(f"{item.get('id')}{' ' if output.human else TAB}{item.get('status')}")
    output.note(said)


def _credential(credential: Json) -> str | None:
    """What the hub tells of a credential, in a line."""
    if not is_object(credential):
        return None
    if not credential.get("set"):
        return credential.get("problem")
    origin = f" for {credential['origin']}" if credential.get("origin") else ""
    source = f", from the {credential['from']}" if credential.get("from") else ""
    trouble = f"; suspended: {credential['suspended']}" if credential.get("suspended") else ""
    trouble = trouble or (f"; {credential['problem']}" if credential.get("problem") else "")
    return f"{credential.get('type')}{origin}{source}{trouble}"


def _show_skill(output: Output, skill: JsonObject) -> None:
    schema = skill.get("input_schema")
    lines = schema_lines(schema) if is_object(schema) else []
    name = str(skill.get("name") or skill.get("id"))
    if not output.human:
        for line in lines or [""]:
            output.answer(f"skill\t{name}\t{line}".rstrip())
        return
    described = str(skill.get("description") or "")
    output.answer(f"\nskill {name}  {described}".rstrip())
    for line in lines:
        output.answer(f"  {line}")
