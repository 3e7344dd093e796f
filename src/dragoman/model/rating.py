"""How good an agent is held to be: what its callers said and what its calls came to, weighed against what is assumed
of a fresh one. Never what its card says.

A fresh agent has 4.5, so that a search for good ones finds it. That counts as ten words: one angry caller does not
bury an agent that nobody knows, and after some dozens of calls only what was said and done matters. A call speaks, too,
five stars where it completed and one where it failed; ten calls weigh as much as one caller's word.
"""

from typing import Final

FRESH: Final = 4.5
FRESH_WEIGHT: Final = 10
COUNTED: Final = 1000  # the newest ratings, and at most so many calls; older ones speak of another agent
CALL_WEIGHT: Final = 0.1
BEST: Final = 5
WORST: Final = 1


def rating_of(stars: int, said: int, calls: int = 0, failures: int = 0) -> float:
    """The rating by the sum of all stars that were given, how often some were, and by the calls of late that count and
    those of them that failed; one decimal."""
    weight = CALL_WEIGHT * min(calls, COUNTED)
    worth = BEST - (BEST - WORST) * failures / calls if calls else 0.0
    whole = FRESH * FRESH_WEIGHT + stars + worth * weight
    return round(whole / (FRESH_WEIGHT + said + weight), 1)
