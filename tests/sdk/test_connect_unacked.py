"""What a call has said and the hub has not acknowledged: nothing lost, nothing twice, whatever happens on the way."""

import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.json import JsonObject
from dragoman.sdk.connect.backoff import FIRST_S, LONGEST_S, Backoff
from dragoman.sdk.connect.ended import EndedCalls
from dragoman.sdk.connect.links import Gap, Stale
from dragoman.sdk.connect.pieces import PIECE_BYTES, pieces
from dragoman.sdk.connect.unacked import BATCH_BYTES, BATCH_EVENTS, HELD_BYTES, HELD_EVENTS, Batch, Unacked, said
from tests.contracts.manual_clock import ManualClock


class Hub:
    """What a hub does with the events of one call."""

    def __init__(self) -> None:
        self.attempt = 1
        self.n = 0
        self.heard = (1, 0)
        self.committed: list[int] = []

    def tell(self, batch: Batch) -> int:
        if batch.attempt != self.attempt:
            raise Stale
        for event in batch.events:
            if event["n"] > self.n + 1:
                raise Gap(self.n + 1)
            if event["n"] == self.n + 1:
                self.n += 1
                self.heard = (self.attempt, self.n)
                self.committed.append(event["data"]["number"])
        return self.n

    def begin_attempt(self) -> tuple[int, tuple[int, int]]:
        self.attempt, self.n = self.attempt + 1, 0
        return self.attempt, self.heard


class Happens(enum.Enum):
    """What may happen between a call and its hub."""

    SAID = enum.auto()
    SENT = enum.auto()
    LOST = enum.auto()  # before it arrived
    ANSWER_LOST = enum.auto()
    SENT_TWICE = enum.auto()
    NEW_ATTEMPT = enum.auto()
    ATTEMPT_PASSED_BY = enum.auto()  # its frame never arrived


def _exchange(call: Unacked, hub: Hub, *, heard: bool = True) -> None:
    batch = call.batch(3)
    if batch is None:
        return
    try:
        acked = hub.tell(batch)
    except Stale:
        return
    except Gap as gap:
        assert call.expect(batch.attempt, gap.expected)
        return
    if heard:
        call.ack(batch.attempt, acked)


@given(st.lists(st.sampled_from(Happens), max_size=60))
def test_every_event_is_committed_once_and_in_order_whatever_happens_on_the_way(happens: list[Happens]) -> None:
    call, hub = Unacked(1), Hub()
    count = 0
    for each in happens:
        match each:
            case Happens.SAID:
                call.add(said("chunk", {"number": count}))
                count += 1
            case Happens.SENT:
                _exchange(call, hub)
            case Happens.LOST:
                call.batch(3)
            case Happens.ANSWER_LOST:
                _exchange(call, hub, heard=False)
            case Happens.SENT_TWICE:
                _exchange(call, hub, heard=False)
                _exchange(call, hub)
            case Happens.NEW_ATTEMPT:
                attempt, heard = hub.begin_attempt()
                call.adopt(attempt, heard=heard)
            case Happens.ATTEMPT_PASSED_BY:
                hub.begin_attempt()
    call.add(said("complete", {"number": count}))
    attempt, heard = hub.begin_attempt()
    call.adopt(attempt, heard=heard)
    for _ in range(count + 1):
        _exchange(call, hub)
    assert hub.committed == list(range(count + 1))
    assert call.settled and call.size == 0


@given(st.lists(st.integers(0, 400_000), min_size=1, max_size=30), st.integers(1, 10))
def test_a_batch_has_its_bounds_and_one_event_that_is_too_large_goes_alone(sizes: list[int], most: int) -> None:
    call = Unacked(1)
    for size in sizes:
        call.add(said("chunk", {"content": "x" * size}))
    batch = call.batch(most)
    assert batch is not None and 1 <= len(batch.events) <= most
    assert len(batch.events) == 1 or len(json.dumps(batch.events)) <= BATCH_BYTES
    assert [event["n"] for event in batch.events] == list(range(1, len(batch.events) + 1))


def test_what_is_unacknowledged_is_bounded_by_number_and_by_bytes() -> None:
    many, large = Unacked(1), Unacked(1)
    for _ in range(HELD_EVENTS):
        assert not many.full
        many.add(said("chunk", {"content": "x"}))
    large.add(said("chunk", {"content": "x" * HELD_BYTES}))
    assert many.full and large.full
    assert len((many.batch() or Batch(1, [])).events) == BATCH_EVENTS


