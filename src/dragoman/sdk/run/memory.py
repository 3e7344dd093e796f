"""What was said in each conversation with a model, so that the next turn can go on from it. Bounded, in this process.

A conversation keeps its newest turns; of the conversations, the one unused for longest goes first.
"""

from collections import OrderedDict
from typing import Final, final

from dragoman.sdk.run.models import ModelMessage

CONVERSATIONS: Final = 1000
TURNS: Final = 50
CHARACTERS: Final = 128 * 1024  # of one conversation

Name = tuple[str, str]  # whose conversation it is, and its id: two callers may use the same id


@final
class Memory:
    """The conversations of one agent."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns: OrderedDict[Name, tuple[ModelMessage, ...]] = OrderedDict()

    def turns(self, name: Name) -> tuple[ModelMessage, ...]:
        """The turns so far, oldest first."""
        return self._turns.get(name, ())

    def add(self, name: Name, *turns: ModelMessage) -> None:
        """Note further turns, each a question and its answer."""
        self._turns[name] = newest((*self._turns.get(name, ()), *turns))
        self._turns.move_to_end(name)
        if len(self._turns) > CONVERSATIONS:
            self._turns.popitem(last=False)


def newest(turns: tuple[ModelMessage, ...]) -> tuple[ModelMessage, ...]:
    """The newest of the turns that the bounds allow; they begin with what a user said."""
    kept = 0
    size = 0
    for turn in reversed(turns[-TURNS:]):
        size += len(turn.text)
        if size > CHARACTERS:
            break
        kept += 1
    left = turns[len(turns) - kept :]
    while left and left[0].role != "user":
        left = left[1:]
    return left
