"""`dragoman tasks ls|show|cancel`: calls, whatever dialect they were made in. Calls and tasks are one thing."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Final

import click

from dragoman.cli.completion import agents, skills
from dragoman.cli.fault import Exit, Fault, not_found
from dragoman.cli.find import one_of, pages
from dragoman.cli.hub import Hub, segment
from dragoman.cli.output import Output, one_line
from dragoman.cli.paging import paged, show_page
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.table import Column, Kind, chosen, plain, show_facts, within_terminal
from dragoman.cli.times import moment, since_time, took
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.states import OPEN, TaskState

DIALECTS: Final = ("envelope", "platform", "dotted", "directory", "agentvault", "a2a-0.3", "a2a-1.0")
CANDIDATES: Final = 20  # of an ambiguous beginning
EVENTS: Final = 1000  # shown of one call
TAB: Final = "\t"
COLUMNS: Final = (
    Column("id", "id", Kind.ID),
    Column("status", "status", Kind.STATE),
    Column("agent", "agent", Kind.ID),
    Column("skill", "skill"),
    Column("caller", "caller", Kind.ID),
    Column("dialect", "dialect", Kind.STATE),
    Column("ms", "duration_ms", Kind.NUMBER),
    Column("tries", "attempts", Kind.NUMBER),
    Column("created", "created_at", Kind.TIME),
    Column("started", "started_at", Kind.TIME),
    Column("ended", "ended_at", Kind.TIME),
    Column("updated", "updated_at", Kind.TIME),
    Column("progress", "progress", Kind.NUMBER),
    Column("error", "error_code"),
    Column("conversation", "conversation_id", Kind.ID),
    Column("trace", "trace_id", Kind.ID),
    Column("parent", "parent_id", Kind.ID),
)
SHOWN: Final = ("id", "status", "agent", "skill", "dialect", "duration_ms", "created_at")


@click.group("tasks", epilog="Example: dragoman tasks ls --status failed --since 2h")
def command() -> None:
    """List, show and cancel calls of every dialect."""


@command.command("ls", epilog="Example: dragoman tasks ls --agent agt_editor --status completed --limit 5")
@click.option("--agent", metavar="ID", shell_complete=agents, help="Only those given to this agent.")
@click.option("--caller", metavar="ID", help="Only those of this caller.")
@click.option("--skill", metavar="SKILL", shell_complete=skills, help="Only those of this skill.")
@click.option("--status", type=click.Choice([state.value for state in TaskState]), help="Only those in this state.")
@click.option("--dialect", type=click.Choice((*DIALECTS, "mcp")), help="Only those made in this dialect.")
@click.option("--since", metavar="2h|TIME", help="Only those whose status changed since then.")
@click.option("--trace", metavar="ID", help="Only those of this trace.")
@click.option("--conversation", metavar="ID", help="Only those of this conversation.")
@paged(50)
@common
def ls(
    agent: str | None,
    caller: str | None,
    skill: str | None,
    status: str | None,
    dialect: str | None,
    since: str | None,
    trace: str | None,
    conversation: str | None,
    limit: int,
    cursor: str | None,
    columns: str | None,
) -> None:
    """List calls, newest status first."""
    output = current_output()
    picked = chosen(COLUMNS, SHOWN, columns)
    query = {
        "agent": agent, "caller": caller, "skill": skill, "status": status, "dialect": dialect,
        "since": since_time(since), "trace": trace, "conversation": conversation, "cursor": cursor,
    }  # fmt: skip
    ending = partial(_ending, filtered=any(query.values()))
    show_page(output, "/v1/calls", query, picked, limit=limit, ending=ending)


@command.command("show", epilog="Example: dragoman tasks show a2a_call_7c1e")
@click.argument("call", metavar="ID")
@common
def show(call: str) -> None:
    """Show a call: timing, attempts, events, result, usage."""
    output = current_output()
    hub = current_hub(output)
    found = call_of(hub, call)
    events, _ = pages(hub, f"/v1/calls/{segment(str(found['id']))}/events", {}, limit=EVENTS, position="after")
    if output.json:
        output.document({**found, "events": list(events)})
        return
    show_facts(output, _facts(found), times=("created", "deadline"))
    for title in ("input", "result", "error"):
        if found.get(title) not in (None, {}):
            _show_value(output, title, found[title])
    _show_events(output, events, str(found.get("created_at")))
    if found.get("question"):
        output.note(f"next: dragoman call --continue {found['id']} --text TEXT")


@command.command("cancel", epilog="Example: dragoman tasks cancel a2a_call_9d2b")
@click.argument("call", metavar="ID")
@click.option("--reason", metavar="TEXT", help="Why; its agent is told.")
@common
def cancel(call: str, reason: str | None) -> None:
    """Cancel a call that has not ended."""
    output = current_output()
    hub = current_hub(output)
    call_id = str(call_of(hub, call)["id"])
    body: JsonObject = {} if reason is None else {"reason": reason}
    try:
        item = hub.ask("POST", f"/v1/calls/{segment(call_id)}/cancel", body=body, invalid=Exit.FAILED) or {}
    except Fault as fault:
        if fault.exit_code is Exit.FAILED:
            fault.next = f"dragoman tasks show {call_id}"
        raise
    if output.json:
        output.document(item)
        return
    output.answer(f"{call_id}{' ' if output.human else TAB}{item.get('status')}")


def call_of(hub: Hub, text: str) -> JsonObject:
    """A call by its id, or by a unique beginning of it. Raises Fault: unknown or ambiguous."""
    found = hub.ask("GET", f"/v1/calls/{segment(text)}", missing_ok=True)
    if found is not None:
        return found
    known, _ = pages(hub, "/v1/calls", {"prefix": text}, limit=CANDIDATES)
    if not known:
        raise not_found(
            "CALL_NOT_FOUND", f'no call "{text}"', next="dragoman tasks ls; calls of other keys look unknown"
        )
    return hub.get(f"/v1/calls/{segment(one_of('call', text, [str(item['id']) for item in known]))}")


def _facts(call: JsonObject) -> dict[str, Json]:
    """What a call is, in one line each."""
    trace, timing = call.get("trace"), call.get("timing")
    return {
        "id": call.get("id"),
        "status": call.get("status"),
        "progress": _percent(call.get("progress")) if call.get("status") in set(OPEN) else None,
        "question": call.get("question"),
        "agent": f"{call.get('agent')} {call.get('agent_version')}",
        "skill": call.get("skill"),
        "caller": call.get("caller"),
        "dialect": call.get("dialect"),
        "created": call.get("created_at"),
        "deadline": timing.get("deadline_at") if is_object(timing) and call.get("ended_at") is None else None,
        "took": took_line(timing) if is_object(timing) else None,
        "attempts": call.get("attempts"),
        "usage": usage_line(call.get("usage")),
        "in all": usage_line(call.get("usage_total")) if _caused_others(call) else None,
        "conversation": call.get("conversation_id"),
        "trace": trace.get("trace_id") if is_object(trace) else None,
        "parent": call.get("parent_id"),
        "callbacks": call.get("callbacks") or None,
    }


def took_line(timing: JsonObject) -> str | None:
    """`2.4 s (queued 3 ms, agent 2.4 s)`; None for a call that has not ended."""
    total, queued, agent = (timing.get(f"{name}_ms") for name in ("total", "queued", "agent"))
    if not isinstance(total, int):
        return None
    line = took(total / 1000)
    if isinstance(queued, int) and isinstance(agent, int):
        line += f" (queued {took(queued / 1000)}, agent {took(agent / 1000)})"
    return line


def usage_line(usage: Json) -> str | None:
    """`812 tokens · 0.001 USD`, and whatever else an agent told."""
    if not is_object(usage):
        return None
    words = {"tokens": "tokens", "cost_usd": "USD"}
    return " · ".join(f"{plain(value)} {words.get(name, name)}" for name, value in usage.items())


def _caused_others(call: JsonObject) -> bool:
    """Whether others were called for it, whose usage is its own too."""
    total = call.get("usage_total")
    return is_object(total) and total.get("calls") not in (None, 0, 1)


def _show_value(output: Output, title: str, value: Json) -> None:
    if not output.human:
        output.answer(f"{title}{TAB}{json.dumps(value, ensure_ascii=False)}")
        return
    output.answer(f"\n{title}")
    text = json.dumps(value, indent=2, ensure_ascii=False)
    output.answer("\n".join(f"  {line}" for line in text.splitlines()))


def _show_events(output: Output, events: Sequence[JsonObject], since: str) -> None:
    began = moment(since)
    if output.human:
        output.answer("\nevents")
    for event in events:
        number, name, at = str(event.get("n")), str(event.get("event")), str(event.get("at"))
        told = one_line(_told(event.get("data")))
        if not output.human:
            output.answer(TAB.join(("event", number, at, name, told)))
            continue
        happened = moment(at)
        after = took((happened - began).total_seconds()) if happened and began else at
        line = f"  {number:>4}  {'+' + after:>10}  {name:<9} {told}"
        output.answer(within_terminal(line))


def _told(data: Json) -> str:
    """What an event says, in one line."""
    if not is_object(data):
        return plain(data)
    words = [plain(data[name]) for name in ("status", "role", "name", "agent", "level", "message") if name in data]
    if "progress" in data:
        words.append(_percent(data["progress"]))
    if "attempt" in data:
        words.append(f"attempt {data['attempt']}")
    if data.get("failed"):
        words.append(f"failed: {data['failed']}" + (f", HTTP {data['http_status']}" if "http_status" in data else ""))
    error = data.get("error")
    if is_object(error):
        words.append(f"{error.get('code')}: {error.get('message')}")
    parts = data.get("parts")
    if is_array(parts):
        words += [_part(part) for part in parts if is_object(part)]
    return " ".join(words) or plain(data)


def _part(part: JsonObject) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case {"data": data}:
            return json.dumps(data, ensure_ascii=False)
        case {"file": dict()}:
            file: JsonObject = part["file"]
            return f"file {file.get('name') or file.get('uri') or ''}".rstrip()
        case _:
            return plain(part)


def _percent(share: Json) -> str:
    return f"{share * 100:.0f} %" if isinstance(share, int | float) else ""


def _ending(found: Sequence[JsonObject], *, filtered: bool) -> str | None:
    if found:
        return None
    return "no call matches\nnext: dragoman tasks ls" if filtered else "no calls yet\nnext: dragoman call SKILL"
