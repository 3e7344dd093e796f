"""Hearing a stream of an A2A 0.3 agent over HTTP+JSON.

Some of its SDKs encode the bytes of files twice, and only the head of an answer tells which: a stream's events do not.
Where bytes can be read either way, what holds them is passed over, and so is the end: whoever listens then asks for the
task, and the head of that answer says how it is meant.
"""

from datetime import datetime
from typing import final

from dragoman.dialects.a2a_v03.rest_wire import may_be_encoded_twice, own_answer
from dragoman.dialects.dialect import Heard, Outgoing
from dragoman.dialects.kinds import restored_events
from dragoman.dialects.listening import TaskListener
from dragoman.dialects.protojson import camelled
from dragoman.dialects.sse import SseEvent
from dragoman.model.json import JsonObject


@final
class RestListener:
    """The listener of one stream."""

    __slots__ = ("_doubtful", "_listener")

    def __init__(self, outgoing: Outgoing) -> None:
        self._listener = TaskListener(outgoing, adapt=self._adapted, restore=restored_events)
        self._doubtful = False

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What an event says, of what was not known yet. Raises what TaskListener raises."""
        heard = self._listener.hear(event, at)
        if self._doubtful and heard.settled:
            return Heard(events=(), settled=False, remote=heard.remote)
        return heard

    def _adapted(self, value: JsonObject) -> JsonObject:
        shown: JsonObject = camelled(value)
        if may_be_encoded_twice(shown):
            self._doubtful = True
            return {}
        return own_answer(shown)
