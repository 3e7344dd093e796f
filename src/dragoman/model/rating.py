"""How good an agent is held to be: what its callers said, weighed against what is assumed of a fresh one.

A fresh agent has 4.5, so that a search for good ones finds it. That counts as ten words: one angry caller does not
bury an agent that nobody knows, and after some dozens of calls only what was said matters.
"""

from typing import Final

FRESH: Final = 4.5
FRESH_WEIGHT: Final = 10
COUNTED: Final = 1000  # the newest ratings; older ones speak of another agent


def rating_of(stars: int, said: int) -> float:
    """The rating by the sum of all stars that were given, and how often some were; one decimal."""
    return round((FRESH * FRESH_WEIGHT + stars) / (FRESH_WEIGHT + said), 1)
