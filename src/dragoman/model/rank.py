"""Which of the calls that wait goes first: one number, fixed when a call arrives; the smallest goes first.

A class of priority is worth a minute of waiting, so that none waits for ever behind more urgent ones that keep coming.
"""

from datetime import datetime
from typing import Final

from dragoman.model.operations import Priority

CLASS_S: Final = 60.0


def rank(priority: Priority, arrived: datetime) -> float:
    """A call's place in the order, in memory and on disk alike."""
    return arrived.timestamp() - CLASS_S * priority
