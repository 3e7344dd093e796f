"""Learn the outcome of a call whose first answer did not settle it: ask again, ever more slowly, until it does.

What the target offers decides; no dialect is named.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from dragoman.dialects.dialect import Heard
from dragoman.model.errors import AgentError
from dragoman.model.fit import Feature
from dragoman.ports.clock import Clock

FIRST_S: Final = 0.2
LONGEST_S: Final = 5.0


async def poll(
    features: frozenset[Feature], get: Callable[[], Awaitable[Heard]], *, clock: Clock, deadline: float
) -> AsyncIterator[Heard]:
    """Answers to repeated looks at the task, the last of which settles it.

    Raises AgentError where the target cannot be asked, and what `get` raises.
    """
    if Feature.GET not in features:
        raise AgentError("The agent did not finish, and cannot be asked how far it is.", reason="not_finished")
    wait_s = FIRST_S
    while True:
        await clock.sleep(min(wait_s, max(0.0, deadline - clock.monotonic())))
        heard = await get()  # which raises where no time is left, with what the caller is to know
        yield heard
        if heard.settled:
            return
        wait_s = min(wait_s * 2, LONGEST_S)
