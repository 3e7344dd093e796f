"""Text that strangers wrote and people will read: no control, bidirectional or invisible characters, bounded length."""

import re
from typing import Final
from urllib.parse import quote

# C0 and C1 controls (tab and newline stay), zero-width characters, the marks that reorder what is shown, and the tags
# and selectors in which whole sentences can be hidden from people, though not from models.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NOT_ID: Final = re.compile(r"[^a-z0-9]+")
ID_GRAMMAR: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def shown_text(text: str, limit: int) -> str:
    """The text without what nobody can see, cut at `limit` characters."""
    return _UNSEEN.sub("", text)[:limit]


def id_of_name(name: str) -> str:
    """An agent id made from a name: `Research Assistant` is `agt_research_assistant`."""
    return "agt_" + (_NOT_ID.sub("_", name.lower()).strip("_")[:100] or "agent")


def path_segment(value: str) -> str:
    """Any text as one segment of a path: nothing in it parts the path, ends it, or leads up in it."""
    escaped = quote(value, safe="")
    return escaped.replace(".", "%2E") if escaped in (".", "..") else escaped