def test_an_answer_tells_that_its_question_is_on_disk() -> None:
    call = Unacked(1)
    for event, data in (("start", {}), ("ask", {"ask": 0, "prompt": "?"}), ("log", {"message": "waits"})):
        call.add(said(event, data))
    call.batch()  # its answer is lost
    call.adopt(2, answered=0)
    assert call.batch() == Batch(2, [{"n": 1, "event": "log", "data": {"message": "waits"}}])


def test_an_acknowledgement_that_comes_after_the_next_attempt_began_still_counts() -> None:
    call = Unacked(1)
    call.add(said("chunk", {"content": "a"}))
    call.add(said("chunk", {"content": "b"}))
    call.batch()
    call.adopt(2)
    assert call.ack(1, 1)
    assert call.batch() == Batch(2, [{"n": 1, "event": "chunk", "data": {"content": "b"}}])
    assert not call.ack(1, 2), "what counts now is the second attempt"


def test_a_hub_that_forgot_what_it_acknowledged_cannot_be_told_again() -> None:
    call = Unacked(1)
    call.add(said("chunk", {"content": "a"}))
    call.add(said("chunk", {"content": "b"}))
    call.batch()
    call.ack(1, 1)
    assert call.expect(1, 2)
    assert not call.expect(1, 1)


def test_a_call_that_ended_has_its_end_to_tell_to_whoever_asks_again() -> None:
    ended = EndedCalls()
    call = Unacked(1)
    call.add(said("start", {}))
    call.add(said("complete", {"result": 1}))
    call.batch()
    call.ack(1, 2)
    assert call.settled
    ended.add("a", call)
    assert ended.take("a") is call and len(ended) == 0
    call.adopt(2)
    assert call.batch() == Batch(2, [{"n": 1, "event": "complete", "data": {"result": 1}}])


def test_the_oldest_ended_calls_are_forgotten_first_by_number_and_by_bytes() -> None:
    few, light = EndedCalls(most=2), EndedCalls(most_bytes=10_000)
    for name in "abc":
        for memory in (few, light):
            call = Unacked(1)
            call.add(said("complete", {"result": "x" * 4000}))
            memory.add(name, call)
    assert [few.find(name) is None for name in "abc"] == [True, False, False]
    assert [light.find(name) is None for name in "abc"] == [True, True, False]


@given(st.lists(st.text(max_size=300_000), max_size=6), st.booleans(), st.booleans())
def test_a_large_artifact_goes_in_pieces_that_make_it_up_again(texts: list[str], append: bool, last: bool) -> None:
    parts = [{"text": text} for text in texts]
    _make_it_up_again({"id": "a", "name": "n", "parts": parts, "append": append, "last": last})


@pytest.mark.parametrize("text", ["x" * 3_000_000, "\x01" * 500_000, "ä€🙂" * 200_000])
def test_words_are_cut_so_that_each_piece_fits(text: str) -> None:
    _make_it_up_again({"id": "a", "parts": [{"text": text}, {"data": 1}], "append": False, "last": True})
    chunks = list(pieces("chunk", {"content": text}))
    assert "".join(each["content"] for each in chunks) == text
    assert all(len(json.dumps(each, ensure_ascii=False).encode()) <= PIECE_BYTES + 100 for each in chunks)


def _make_it_up_again(artifact: JsonObject) -> None:
    made = list(pieces("artifact", artifact))
    assert "".join(part.get("text", "") for piece in made for part in piece["parts"]) == "".join(
        part.get("text", "") for part in artifact["parts"]
    )
    assert made[0]["append"] == artifact["append"] and all(piece["append"] for piece in made[1:])
    assert made[-1]["last"] == artifact["last"] and not any(piece["last"] for piece in made[:-1])
    assert made[0].get("name") == artifact.get("name")
    for piece in made:
        assert len(json.dumps(piece, ensure_ascii=False).encode()) <= PIECE_BYTES + 1000


def test_what_cannot_be_cut_goes_whole() -> None:
    data = {"id": "a", "parts": [{"data": "x" * 2_000_000}], "append": False, "last": True}
    assert list(pieces("artifact", data)) == [data]
    assert list(pieces("complete", {"result": "x" * 2_000_000})) == [{"result": "x" * 2_000_000}]


def test_tries_wait_longer_and_longer_and_begin_anew_once_it_worked() -> None:
    backoff = Backoff(ManualClock())  # without chance, half of the most
    waited = [backoff.next_s() * 2 for _ in range(8)]
    assert waited == pytest.approx([FIRST_S, 0.4, 0.8, 1.6, 3.2, 6.4, LONGEST_S, LONGEST_S])
    backoff.reset()
    assert backoff.next_s() * 2 == pytest.approx(FIRST_S)
