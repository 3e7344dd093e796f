"""What is kept of conversations, by whose they are and their id. Bounded, in this process: the one unused for longest
goes first, and of one that is kept the newest turns remain.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar, final

from dragoman.sdk.adapters.adapter import ConversationKey, Turn

CONVERSATIONS: Final = 1000
TURNS: Final = 50

T = TypeVar("T")


@final
class Conversations(Generic[T]):
    """Something for each conversation, made when it is first asked for."""

    __slots__ = ("_kept", "_make", "_most")

    def __init__(self, make: Callable[[], T], most: int = CONVERSATIONS) -> None:
        self._make = make
        self._most = most
        self._kept: OrderedDict[ConversationKey, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: ConversationKey) -> T:
        """That of a conversation."""
        if key not in self._kept:
            self._kept[key] = self._make()
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


@final
class Histories:
    """The messages of each conversation in a framework's own form, kept by turns: what belongs together stays so."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns: Conversations[deque[list[Any]]] = Conversations(lambda: deque(maxlen=TURNS))

    def of(self, turn: Turn, said: Callable[[bool, str], Any]) -> list[Any]:
        """What was said before this turn: as it was kept, else what the hub knows of it, in words.

        `said` makes a message of the framework: whether the user said it, and the words.
        """
        kept = self._turns.of(turn.conversation)
        if kept:
            return [message for messages in kept for message in messages]
        return [said(earlier.role == "user", earlier.text) for earlier in turn.ctx.history if earlier.text]

    def add(self, turn: Turn, before: Iterable[Any], messages: Iterable[Any]) -> None:
        """Keep what this turn added to what was said `before`."""
        kept = self._turns.of(turn.conversation)
        if not kept and (earlier := list(before)):
            kept.append(earlier)
        kept.append(list(messages))
