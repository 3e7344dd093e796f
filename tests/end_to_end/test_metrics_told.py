"""Metrics of what is told on the way, on a real hub: first pieces of streams, content that was changed, sessions."""

import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import pytest

from dragoman.delivery.resumes import MOST_LOST, Resumes
from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.test_connect import DONE, accepted
from tests.end_to_end.world import eventually, fresh
from tests.support.hub import HubProcess
from tests.support.raw_connected import calling, connect
from tests.support.scraped import Scraped
from tests.support.speaking import Content, File, StubAgent, json_answer, serving
from tests.support.sse_client import SseStream, sse
from tests.support.streaming_agent import StreamingAgent, streaming_agent

pytestmark = pytest.mark.req("P-36")
FIRST: Final = "dragoman_first_event_seconds"
LOSSES: Final = "dragoman_translation_losses_total"
RESUMES: Final = "dragoman_session_resumes_total"


@pytest.fixture(scope="module")
def teller() -> Iterator[StreamingAgent]:
    with streaming_agent() as agent:
        yield agent


def first_pieces(hub: HubProcess, target: str) -> tuple[float, float]:
    """How many first pieces of a target's streams were timed, and what they took together."""
    scraped = Scraped(hub)
    return scraped.value(f"{FIRST}_count", target_id=target), scraped.value(f"{FIRST}_sum", target_id=target)


def streamed(hub: HubProcess, stack: ExitStack, target: str) -> SseStream:
    asked: dict[str, Any] = {"target_agent_id": target, "skill": "tell", "input": {}}
    headers = {"Authorization": f"Bearer {hub.token}"}
    return stack.enter_context(sse(hub.url + "/v1/a2a/call/stream", asked, headers=headers))


def joined(hub: HubProcess, teller: StreamingAgent) -> str:
    target = fresh()
    assert hub.post("/v1/a2a/registry", {"agent_card": teller.card(target)}).status == 201
    return target


# -- first pieces


def test_a_stream_is_timed_once_from_its_sending_to_its_first_piece(hub: HubProcess, teller: StreamingAgent) -> None:
    target = joined(hub, teller)
    with ExitStack() as stack:
        asked = time.monotonic()
        stream = streamed(hub, stack, target)
        call = teller.next_call()
        came = time.monotonic()
        call.say("progress", {"progress": 0.25})
        assert [item.name for item in stream.take(2)] == ["start", "progress"]
        assert first_pieces(hub, target)[0] == 0  # That it works is no piece of its answer.
        said = time.monotonic()
        call.chunks("High ")
        assert stream.take(1)[0].name == "chunk"
        seen = time.monotonic()
        count, took_s = first_pieces(hub, target)
        assert count == 1
        assert said - came <= took_s <= seen - asked
        call.chunks("water")
        call.complete({"text": "High water"})
        assert [item.name for item in stream][-1] == "done"
    assert first_pieces(hub, target) == (1, took_s)


def test_a_stream_that_brings_no_piece_and_a_plain_call_are_not_timed(hub: HubProcess, teller: StreamingAgent) -> None:
    target = joined(hub, teller)
    with ExitStack() as stack, calling() as callers:
        stream = streamed(hub, stack, target)
        call = teller.next_call()
        call.say("error", {"code": "VALIDATION_ERROR", "message": "No such tide"})
        call.hang_up()
        assert [item.name for item in stream] == ["start", "error", "done"]
        plain = callers.submit(hub.call, "tell", {}, target)
        call = teller.next_call()
        assert not call.body["options"].get("stream")
        call.complete({"text": "x"})
        plain.result()
    assert Scraped(hub).value("dragoman_attempts_total", target_id=target) == 2
    assert first_pieces(hub, target)[0] == 0


def test_an_agent_that_answers_all_at_once_whatever_its_card_says_is_not_timed(hub: HubProcess) -> None:
    stub, asked = StubAgent("a2a-1.0"), list[str]()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        asked.append(body["method"])
        if asked[-1] == "SendStreamingMessage":
            return json_answer({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32004, "message": "no"}})
        said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "all at once"}]}
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "result": {"message": said}})

    with serving(stub, handle), ExitStack() as stack:
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        card = {"name": "Silent", "supportedInterfaces": [interface], "capabilities": {"streaming": True}}
        target = hub.register({**card, "skills": [{"id": "tell", "name": "tell", "description": "Tells"}]})["id"]
        asked.clear()  # It was looked at before.
        assert [item.name for item in streamed(hub, stack, target)][-2:] == ["complete", "done"]
    assert asked == ["SendStreamingMessage", "SendMessage"]
    assert first_pieces(hub, target)[0] == 0


