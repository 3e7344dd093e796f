"""What an agent says on a link that loses, repeats and refuses: it arrives once, and in order."""

import pytest

from dragoman import __version__
from dragoman.errors import Overloaded
from dragoman.model.errors import BadRequest
from dragoman.sdk.connect.unacked import HELD_EVENTS
from tests.sdk.connect_worker import AWAY, Worker, played
from tests.support.scripted_link import Scripted


def test_a_call_is_carried_out_and_what_it_says_is_numbered_from_one() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1")
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])
        assert at.link.committed["c1"][1][1]["result"] == {"was": "c1"}
        hello = at.link.hellos[0]
        assert hello["agent_id"] == "agt_test" and hello["capacity"] == 10 and hello["running"] == []
        assert hello["card"]["name"] == "Test" and hello["sdk"] == f"dragoman-python/{__version__}"

    played(worker, told)
    assert worker.ran == ["c1"]


def test_what_is_lost_on_the_way_is_sent_again_and_counts_once() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.losing = 3
        at.link.telling.extend([AWAY, Overloaded(), AWAY])
        at.link.offer("c1")
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])

    played(worker, told)
    assert worker.ran == ["c1"]


def test_one_post_is_under_way_and_what_gathers_meanwhile_goes_in_the_next() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.blocked.clear()
        at.link.offer("c1", "talk")
        await at.until(lambda: len(worker.ran) > 500)
        assert at.link.posts == [("c1", 1, 1)], "the first event goes at once, and nothing beside it"
        await at.settle()
        assert len(worker.ran) < HELD_EVENTS, "whoever says too much at once has to wait"
        at.link.blocked.set()
        await at.until(lambda: at.link.said("c1")[-1:] == ["complete"])
        assert at.link.posts[1] == ("c1", 1, 256)
        chunks = [data["content"] for event, data in at.link.committed["c1"] if event == "chunk"]
        assert "".join(chunks).split() == [str(number) for number in range(3 * HELD_EVENTS)]

    played(worker, told)


def test_a_hub_that_has_less_than_was_sent_is_told_from_where_it_stands() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: at.link.said("c1") == ["start", "progress"])
        at.link.losing = 1
        worker.go_on.set()
        await at.until(lambda: at.link.said("c1") == ["start", "progress", "complete"])

    played(worker, told)


def test_frames_that_make_no_sense_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.say("call", attempt="first")
        at.link.say("input", call_id=7)
        at.link.say("cancel")
        at.link.say("weather", sky="clear")
        at.link.offer("c1")
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])

    played(worker, told)
    assert sum("makes no sense" in record.message for record in caplog.records) == 3


def test_what_the_hub_will_never_take_fails_the_call(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.blocked.clear()
        at.link.offer("c1", "talk")
        await at.until(lambda: len(worker.ran) > 500)
        at.link.blocked.set()
        at.link.telling.extend([AWAY, BadRequest("all of it"), BadRequest("this")])
        await at.until(lambda: at.link.said("c1") == ["error"])
        assert at.link.committed["c1"][0][1]["details"] == {"reason": "refused_by_hub"}
        at.link.offer("c2", "wait")
        at.link.telling.extend([BadRequest("this"), BadRequest("and that")])
        await at.until(lambda: [post[0] for post in at.link.posts].count("c2") == 2)
        await at.pass_s(1)
        assert at.link.posts[-2:] == [("c2", 1, 1)] * 2, "not even that it failed: nothing more is tried"

    played(worker, told)
    assert caplog.text.count("the hub refused") == 3


def test_the_end_of_a_call_is_told_until_a_minute_after_its_deadline() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        deadline = at.clock.now().isoformat()
        at.link.telling.extend([AWAY] * 1000)
        at.link.offer("c1", deadline=deadline, options={"timeout_ms": 60000})
        await at.pass_s(59)
        sent = len(at.link.posts)
        assert sent > 5
        await at.pass_s(20)
        late = len(at.link.posts)
        await at.pass_s(30)
        assert len(at.link.posts) == late, "nobody wants it any more"
        at.link.telling.clear()
        at.link.offer("c1", attempt=2)
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])

    played(worker, told)
    assert worker.ran == ["c1"], "but it is not forgotten"
