"""Calls that come again, are answered, or cancelled: their work goes on, and is never begun twice at once."""

import asyncio

from dragoman import Context
from dragoman.sdk.connect.links import Stale
from tests.sdk.connect_worker import Worker, played
from tests.support.scripted_link import Scripted


def test_a_stale_attempt_goes_on_as_the_later_one_that_is_on_its_way() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: at.link.said("c1") == ["start", "progress"])
        at.link.begin_attempt("c1", 2)
        worker.go_on.set()
        await at.until(lambda: len(at.link.posts) == 3)
        await at.pass_s(4)
        at.link.offer("c1", "wait", attempt=2, heard={"attempt": 1, "n": 2})
        await at.until(lambda: at.link.said("c1") == ["start", "progress", "complete"])

    played(worker, told)
    assert worker.ran == ["c1"], "its work went on"


def test_a_stale_attempt_that_nothing_follows_is_let_go_of() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.telling.append(Stale())
        at.link.offer("c1", "wait")
        await at.until(lambda: worker.ran == ["c1"])
        await at.pass_s(4)
        assert not worker.cancelled
        await at.pass_s(2)
        assert worker.cancelled == ["c1"] and at.link.said("c1") == []
        at.link.offer("c1", "wait", attempt=2)
        worker.go_on.set()
        await at.until(lambda: at.link.said("c1") == ["start", "progress", "complete"])

    played(worker, told)
    assert worker.ran == ["c1", "c1"], "whoever let go of it begins anew"


def test_a_call_that_a_heartbeat_drops_is_let_go_of_unless_a_later_attempt_comes() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        for name in ("c1", "c2"):
            at.link.offer(name, "wait")
        await at.until(lambda: at.link.said("c1") == at.link.said("c2") == ["start", "progress"])
        at.link.opening.append({"drop": ["c1", "c2", "c3"]})
        await at.pass_s(10)
        at.link.offer("c2", "wait", attempt=2, heard={"attempt": 1, "n": 2})
        await at.pass_s(6)
        assert worker.cancelled == ["c1"]
        worker.go_on.set()
        await at.until(lambda: at.link.said("c2") == ["start", "progress", "complete"])

    played(worker, told)
    assert worker.ran == ["c1", "c2"]


def test_a_call_is_not_begun_again_while_its_handler_cleans_up() -> None:
    worker = Worker()
    clean = asyncio.Event()

    async def tidy(ctx: Context) -> str:
        worker.ran.append(f"begins {ctx.attempt}")
        try:
            await worker.go_on.wait()
        except asyncio.CancelledError:
            await clean.wait()
            raise
        finally:
            worker.ran.append(f"ends {ctx.attempt}")
        return "done"

    worker.agent.skill(tidy)

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "tidy")
        await at.until(lambda: worker.ran == ["begins 1"])
        at.link.opening.append({"drop": ["c1"], "session_id": "s1"})
        at.link.end_session()
        await at.until(lambda: len(at.link.hellos) == 2)
        at.link.offer("c1", "tidy", attempt=2)
        await at.pass_s(3)
        assert worker.ran == ["begins 1"]
        worker.go_on.set()
        clean.set()
        await at.until(lambda: at.link.said("c1")[-1:] == ["complete"])

    played(worker, told)
    assert worker.ran == ["begins 1", "ends 1", "begins 2", "ends 2"]


def test_a_call_that_ended_here_is_answered_from_memory() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1")
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])
        at.link.offer("c1")  # the very same frame again
        at.link.offer("c1", attempt=2)
        await at.until(lambda: at.link.said("c1") == ["start", "complete", "complete"])
        assert at.link.committed["c1"][2][1]["result"] == {"was": "c1"}

    played(worker, told)
    assert worker.ran == ["c1"]


def test_what_is_more_than_the_agent_can_do_is_handed_back() -> None:
    worker = Worker(concurrency=2)

    async def told(at: Scripted) -> None:
        for name in ("c1", "c2", "c3"):
            at.link.offer(name, "wait")
        await at.until(lambda: at.link.said("c3") == ["released"])
        worker.go_on.set()
        await at.until(lambda: at.link.said("c1")[-1:] == at.link.said("c2")[-1:] == ["complete"])
        at.link.offer("c3", "wait", attempt=2)
        await at.until(lambda: at.link.said("c3")[-1:] == ["complete"])

    played(worker, told)
    assert worker.ran == ["c1", "c2", "c3"]


def test_questions_take_no_capacity_and_each_answer_is_a_new_attempt() -> None:
    worker = Worker(concurrency=1)

    def answer(at: Scripted, attempt: int, ask: int, text: str) -> None:
        at.link.begin_attempt("c1", attempt)
        message = {"id": f"m{ask}", "role": "user", "parts": [{"text": text}]}
        at.link.say("input", call_id="c1", attempt=attempt, ask=ask, message=message)

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "ask")
        await at.until(lambda: at.link.said("c1") == ["start", "ask"])
        at.link.offer("c2")
        await at.until(lambda: at.link.said("c2") == ["start", "complete"])
        answer(at, 2, 0, "one")
        await at.until(lambda: at.link.said("c1") == ["start", "ask", "ask"])
        answer(at, 2, 0, "one")  # the same once more
        answer(at, 3, 1, "two")
        await at.until(lambda: at.link.said("c1")[-1:] == ["complete"])
        assert at.link.committed["c1"][-1][1]["result"] == "one, two"

    played(worker, told)


def test_an_answer_that_was_lost_with_its_session_comes_with_the_next_offer() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "ask")
        await at.until(lambda: at.link.said("c1") == ["start", "ask"])
        messages = [{"id": f"m{text}", "role": "user", "parts": [{"text": text}]} for text in ("one", "two")]
        at.link.offer("c1", "ask", attempt=2, answers=messages, heard={"attempt": 1, "n": 2})
        await at.until(lambda: at.link.said("c1")[-1:] == ["complete"])
        assert at.link.said("c1") == ["start", "ask", "complete"]

    played(worker, told)
    assert worker.ran == ["c1"]


def test_an_answer_to_a_call_that_is_not_here_is_handed_back() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.begin_attempt("c1", 4)
        at.link.say("input", call_id="c1", attempt=4, ask=0, message={"id": "m", "role": "user", "parts": []})
        await at.until(lambda: at.link.said("c1") == ["released"])

    played(worker, told)


def test_a_cancelled_call_ends_as_cancelled() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: at.link.said("c1") == ["start", "progress"])
        at.link.say("cancel", call_id="c1", attempt=1, reason="enough")
        at.link.say("cancel", call_id="c9", attempt=1, reason="of nothing")
        await at.until(lambda: at.link.said("c1") == ["start", "progress", "cancelled"])

    played(worker, told)
    assert worker.cancelled == ["c1"]