def test_the_stream_of_an_agent_that_connects_is_timed_from_when_a_session_has_the_call(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    target = agent.agent_id
    assert agent.leave().status == 200
    accepted(hub, target)
    assert ({"target_id": target}, 0.0) in Scraped(hub).series("dragoman_agent_up")
    waited = time.monotonic()
    agent = connect(hub, target)
    with agent.frames() as frames:
        call = frames.next("call")
        came = time.monotonic()
        agent.tell(call, ("start", {}), ("progress", {"progress": 0.5}))
        assert first_pieces(hub, target)[0] == 0
        said = time.monotonic()
        agent.tell(call, ("chunk", {"content": "High "}))
        seen = time.monotonic()
        agent.tell(call, ("chunk", {"content": "water"}), ("complete", {"status": "completed"}))
    count, took_s = first_pieces(hub, target)
    assert count == 1
    assert said - came <= took_s <= seen - waited


def test_why_an_agent_will_not_answer_is_no_piece_of_an_answer(hub: HubProcess) -> None:
    agent = connect(hub, fresh("agt_out"))
    with agent.frames() as frames:
        accepted(hub, agent.agent_id)
        agent.tell(frames.next("call"), ("rejected", {"message": "Not I."}))
    eventually(lambda: Scraped(hub).ended(agent.agent_id) == {"failed": 1.0}, "its end is counted")
    assert first_pieces(hub, agent.agent_id)[0] == 0


# -- what was changed


def losses(hub: HubProcess) -> dict[tuple[str, str], float]:
    """How often what was changed for which dialect."""
    return {(labels["dialect"], labels["facet"]): value for labels, value in Scraped(hub).series(LOSSES)}


@pytest.mark.parametrize(
    ("caller", "target", "content", "lost"),
    [
        ("a2a-1.0", "platform", Content(text="hello"), {("platform", "part:text")}),
        ("a2a-1.0", "directory", Content(data=[1]), {("directory", "part:data")}),
        ("a2a-1.0", "agentvault", Content(file=File(raw=b"x", name="f")), {("agentvault", "part:blob")}),
        ("a2a-1.0", "dotted", Content(file=File(raw=b"x", name="f")), set[tuple[str, str]]()),
        ("platform", "platform", Content(data={"a": 1}), set[tuple[str, str]]()),
    ],
)
def test_what_a_targets_dialect_cannot_say_is_counted_and_what_it_can_is_not(
    everyone: Everyone, caller: str, target: str, content: Content, lost: set[tuple[str, str]]
) -> None:
    known, before = everyone.agent(target).id, losses(everyone.hub)
    seen = everyone.caller(caller).call(known, content)
    assert seen.state == "completed", seen
    eventually(lambda: losses(everyone.hub).items() >= {(each, before.get(each, 0) + 1) for each in lost}, "counted")
    assert losses(everyone.hub) == before | {each: before.get(each, 0) + 1 for each in lost}


@pytest.mark.parametrize(("caller", "counted"), [("agentvault", 1), ("a2a-1.0", 0)])
def test_a_file_is_counted_once_for_a_caller_whose_dialect_takes_links_alone(
    everyone: Everyone, caller: str, counted: int
) -> None:
    hub, facet = everyone.hub, ("agentvault", "part:blob")
    agent, before = connect(hub, fresh("agt_out")), losses(hub).get(facet, 0)
    file = {"file": {"name": "f", "mime_type": "text/plain", "bytes": b64encode(b"x").decode()}}
    with agent.frames() as frames, calling() as callers:
        pending = callers.submit(everyone.caller(caller).call, agent.agent_id, Content(text="a file"))
        call = frames.next("call")
        agent.tell(call, ("artifact", {"id": "a", "parts": [file]}), ("complete", {"status": "completed"}))
        assert pending.result().state == "completed"
    eventually(lambda: Scraped(hub).ended(agent.agent_id), "its end is counted")
    assert losses(hub).get(facet, 0) - before == counted


# -- sessions


def resumes(hub: HubProcess) -> tuple[float, float]:
    """How many sessions were gone on in, and how many were lost."""
    scraped = Scraped(hub)
    return scraped.value(RESUMES, outcome="kept"), scraped.value(RESUMES, outcome="lost")


def test_a_session_that_goes_on_is_kept_and_one_of_an_earlier_life_is_lost_once(hub: HubProcess) -> None:
    agent, other = connect(hub, fresh("agt_out")), connect(hub, fresh("agt_out"))
    kept, lost = resumes(hub)
    with agent.frames():
        assert agent.beat().status == 200
        assert resumes(hub) == (kept, lost)  # Neither a first stream nor a heartbeat is a return.
    with agent.frames() as frames:
        assert resumes(hub) == (kept + 1, lost)
        call_id = accepted(hub, agent.agent_id)
        assert frames.next("call")["call_id"] == call_id
    hub.kill()
    hub.start()
    assert resumes(hub) == (0, 0)
    assert agent.beat().status == 404
    with agent.frames(after=1) as refused:
        assert refused.stream.status == 404
    assert agent.post({"call_id": call_id, "attempt": 1}, DONE).status == 404
    assert resumes(hub) == (0, 1)
    assert other.leave().status == 404
    assert resumes(hub) == (0, 1)  # Who only leaves wants nothing back.
    running = [{"call_id": call_id, "attempt": 1, "n": 0}]
    again = connect(hub, agent.agent_id, running=running)
    assert again.answer["keep"] == [call_id]
    with again.frames():
        assert again.post({"call_id": call_id, "attempt": 1}, DONE).json == {"acked": 1}
    assert resumes(hub) == (0, 1)


def test_what_is_remembered_of_lost_sessions_is_bounded_and_no_word_of_a_stranger() -> None:
    noted = Resumes()
    for number in (*range(MOST_LOST * 2), MOST_LOST * 2 - 1):
        noted.note_lost(f"ses_{number}")
    noted.note_lost("rubbish")
    noted.note_lost("ses_" + "x" * 10_000)
    assert noted.lost == MOST_LOST * 2
    assert len(vars(noted)["_lost"]) == MOST_LOST
