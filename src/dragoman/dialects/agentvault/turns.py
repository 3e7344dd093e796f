"""Which turns of an agent are known: agents of this dialect have no ids for what they say.

The same turn is told in a stream and again in the task. A place in the task is a name; where there is none, as in a
stream, a turn is known by its content.
"""

from typing import Final, assert_never, final

from dragoman.model.content import Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.json import Json
from dragoman.model.task import Task

TURN: Final = "av-message-"  # and its place: the ids that the hub gives such turns


@final
class Turns:
    """The turns of a task that are not its caller's, while further ones come in."""

    __slots__ = ("_heard",)

    def __init__(self, task: Task) -> None:
        self._heard = [turn for turn in task.messages if turn.role is not Role.USER]

    def is_new(self, turn: Message) -> bool:
        """Whether a turn was not known; each known one stands for one turn alone."""
        for index, known in enumerate(self._heard):
            if known.id == turn.id or echoes(turn, known):
                del self._heard[index]
                return False
        return True


def echoes(turn: Message, known: Message) -> bool:
    """Whether a turn says the same as another; a file goes by an address, which need not stay the same."""
    return turn.role is known.role and [_content(part) for part in turn.parts] == [
        _content(part) for part in known.parts
    ]


def _content(part: Part) -> tuple[str, Json]:
    match part:
        case Text(text=text):
            return "text", text
        case Data(value=value):
            return "data", value
        case Blob() | Link():
            return "file", None
        case _ as never:
            assert_never(never)
