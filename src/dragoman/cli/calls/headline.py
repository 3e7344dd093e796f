"""The first line of a streamed call: who carries it out, in which dialect, how well rated, and the call's id."""

import shutil
import sys
from typing import Final
from urllib.parse import quote

from dragoman.cli.output import Output
from dragoman.cli.table import shortened
from dragoman.model.json import JsonObject, is_object
from dragoman.sdk.client.http import HubHttp

ASK_S: Final = 5.0
GAP: Final = 2


async def show_headline(output: Output, http: HubHttp, call_id: str) -> None:
    """Ask the hub who it is, and say so on stderr."""
    call = await _asked(http, f"/v1/calls/{quote(call_id, safe='')}")
    agent = await _asked(http, f"/v1/agents/{quote(str(call.get('agent')), safe='')}")
    rating = agent.get("rating")
    words = [str(call.get("agent") or ""), str(agent.get("dialect") or ""), f"rating {rating}" if rating else ""]
    line = " · ".join(word for word in words if word)
    if not sys.stderr.isatty():
        output.note(" · ".join(word for word in (line, call_id) if word))
        return
    wide = shutil.get_terminal_size().columns - 1
    shown = shortened(call_id, max(12, wide - len(line) - GAP))
    output.note(f"{line}{' ' * max(GAP, wide - len(line) - len(shown))}{shown}")


async def _asked(http: HubHttp, path: str) -> JsonObject:
    reply = await http.ask("GET", path, timeout_s=ASK_S)
    return reply.body if reply.status == 200 and is_object(reply.body) else {}
