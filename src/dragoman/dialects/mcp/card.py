"""What the hub makes of an MCP server's answers: a card whose skills are its tools, with their schemas as they are.

{"mcp": revision, "url", "serverInfo": {…}, "instructions"?, "tools": [{name, title?, inputSchema, …}]}
"""

from typing import Final

import msgspec

from dragoman.dialects.mcp.protocol import ALONE, SESSIONS, SLUG, member, text_in
from dragoman.dialects.text import id_of_name, shown_text
from dragoman.model.agent import AgentCard, Endpoint, Original, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_array, is_object

# A tool takes one object and gives its answer at once; it cannot be asked for later, nor be answered.
FEATURES: Final = frozenset({Feature.ANSWERS, Feature.STREAM, Feature.CANCEL})


def owns_card(card: JsonObject) -> bool:
    """Whether a card is one that was made of an MCP server's answers."""
    return "mcp" in card and "tools" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card. Raises BadParams."""
    version, url, tools = text_in(card, "mcp"), text_in(card, "url"), card.get("tools")
    if version not in SESSIONS and version not in ALONE:
        raise _bad("mcp", f"expected one of {', '.join((*SESSIONS, *ALONE))}")
    if not url:
        raise _bad("url", "required")
    if not is_array(tools):
        raise _bad("tools", "expected a list")
    server = member(card, "serverInfo")
    name = text_in(server, "title") or text_in(server, "name") or "MCP server"
    return AgentCard(
        id=id_of_name(text_in(server, "name") or name),
        name=shown_text(name, 128),
        description=shown_text(text_in(card, "instructions") or text_in(server, "description"), 4096),
        version=text_in(server, "version") or "1.0.0",
        skills=tuple(_skill(tool) for tool in tools),
        endpoints=(Endpoint(dialect=SLUG, url=url, version=version, features=FEATURES),),
        streaming=True,
        original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
    )


def _skill(tool: Json) -> Skill:
    name = text_in(tool, "name") if is_object(tool) else ""
    if not name or not is_object(tool):
        raise _bad("tools", "every tool has a name")
    notes = member(tool, "annotations")
    return Skill(
        id=name,
        name=text_in(tool, "title") or text_in(notes, "title") or name,
        description=text_in(tool, "description"),
        input_schema=member(tool, "inputSchema") or None,
        output_schema=member(tool, "outputSchema") or None,
        idempotent=notes.get("idempotentHint") is True or notes.get("readOnlyHint") is True,
    )


def _bad(field: str, message: str) -> BadParams:
    path = f"agent_card.{field}"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
