"""How long a call will take, told from the skill's past: the median of its last completed calls.

    a call ends ──► memory ──(every 10 s, and at the end)──► one row per skill
    estimate    ◄── memory ◄──(the first time it is needed)──┘

Failed and cancelled calls say nothing of how long work takes. Where many calls are known, those of the last tenth of a
second need not be among them.
A crash loses the last seconds of this, and nothing but an estimate hangs on it.
"""

from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, final

from dragoman.hub.carry import Spawn
from dragoman.model.ended import Alike
from dragoman.model.operations import SendTask, Step
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import Clock, Timer
from dragoman.ports.store import Durations, Took

LAST: Final = 100
ENOUGH: Final = 20  # calls, from which on it can be said how long nearly all of them take
WRITTEN_S: Final = 10.0
MOST_SKILLS: Final = 10_000  # remembered at once; the longest unused is read again when it is needed
MOST_MS: Final = 2**32 - 1
_COMPLETED: Final = TaskState.COMPLETED

Kind = tuple[str, str, str]  # tenant, agent, skill


@final
class _History:
    """The durations that are known of one skill, and whether those on disk are among them."""

    __slots__ = ("_median_ms", "is_whole", "last_ms")

    def __init__(self) -> None:
        self.last_ms: array[int] = array("I")
        self.is_whole = False
        self._median_ms: int | None = None  # until something is added

    def add(self, durations_ms: Sequence[int], *, earlier: bool = False) -> None:
        """Calls took so long: the last ones, or some before all that are known."""
        place = 0 if earlier else len(self.last_ms)
        self.last_ms[place:place] = array("I", durations_ms)
        del self.last_ms[:-LAST]
        self._median_ms = None

    def median_ms(self) -> int | None:
        """What half of them took at most; None where none is known."""
        if self._median_ms is None and self.last_ms:
            self._median_ms = sorted(self.last_ms)[len(self.last_ms) // 2]
        return self._median_ms


class Estimates:
    """Remembers how long calls took, and says how long the next one will."""

    def __init__(
        self,
        *,
        store: Durations,
        clock: Clock,
        spawn: Spawn,
        unknown_s: float,
        catch_up: Callable[[], None] = lambda: None,
        most_skills: int = MOST_SKILLS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._spawn = spawn
        self._unknown_ms = round(unknown_s * 1000)
        self._catch_up = catch_up  # has this told of every call that has ended
        self._most_skills = most_skills
        self._known: OrderedDict[Kind, _History] = OrderedDict()
        self._changed: set[Kind] = set()
        self._timer: Timer | None = None

    def ended(self, alike: Alike) -> None:
        """Learn from calls that have ended and are alike."""
        task = alike[0].task
        if task.state is not _COMPLETED:
            return
        kind = (task.tenant, task.agent_id, task.skill or "")
        history = self._known[kind] if kind in self._changed else self._changing(kind)
        history.add([each.agent_ms if each.agent_ms < MOST_MS else MOST_MS for each in alike])

    def estimate_ms(self, task: Task) -> int | Awaitable[int]:
        """How long this call will take, its steps included, never longer than it may; at once where memory knows it.

        Of a skill that never completed a call nothing is known: it counts as long as a waiting call may take.
        """
        history = self._known.get((task.tenant, task.agent_id, task.skill or ""))
        if history is None or len(history.last_ms) < ENOUGH:
            self._catch_up()
        if history is None or not history.is_whole or task.asked.then:
            return self._estimated_ms(task)
        return min(self._usual_of(history), _limit_ms(task.asked))

    async def _estimated_ms(self, task: Task) -> int:
        took_ms = await self._usual_ms(task.tenant, task.agent_id, task.skill)
        for step in task.asked.then:
            side_by_side = (step,) if isinstance(step, Step) else step
            took_ms += max([await self._usual_ms(task.tenant, each.agent, each.skill) for each in side_by_side])
        return min(took_ms, _limit_ms(task.asked))

    def p95_ms(self, tenant: str, agent_id: str, skill: str | None) -> int | None:
        """What 95 of 100 calls of a skill took at most, by memory alone; None where fewer than 20 are known."""
        self._catch_up()
        history = self._known.get((tenant, agent_id, skill or ""))
        if history is None or len(history.last_ms) < ENOUGH:
            return None
        known = sorted(history.last_ms)
        return known[(len(known) * 95 - 1) // 100]

    def mean_ms(self, tenant: str, agent_id: str, skill: str | None) -> int | None:
        """What a call of a skill took on the average, by memory alone; None where none is known."""
        self._catch_up()
        history = self._known.get((tenant, agent_id, skill or ""))
        if history is None or not history.last_ms:
            return None
        return sum(history.last_ms) // len(history.last_ms)

    async def write(self) -> None:
        """Put what was learnt since the last time on disk."""
        self._catch_up()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        changed, self._changed = self._changed, set()
        histories: list[Took] = []
        for kind in changed:
            history = await self._read(kind)
            histories.append(Took(tenant=kind[0], agent_id=kind[1], skill=kind[2], last_ms=tuple(history.last_ms)))
        if histories:
            await self._store.put_took(histories)

    async def _usual_ms(self, tenant: str, agent_id: str | None, skill: str | None) -> int:
        if agent_id is None:
            return self._unknown_ms
        return self._usual_of(await self._read((tenant, agent_id, skill or "")))

    def _usual_of(self, history: _History) -> int:
        median_ms = history.median_ms()
        return self._unknown_ms if median_ms is None else median_ms

    async def _read(self, kind: Kind) -> _History:
        """All that is known of a skill: what is on disk is older than what memory has."""
        history = self._history(kind)
        if not history.is_whole:
            earlier = await self._store.took(*kind)
            if not history.is_whole:
                history.add(earlier, earlier=True)
                history.is_whole = True
        return history

    def _changing(self, kind: Kind) -> _History:
        """The history of a skill that has changed, for the first time since the last writing."""
        history = self._history(kind)
        self._changed.add(kind)
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + WRITTEN_S, self._write_soon)
        return history

    def _history(self, kind: Kind) -> _History:
        history = self._known.get(kind)
        if history is None:
            history = self._known[kind] = _History()
            if len(self._known) > self._most_skills:
                self._changed.discard(self._known.popitem(last=False)[0])
        else:
            self._known.move_to_end(kind)
        return history

    def _write_soon(self) -> None:
        self._timer = None
        self._spawn(self.write())


def _limit_ms(asked: SendTask) -> int:
    return MOST_MS if asked.timeout_s is None else round(asked.timeout_s * 1000)
