"""Text that strangers wrote and people will read: no control, bidirectional or invisible characters, bounded length."""

import re
from typing import Final

# C0 and C1 controls (tab and newline stay), zero-width characters, and the marks that reorder what is shown.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_NOT_ID: Final = re.compile(r"[^a-z0-9]+")
ID_GRAMMAR: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def shown_text(text: str, limit: int) -> str:
    """The text without what nobody can see, cut at `limit` characters."""
    return _UNSEEN.sub("", text)[:limit]


def id_of_name(name: str) -> str:
    """An agent id made from a name: `Research Assistant` is `agt_research_assistant`."""
    return "agt_" + (_NOT_ID.sub("_", name.lower()).strip("_")[:100] or "agent")
