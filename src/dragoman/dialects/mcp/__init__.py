"""The Model Context Protocol: tools of MCP servers as skills of agents, and skills of agents as tools of the hub.

Outwards it is a dialect like any other, with two things that no other needs: a session that is opened first, and a card
that is made of what the server answers. Inwards a tool's name has to be looked up and its session kept apart from
others, so the hub's own `/mcp` is served by `server/mcp/`, in the words of this folder.

protocol.py     revisions, headers, `_meta`           names.py     what a skill is called as a tool
outbound.py     a tool call and its answer            tools.py     a skill as a tool, its arguments as a message
greeting.py     a session is opened                   results.py   a call's end and its progress, to a client
introduction.py card.py   what a server has           content.py   content blocks, both ways
"""

from typing import Final

from dragoman.dialects.dialect import Dialect
from dragoman.dialects.mcp.card import FEATURES, owns_card, read_card
from dragoman.dialects.mcp.greeting import greet
from dragoman.dialects.mcp.introduction import introduce
from dragoman.dialects.mcp.outbound import McpListener, ask, hear
from dragoman.dialects.mcp.protocol import SLUG

TASK_PREFIX: Final = "mcp-"

DIALECT: Final = Dialect(
    name="mcp",
    slug=SLUG,
    task_prefix=TASK_PREFIX,
    features=FEATURES,
    ask=ask,
    hear=hear,
    listen=McpListener,
    greet=greet,
    introduce=introduce,
    owns_card=owns_card,
    read_card=read_card,
)
