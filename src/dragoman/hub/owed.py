"""The notice that an event owes to a callback, as a job that is born in the event's own commit."""

from dragoman.model.callbacks import Callback
from dragoman.ports.deliveries import NewNotice
from dragoman.ports.store import CALLBACKS, NewJob


def owed(callback: Callback, seq: int) -> NewJob:
    """The job of telling a callback of the task's event with this number."""
    return NewJob(queue=CALLBACKS, notice=NewNotice(callback_id=callback.id, seq=seq, url=callback.url or ""))
