"""`dragoman tail`: calls as they begin and end, one line each, until Ctrl-C; a lost connection is taken up again."""

import json
import shutil
import sys
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import click

from dragoman.cli.completion import agents, skills
from dragoman.cli.fault import Exit
from dragoman.cli.find import agent_item
from dragoman.cli.hub import Hub
from dragoman.cli.output import DIM, Output, one_line, visible
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.table import STATE_STYLES, shortened
from dragoman.cli.times import moment, since_time, took
from dragoman.model.json import JsonObject, is_object
from dragoman.model.states import FINAL, TaskState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dragoman.ports.clock import Clock
    from dragoman.sdk.client.http import HubHttp

PATH: Final = "/v1/calls/feed"
IDLE_S: Final = 30.0  # without a byte: the hub says something every 10 s
LONGEST_S: Final = 7 * 86_400.0
FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 5.0
LEAST_ID: Final = 9
KNOWN: Final = 1000  # calls of which it is remembered how they were shown
NARROW: Final = 100
BEGUN: Final = frozenset({TaskState.SUBMITTED.value, TaskState.WORKING.value})  # one line for both
FIELDS: Final = ("status", "agent", "skill", "duration_ms", "caller", "error_code", "id")


@click.command("tail", epilog="Example: dragoman tail --agent agt_editor --failed")
@click.option("--agent", metavar="ID", shell_complete=agents, help="Only those given to this agent.")
@click.option("--skill", metavar="SKILL", shell_complete=skills, help="Only those of this skill.")
@click.option("--status", type=click.Choice([state.value for state in TaskState]), help="Only those in this state.")
@click.option("--caller", metavar="ID", help="Only those of this caller.")
@click.option("--failed", is_flag=True, help="Only those that failed.")
@click.option("--since", metavar="5m|TIME", help="Begin with those that changed since then.")
@common
def command(
    agent: str | None, skill: str | None, status: str | None, caller: str | None, failed: bool, since: str | None
) -> int:
    """Follow calls live, one line each, until Ctrl-C."""
    output = current_output()
    hub = current_hub(output)
    query = {
        "agent": None if agent is None else str(agent_item(hub, agent)["id"]),
        "skill": skill,
        "status": status,
        "caller": caller,
        "failed": "1" if failed else None,
        "since": since_time(since),
    }
    # asyncio and the client take longer to import than --help takes to show.
    import asyncio

    from dragoman.cli.calls.interrupts import Interrupts
    from dragoman.ports.clock import SystemClock

    clock = SystemClock()
    shown = Shown(output, clock)
    tail = Tail(hub, output, shown, {name: value for name, value in query.items() if value})
    try:
        asyncio.run(Interrupts(clock).carry(tail.follow(), _nothing))
    except KeyboardInterrupt:
        shown.sum_up()
        return Exit.INTERRUPTED
    return Exit.DONE


class Shown:
    """What was shown so far, and how the next call is."""

    def __init__(self, output: Output, clock: "Clock") -> None:
        self._output = output
        self._clock = clock
        self._since = clock.monotonic()
        self._last: OrderedDict[str, str] = OrderedDict()  # calls by id, and the state they were shown in
        self._ended: Counter[str] = Counter()

    def call(self, item: JsonObject) -> None:
        """Show a call, unless it was shown just so."""
        name, status = str(item.get("id")), str(item.get("status"))
        before = self._last.get(name)
        if before == status or (before in BEGUN and status in BEGUN and not self._output.json):
            return
        self._last[name] = status
        self._last.move_to_end(name)
        if len(self._last) > KNOWN:
            self._last.popitem(last=False)
        if status in set(FINAL):
            self._ended[status] += 1
        if self._output.json:
            self._output.line(item)
        elif self._output.human:
            print(line_of(self._output, item, shutil.get_terminal_size().columns), flush=True)
        else:
            at = str(item.get("updated_at"))
            words = [one_line(str(item[field])) if item.get(field) is not None else "" for field in FIELDS]
            print("\t".join((at, *words)), flush=True)

    def sum_up(self) -> None:
        """Say on stderr how many calls ended, and how."""
        total = sum(self._ended.values())
        parts = ", ".join(f"{count} {status}" for status, count in self._ended.most_common())
        lasted = took(self._clock.monotonic() - self._since)
        counted = f"{total} call{'' if total == 1 else 's'} ended{f': {parts}' if parts else ''}"
        self._output.note(f"\n{counted} · {lasted}")


def line_of(output: Output, item: JsonObject, width: int) -> str:
    """A call as one aligned line; what does not fit is cut, ids in their middle."""
    wide = width >= NARROW
    at = moment(item.get("updated_at"))
    status, length = str(item.get("status")), item.get("duration_ms")
    cells = (
        (at.astimezone().strftime("%H:%M:%S") if at else "", 8),
        (status, 14 if wide else 9),
        (str(item.get("agent")), 24 if wide else 16),
        (str(item.get("skill") or ""), 20 if wide else 12),
    )
    text = " ".join(f"{_cut(visible(one_line(value)), size):<{size}}" for value, size in cells)
    text += f" {took(length / 1000) if isinstance(length, int | float) else '':>9} "
    left = width - len(text)
    error = visible(str(item.get("error_code") or ""))
    if error:
        error = f"{_cut(error, left - LEAST_ID - 1)} "
    rest = error + shortened(str(item.get("id")), left - len(error))
    style = STATE_STYLES.get(status, DIM)
    return text.replace(status, output.paint(status, style, sys.stdout), 1) + rest


class Tail:
    """The feed of a hub, over as many connections as it takes."""

    def __init__(self, hub: Hub, output: Output, shown: Shown, query: dict[str, str]) -> None:
        self._hub = hub
        self._output = output
        self._shown = shown
        self._query = query
        self._last_id = ""

    async def follow(self) -> None:
        """Show what comes, for ever. Raises Fault where the hub refuses, or was never there."""
        from dragoman.sdk.errors import HubUnreachable

        http = self._hub.http()
        wait_s, heard = FIRST_WAIT_S, False
        while True:
            try:
                async for item in self._listen(http):
                    if wait_s > FIRST_WAIT_S:
                        self._output.note("connected again")
                    wait_s, heard = FIRST_WAIT_S, True
                    if item:
                        self._shown.call(item)
            except HubUnreachable as error:
                if not heard:
                    raise self._hub.unreachable(error.reason or "reset", sent=error.sent) from error
                if wait_s == FIRST_WAIT_S:
                    self._output.note("the connection is lost; trying again")
            await http.clock.sleep(http.clock.jitter(wait_s, 0.2))
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    async def _listen(self, http: "HubHttp") -> "AsyncGenerator[JsonObject]":
        """What one connection brings: first nothing, as a sign that it is there."""
        query = {**self._query}
        headers: dict[str, str] = {}
        if self._last_id:
            query.pop("since", None)
            headers["last-event-id"] = self._last_id
        path = f"{PATH}?{urlencode(query)}" if query else PATH
        async with http.stream("GET", path, headers=headers, timeout_s=LONGEST_S, idle_s=IDLE_S) as events:
            if not events.is_stream:
                raise self._hub.refused(events.status, await events.whole())
            yield {}
            async for event in events:
                self._last_id = event.id or self._last_id
                if event.name == "call":
                    yield _object(event.data)


async def _nothing() -> bool:
    """There is nothing to cancel at the hub: it only told."""
    return False


def _object(data: bytes) -> JsonObject:
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: max(0, size - 1)]}…"
