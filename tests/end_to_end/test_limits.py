"""Limits over the wire: exactly so many reach an agent, the others are told when to come back, in their own dialect."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import SLUGS, asked
from tests.end_to_end.world import eventually, fresh, join, refused, says, skill, tracebacks
from tests.support.crowd import CountingAgent, Posted, all_at_once, counting_agent
from tests.support.hub import HubProcess, Reply

SLOTS: Final = 4  # of the hub's worker
HALF: Final = 128  # of the places where calls wait that somebody waits for
HURRIED: Final = "breakers_in_a_hurry"  # and retries
RETRIES: Final = {"DRAGOMAN_CALLS_RETRIES": "1"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub") / "data", planted=HURRIED)
    hub.start({"DRAGOMAN_CALLS_QUEUED_AT_ONCE": str(SLOTS), **RETRIES})
    try:
        yield hub
    finally:
        hub.stop()
    assert tracebacks(hub) == []


@pytest.fixture
def worker() -> Iterator[CountingAgent]:
    with counting_agent() as worker:
        yield worker


def limited(hub: HubProcess, worker: CountingAgent, **limits: int) -> str:
    """The agent with these limits on its card."""
    return str(join(hub, worker.agent, rate_limits=limits)["id"])


def call_of(agent: str, text: str = "", **more: Any) -> Posted:
    """A platform call."""
    body = {"target_agent_id": agent, "skill": "echo", "input": {"text": text or f"{next(_numbers)}"}, **more}
    return Posted("/v1/a2a/call", body)


def new_key(hub: HubProcess, **more: Any) -> dict[str, Any]:
    """A key that may call."""
    reply = hub.post("/v1/keys", {"name": fresh("key"), "scopes": ["a2a:call"], **more})
    assert reply.status == 201, reply.body
    key: dict[str, Any] = reply.json
    return key


@pytest.mark.req("P-30")
def test_of_a_thousand_calls_at_once_exactly_those_arrive_that_are_allowed(
    hub: HubProcess, worker: CountingAgent
) -> None:
    agent = limited(hub, worker, requests_per_minute=60, concurrent_requests=10)
    began, at = time.monotonic(), time.time()
    answers = all_at_once(hub, [call_of(agent, f"{n}") for n in range(1000)])
    took_s = time.monotonic() - began
    done = [reply.json["result"]["text"] for reply in answers if reply.status == 200]
    assert Counter(worker.came) == Counter(done)
    assert 60 <= len(done) <= 60 + int(took_s), "a minute's worth at once, and one more each second"
    assert 2 <= worker.most <= 10
    for reply in answers:
        if reply.status != 200:
            error = refused(reply, 429, "RATE_LIMITED")
            assert error["message"] == "60 requests a minute are allowed"
            assert error["details"]["limit"] == "requests_per_minute"
            assert reply.headers["retry-after"] == "1" == str(error["details"]["retry_after"])
            assert reply.headers["x-ratelimit-limit"] == "60"
            assert reply.headers["x-ratelimit-remaining"] == "0"
            assert at < int(reply.headers["x-ratelimit-reset"]) <= at + took_s + 62
            assert error["retryable"]


@pytest.mark.req("P-30", "E-25")
@pytest.mark.parametrize("slug", SLUGS)
def test_each_dialect_is_told_of_a_limit_in_its_own_words(hub: HubProcess, worker: CountingAgent, slug: str) -> None:
    _judge_dialect(hub, worker, slug, 60)


@pytest.mark.full
@pytest.mark.req("P-30", "E-25")
@pytest.mark.parametrize("slug", SLUGS)
def test_a_thousand_at_once_in_each_dialect(hub: HubProcess, worker: CountingAgent, slug: str) -> None:
    _judge_dialect(hub, worker, slug, 1000)


def _judge_dialect(hub: HubProcess, worker: CountingAgent, slug: str, crowd: int) -> None:
    agent = limited(hub, worker, requests_per_hour=20, concurrent_requests=3)
    sender = join(hub, worker.agent)["uuid"] if slug == "envelope" else ""
    requests = [asked(slug, agent, f"number {n}", sender=sender) for n in range(crowd)]
    answers = all_at_once(hub, [Posted(each.path, each.body, each.headers) for each in requests])
    worker.wait_for(20)
    assert Counter(reply.status for reply in answers) == {200: 20, 429: crowd - 20}
    assert len(set(worker.came)) == len(worker.came) == 20
    assert worker.most <= 3
    for reply in answers:
        if reply.status == 429:
            assert reply.headers["retry-after"] == "180", "twenty an hour: the next in three minutes"
            facts = _facts_of(slug, reply)
            assert (facts["limit"], facts["retry_after"]) == ("requests_per_hour", 180)
            assert (facts["allowed"], facts["remaining"]) == (20, 0)


def _facts_of(slug: str, reply: Reply) -> dict[str, Any]:
    """What a dialect says of a limit, after a look at how it says it."""
    said = reply.json
    match slug:
        case "platform":
            assert reply.headers["x-ratelimit-limit"] == "20"
            return refused(reply, 429, "RATE_LIMITED")["details"]
        case "envelope":
            assert said["error_code"] == "RATE_LIMITED"
            return said["payload"]["details"]
        case _:
            assert (said["jsonrpc"], said["error"]["code"]) == ("2.0", -32000)
            data = said["error"]["data"]
            found: dict[str, Any] = data[0]["metadata"] if slug == "a2a-1.0" else data
            return {name: int(value) if str(value).isdigit() else value for name, value in found.items()}


@pytest.mark.full
@pytest.mark.req("E-33")
def test_assignments_beyond_a_limit_are_refused_and_the_others_done_once(
    hub: HubProcess, worker: CountingAgent
) -> None:
    agent = limited(hub, worker, requests_per_hour=100, concurrent_requests=10)
    me = join(hub, worker.agent)["uuid"]
    requests = [asked("envelope", agent, f"number {n}", sender=me) for n in range(1000)]
    answers = all_at_once(hub, [Posted(each.path, each.body) for each in requests])
    taken = [each.text for each, reply in zip(requests, answers, strict=True) if reply.status == 200]
    assert len(taken) == 100
    assert {reply.json["error_code"] for reply in answers if reply.status != 200} == {"RATE_LIMITED"}
    worker.wait_for(100)
    assert Counter(worker.came) == Counter(taken)
    assert worker.most <= 10


@pytest.mark.req("P-18", "E-27")
def test_the_most_urgent_of_those_that_wait_goes_first(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker, concurrent_requests=1)
    me = join(hub, worker.agent)["uuid"]
    worker.held.clear()
    _accepted(hub, agent, "first")
    worker.wait_for(1)
    for priority in ("low", "normal", "high", "urgent"):
        _accepted(hub, agent, priority, options={"priority": priority})
    for priority in ("low", "medium", "high", "urgent"):
        envelope = asked("envelope", agent, f"enveloped {priority}", sender=me)
        envelope.body["payload"]["priority"] = priority
        assert envelope.post(hub).status == 200
    worker.held.set()
    worker.wait_for(9)
    ordered = [("urgent", "urgent"), ("high", "high"), ("normal", "medium"), ("low", "low")]
    assert worker.came == ["first", *(name for own, other in ordered for name in (own, f"enveloped {other}"))]
    assert worker.most == 1


def _accepted(hub: HubProcess, agent: str, text: str, **more: Any) -> str:
    """A call that nobody waits for; its id."""
    request = call_of(agent, text, **more)
    reply = hub.post("/v1/a2a/call/async", request.body)
    assert reply.status == 202, reply.body
    return str(reply.json["call_id"])


def test_calls_that_wait_for_one_agent_take_no_slot_of_others(hub: HubProcess, worker: CountingAgent) -> None:
    busy = limited(hub, worker, concurrent_requests=1)
    worker.held.clear()
    for _ in range(3 * SLOTS):
        _accepted(hub, busy, "busy")
    worker.wait_for(1)
    with counting_agent() as other:
        _accepted(hub, limited(hub, other), "other")
        other.wait_for(1)
    assert worker.came == ["busy"]
    worker.held.set()
    worker.wait_for(3 * SLOTS)


@pytest.mark.req("P-30")
def test_a_call_whose_time_runs_out_in_the_queue_never_reaches_its_agent(
    hub: HubProcess, worker: CountingAgent
) -> None:
    agent = limited(hub, worker, concurrent_requests=1)
    worker.held.clear()
    _accepted(hub, agent, "first")
    worker.wait_for(1)
    reply = hub.call("echo", {"text": "late"}, agent, options={"timeout_ms": 150})
    error = refused(reply, 504, "AGENT_TIMEOUT")
    assert error["details"]["reason"] == "queued"
    worker.held.set()
    assert hub.call("echo", {"text": "next"}, agent).status == 200
    assert worker.came == ["first", "next"]
    assert {path for path, _, _ in worker.agent.requests} == {"/a2a"}, "nor is it told to stop it"


def test_a_cancelled_call_leaves_the_queue(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker, concurrent_requests=1)
    worker.held.clear()
    _accepted(hub, agent, "first")
    worker.wait_for(1)
    waiting = _accepted(hub, agent, "cancelled")
    assert hub.post(f"/v1/a2a/call/{waiting}/cancel", {}).status == 200
    assert hub.get(f"/v1/a2a/call/{waiting}/status").json["status"] == "cancelled"
    worker.held.set()
    assert hub.call("echo", {"text": "next"}, agent).status == 200
    assert worker.came == ["first", "next"]
    assert {path for path, _, _ in worker.agent.requests} == {"/a2a"}


@pytest.mark.req("P-30")
def test_a_full_queue_refuses_and_one_caller_has_half_of_it(hub: HubProcess, worker: CountingAgent) -> None:
    agent, key = limited(hub, worker, concurrent_requests=1), new_key(hub)["key"]
    worker.held.clear()
    _accepted(hub, agent, "first")
    worker.wait_for(1)
    worker.work_s = 0.0
    refusals = threading.Semaphore(0)

    def call() -> Reply:
        reply = hub.call("echo", {"text": "one of many"}, agent, token=key)
        if reply.status == 429:
            refusals.release()
        return reply

    with ThreadPoolExecutor(HALF + 10) as pool:
        calls = [pool.submit(call) for _ in range(HALF + 10)]
        assert all(refusals.acquire(timeout=20) for _ in range(10))
        assert not [each for each in calls if each.done() and each.result().status != 429]
        worker.held.set()
        statuses = Counter(each.result().status for each in calls)
    assert statuses == {200: HALF, 429: 10}
    for each in calls:
        if each.result().status == 429:
            error = refused(each.result(), 429, "RATE_LIMITED")
            assert error["details"]["reason"] == "queue_full"
            assert each.result().headers["retry-after"] == str(error["details"]["retry_after"])
    assert worker.most == 1


def test_a_stream_waits_for_its_turn_too(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker, concurrent_requests=1)
    worker.held.clear()
    _accepted(hub, agent, "first")
    worker.wait_for(1)
    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(hub.post, "/v1/a2a/call/stream", call_of(agent, "streamed").body)
        worker.held.set()
        assert b"event: complete" in stream.result().body
    assert (worker.came, worker.most) == (["first", "streamed"], 1)


def test_a_failed_call_gives_its_place_back(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker, concurrent_requests=1)
    in_time = {"timeout_ms": 5000}
    good, worker.agent.respond = worker.agent.respond, says((500, {}, b"broken"))
    for _ in range(3):
        assert hub.call("echo", {"text": "x"}, agent, options=in_time).status == 502
    worker.agent.respond = good
    assert hub.call("echo", {"text": "x"}, agent, options=in_time).status == 200


@pytest.mark.req("P-30", "P-32")
def test_a_call_that_waits_for_its_next_try_holds_up_no_other(hub: HubProcess, worker: CountingAgent) -> None:
    repeatable = [skill("echo", idempotent=True)]
    agent = str(join(hub, worker.agent, skills=repeatable, rate_limits={"concurrent_requests": 1})["id"])
    good, tries = worker.agent.respond, Counter[str]()

    def fails_once(body: dict[str, Any]) -> Any:
        answer, text = good(body), body["input"]["text"]
        tries[text] += 1
        return (500, {}, b"{}") if (text, tries[text]) == ("bad", 1) else answer

    worker.agent.respond = fails_once
    worker.held.clear()
    bad = _accepted(hub, agent, "bad")
    worker.wait_for(1)
    _accepted(hub, agent, "good")
    worker.held.set()
    worker.wait_for(3)
    assert (worker.came, worker.most) == (["bad", "good", "bad"], 1)
    ended = eventually(lambda: hub.get(f"/v1/a2a/call/{bad}/status").json.get("result"), "it is done")
    assert ended == {"text": "bad"}


def test_a_repeated_call_takes_nothing_from_the_limit(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker, requests_per_hour=2)
    keyed = {"Idempotency-Key": fresh("key")}
    ids = {hub.call("echo", {"text": "x"}, agent, headers=keyed).json["id"] for _ in range(5)}
    assert len(ids) == 1
    assert hub.call("echo", {"text": "y"}, agent).status == 200
    refused(hub.call("echo", {"text": "z"}, agent), 429, "RATE_LIMITED")
    again = hub.call("echo", {"text": "x"}, agent, headers=keyed)
    assert again.status == 429, "whether it is a repeat is known only after it was let in"


def test_a_keys_limits_are_set_shown_changed_and_enforced(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker)
    key = new_key(hub, rate_limits={"requests_per_hour": 2}, budget={"usd_per_day": 1.5, "calls_per_conversation": 9})
    assert key["rate_limits"] == {"requests_per_hour": 2}
    assert key["budget"] == {"usd_per_day": 1.5, "calls_per_conversation": 9}
    token, path = key["key"], f"/v1/keys/{key['key_id']}"
    for _ in range(2):
        assert hub.call("echo", {"text": "x"}, agent, token=token).status == 200
    reply = hub.call("echo", {"text": "x"}, agent, token=token)
    assert refused(reply, 429, "RATE_LIMITED")["details"]["scope"] == "key"
    assert reply.headers["retry-after"] == "1800"
    changed = hub.request("PATCH", path, {"rate_limits": {"requests_per_minute": 1000}})
    assert changed.json["rate_limits"] == {"requests_per_minute": 1000}
    assert changed.json["budget"] == key["budget"]
    assert hub.call("echo", {"text": "x"}, agent, token=token).status == 200
    assert hub.request("PATCH", path, {"rate_limits": None, "budget": None}).json["rate_limits"] is None
    listed = {each["key_id"]: each for each in hub.get("/v1/keys").json["items"]}
    assert (listed[key["key_id"]]["rate_limits"], listed[key["key_id"]]["budget"]) == (None, None)
    successor = hub.post(f"/v1/keys/{new_key(hub, budget={'tokens_per_day': 7})['key_id']}/rotate", {})
    assert successor.json["budget"] == {"tokens_per_day": 7}


@pytest.mark.parametrize(
    "body",
    [
        {"rate_limits": {"requests_per_minute": 0}},
        {"rate_limits": {"requests_per_day": 5}},
        {"budget": {"usd_per_day": -1}},
        {"budget": {"calls_per_conversation": 0}},
    ],
)
def test_limits_that_make_no_sense_are_refused(hub: HubProcess, worker: CountingAgent, body: dict[str, Any]) -> None:
    key = new_key(hub)
    refused(hub.request("PATCH", f"/v1/keys/{key['key_id']}", body), 400, "VALIDATION_ERROR")
    refused(hub.post("/v1/keys", {"name": "x", "scopes": ["a2a:call"], **body}), 400, "VALIDATION_ERROR")
    if "rate_limits" in body:
        agent = limited(hub, worker)
        refused(hub.request("PATCH", f"/v1/agents/{agent}", body), 400, "VALIDATION_ERROR")
        card = worker.agent.card(id=fresh())
        refused(hub.post("/v1/a2a/registry", {"agent_card": card, **body}), 400, "VALIDATION_ERROR")


@pytest.mark.req("P-30")
def test_what_an_owner_sets_overrules_the_card(hub: HubProcess, worker: CountingAgent) -> None:
    agent = limited(hub, worker, requests_per_hour=1000, concurrent_requests=5)
    path = f"/v1/agents/{agent}"
    shown = hub.request("PATCH", path, {"rate_limits": {"requests_per_hour": 1}}).json
    assert shown["rate_limits"] == {"requests_per_hour": 1, "concurrent_requests": 5}
    assert shown["card"]["rate_limits"] == shown["rate_limits"]
    assert hub.call("echo", {"text": "x"}, agent).status == 200
    refused(hub.call("echo", {"text": "x"}, agent), 429, "RATE_LIMITED")
    hub.register(worker.agent.card(id=agent, version="1.1.0", rate_limits={"requests_per_hour": 500}))
    refused(hub.call("echo", {"text": "x"}, agent), 429, "RATE_LIMITED")
    assert hub.request("PATCH", path, {"rate_limits": None}).json["rate_limits"] == {"requests_per_hour": 500}
    assert hub.call("echo", {"text": "x"}, agent).status == 200


@pytest.mark.planted
@pytest.mark.parametrize(
    ("bug", "test"),
    [
        ("meter_taken_later", test_of_a_thousand_calls_at_once_exactly_those_arrive_that_are_allowed),
        ("failed_calls_keep_their_permit", test_a_failed_call_gives_its_place_back),
        ("priority_ignored", test_the_most_urgent_of_those_that_wait_goes_first),
        ("permit_kept_between_tries", test_a_call_that_waits_for_its_next_try_holds_up_no_other),
    ],
)
def test_the_bug_is_found(tmp_path: Path, bug: str, test: Callable[[HubProcess, CountingAgent], None]) -> None:
    hub = HubProcess(tmp_path / "data", planted=f"{HURRIED},{bug}").start(RETRIES)
    try:
        with counting_agent() as worker, pytest.raises(AssertionError):
            test(hub, worker)
    finally:
        hub.kill()
