"""How often agents that connect came back to a session: to one that is still there, or in vain.

Several requests of one process may find that its session is over, and each is told so: it is lost once.
"""

from typing import Final, final

PREFIX: Final = "ses_"  # how the ids of sessions begin
LONGEST: Final = 64  # more than any of them has
MOST_LOST: Final = 1000  # whose ids are kept; beyond them the oldest is forgotten


@final
class Resumes:
    """Counts them."""

    def __init__(self) -> None:
        self.kept = 0
        self.lost = 0
        self._lost: dict[str, None] = {}

    def note_lost(self, session_id: str) -> None:
        """Somebody wanted to go on in a session that is over, or that an earlier life of the hub had."""
        if session_id in self._lost or not session_id.startswith(PREFIX) or len(session_id) > LONGEST:
            return
        self.lost += 1
        if len(self._lost) >= MOST_LOST:
            del self._lost[next(iter(self._lost))]
        self._lost[session_id] = None
