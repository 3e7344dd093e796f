"""Bugs in what is counted."""

import msgspec

from dragoman.model.ended import Alike, ended_call
from dragoman.observe.metrics import Metrics
from dragoman.observe.once import Once
from tests.support.planting import put_in_place


def call_counted_twice(_: int) -> None:
    """Whoever cancels a call and whoever carries it both count it."""
    ended = Metrics.ended

    def twice(self: Metrics, alike: Alike) -> None:
        ended(self, alike)
        ended(self, alike)

    put_in_place(Metrics, "ended", twice)


def end_noted_by_all(_: int) -> None:
    """Everybody who sees a call end notes it."""

    def always(_self: Once, _name: str) -> bool:
        return True

    put_in_place(Once, "is_first", always)


def label_from_request(_: int) -> None:
    """What a caller wrote is a label."""
    ended = Metrics.ended

    def labelled(self: Metrics, alike: Alike) -> None:
        for each in alike:
            ended(self, [ended_call(msgspec.structs.replace(each.task, skill=each.task.context_id), each.carried)])

    put_in_place(Metrics, "ended", labelled)
