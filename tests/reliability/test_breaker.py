"""One dead agent among ten: it is left alone, tried again and taken back; nobody else feels it, and it is not buried.

Goal R11. The hub under test is in a hurry: an agent is left alone for less than a second, and retries come quickly.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from tests.end_to_end.world import eventually, fresh, refused
from tests.support.beside_dead import load, quantile
from tests.support.hub import HubProcess, Reply
from tests.support.mortal_agent import WAYS, MortalAgent, Way, mortal_agent
from tests.support.raw_connected import echoing
from tests.support.tiny_http import process

HURRIED: Final = "breakers_in_a_hurry"
RETRIES: Final = {"DRAGOMAN_CALLS_RETRIES": "3", "DRAGOMAN_CALLS_BREAKERS": "true"}
MANY: Final = 120
LOOSE: Final = 4.0  # times the p99 of others in a run of seconds beside other tests; 1.2 is the goal, proved in full
GOAL: Final = 1.2


@contextlib.contextmanager
def hurried_hub(folder: Path, *more: str) -> Generator[HubProcess]:
    hub = HubProcess(folder / "data", auth="none", planted=",".join((HURRIED, *more))).start(RETRIES)
    try:
        yield hub
    finally:
        hub.stop()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with hurried_hub(tmp_path_factory.mktemp("breaker")) as hub:
        yield hub


def called(hub: HubProcess, agent_id: str, timeout_ms: int = 150) -> Reply:
    return hub.call("echo", {"n": 1}, agent=agent_id, options={"timeout_ms": timeout_ms})


def circuit(hub: HubProcess, agent_id: str) -> str:
    """Where the breaker stands."""
    shown: str = hub.get(f"/v1/agents/{agent_id}").json["circuit"]
    return shown


def discovered(hub: HubProcess, agent_id: str) -> str:
    """Where it stands for those who look for agents: the same, or it has just moved."""
    before = circuit(hub, agent_id)
    found = {each["id"]: each["circuit"] for each in hub.get("/v1/a2a/discover?limit=100").json["agents"]}
    assert found[agent_id] in (before, circuit(hub, agent_id))
    return found[agent_id]


def gauge(hub: HubProcess, agent_id: str) -> int | None:
    said = hub.get("/metrics").body.decode()
    found = re.search(rf'^a2a_circuit_breaker_state\{{[^}}]*"{agent_id}"[^}}]*\}} (\d)', said, re.MULTILINE)
    return None if found is None else int(found[1])


def told(hub: HubProcess, agent_id: str) -> list[tuple[str, str]]:
    """What the log says of the breaker: levels and states."""
    lines = [json.loads(line) for line in hub.log.read_text().splitlines() if '"circuit"' in line]
    return [(line["level"], line["circuit"]) for line in lines if line["agent_id"] == agent_id]


def shut(hub: HubProcess, agent: MortalAgent, agent_id: str) -> Reply:
    """Call a dead agent until a call is refused without contact; the refusal."""
    for _ in range(10):
        arrived = agent.arrived
        reply = called(hub, agent_id)
        assert reply.status != 200
        if reply.json["error"]["code"] == "CIRCUIT_OPEN" and agent.arrived == arrived:
            return reply
    raise AssertionError("the breaker does not open")


def is_left_alone(hub: HubProcess, way: Way) -> None:
    agent_id = fresh("agt_mortal")
    with mortal_agent() as agent:
        hub.register(agent.card(agent_id))
        assert called(hub, agent_id, 5000).status == 200
        assert discovered(hub, agent_id) == "closed"
        agent.die(way)
        refusal = shut(hub, agent, agent_id)
        refused(refusal, 503, "CIRCUIT_OPEN")
        assert int(refusal.headers["retry-after"]) >= 1
        assert gauge(hub, agent_id) in (1, 2)
        assert discovered(hub, agent_id) in ("open", "half_open")
        eventually(lambda: circuit(hub, agent_id) == "half_open", "it is time to look again")
        assert gauge(hub, agent_id) == 1
        agent.live()
        assert called(hub, agent_id, 5000).status == 200
        assert discovered(hub, agent_id) == "closed"
        assert gauge(hub, agent_id) in (0, None)
    levels = {"open": "warning", "half_open": "info", "closed": "info"}
    log = told(hub, agent_id)
    assert all(levels[state] == level for level, state in log)
    states = [state for _, state in log]
    assert states[-2:] == ["half_open", "closed"]
    assert states[:-1] == ["open", "half_open"] * (len(states) // 2)


@pytest.mark.req("P-33")
@pytest.mark.parametrize("way", WAYS)
def test_a_dead_agent_is_left_alone_tried_again_and_taken_back(hub: HubProcess, way: Way) -> None:
    is_left_alone(hub, way)


def stays_within_budget(hub: HubProcess) -> None:
    agent_id = fresh("agt_mortal")
    with mortal_agent() as agent, ThreadPoolExecutor(MANY) as callers:
        agent.answer = lambda _: (429, {"Retry-After": "0"}, {})
        hub.register(agent.card(agent_id))
        replies = list(callers.map(partial(called, hub, agent_id), [20_000] * MANY))
        assert {reply.json["error"]["code"] for reply in replies} == {"RATE_LIMITED"}
        retries = agent.arrived - MANY
        assert 100 <= retries <= 100 + 0.2 * MANY, f"{retries} retries of {MANY} calls"
        assert circuit(hub, agent_id) == "closed"


@pytest.mark.req("P-32")
def test_retries_stay_within_the_budget_of_their_target(hub: HubProcess) -> None:
    stays_within_budget(hub)


def bears_a_hurried_caller(hub: HubProcess, agent: MortalAgent) -> None:
    agent_id = fresh("agt_mortal")
    answer = agent.answer

    def slowly(body: dict[str, Any]) -> Any:
        agent.pause.wait(0.15)
        return answer(body)

    agent.answer = slowly
    hub.register(agent.card(agent_id))
    with ThreadPoolExecutor(25) as callers:
        assert {reply.status for reply in callers.map(partial(called, hub, agent_id), [5000] * 25)} == {200}
    for timeout_ms in (1, 20) * 6:  # The first is over before anything is sent.
        refused(called(hub, agent_id, timeout_ms), 504, "AGENT_TIMEOUT")
    assert circuit(hub, agent_id) == "closed", "a caller in a hurry has shut the agent"
    assert called(hub, agent_id, 5000).status == 200


@pytest.mark.req("P-33")
def test_a_caller_with_a_timeout_of_a_millisecond_shuts_no_agent(hub: HubProcess) -> None:
    with mortal_agent() as agent:
        bears_a_hurried_caller(hub, agent)


@pytest.mark.req("P-33")
@pytest.mark.parametrize(
    ("answers", "said", "status"),
    [
        (200, {"status": "failed", "error": {"code": "AGENT_ERROR", "message": "no"}}, 502),
        (400, {"error": {"message": "bad input"}}, 502),
        (429, {"error": {"message": "busy"}}, 429),
    ],
    ids=["failed task", "400", "429"],
)
def test_an_agents_own_refusals_and_failures_do_not_shut_it(
    hub: HubProcess, answers: int, said: dict[str, Any], status: int
) -> None:
    agent_id = fresh("agt_mortal")
    with mortal_agent() as agent:
        agent.answer = lambda _: (answers, {}, said)
        hub.register(agent.card(agent_id))
        for _ in range(8):
            assert called(hub, agent_id, 5000).status == status
        assert (agent.arrived, circuit(hub, agent_id)) == (8, "closed")


@pytest.mark.req("P-33")
def test_an_agent_that_connects_is_left_alone_when_it_lets_its_calls_wait(hub: HubProcess) -> None:
    agent_id = fresh("agt_connected")
    with echoing(hub, agent_id) as agent:

        def said(text: str, timeout_ms: int = 60) -> str:
            reply = hub.call("echo", {"text": text}, agent=agent_id, options={"timeout_ms": timeout_ms})
            code: str = reply.json["error"]["code"]
            return code

        assert {said("fail", 5000) for _ in range(8)} == {"AGENT_ERROR"}
        assert [said("slow") for _ in range(5)] == ["AGENT_TIMEOUT"] * 5
        had = len(agent.calls)
        assert said("slow") == "CIRCUIT_OPEN"
        assert len(agent.calls) == had


def p99s(hub: HubProcess, seconds: float, rounds: int) -> tuple[float, float]:
    """The p99 of nine agents' calls, beside a tenth that is well and beside one that answers nobody.

    Of each the middle one of several rounds, which take turns: whatever else the machine does, it does to both.
    """
    with process("tests.support.echo_agent") as well, mortal_agent() as dead:
        ids = [fresh("agt_well") for _ in range(10)]
        for agent_id in ids:
            hub.register({**dead.card(agent_id), "endpoint": f"http://127.0.0.1:{well.port}/{agent_id}"})
        dead_id = fresh("agt_mortal")
        hub.register(dead.card(dead_id))
        dead.die("blackhole")
        asyncio.run(load(hub, ids, 0.1))
        alone, beside = list[float](), list[float]()
        for _ in range(rounds):
            for tenth, found in ((ids[9], alone), (dead_id, beside)):
                took = asyncio.run(load(hub, [*ids[:9], tenth], seconds))
                found.append(quantile([each for agent_id in ids[:9] for each in took[agent_id]], 0.99))
        assert circuit(hub, dead_id) != "closed", f"{dead.arrived} calls have not shut the dead agent"
    return median(alone), median(beside)


@pytest.mark.req("P-33")
def test_a_dead_agent_costs_the_others_next_to_nothing(hub: HubProcess) -> None:
    alone, beside = p99s(hub, 0.7, 1)
    assert beside < LOOSE * max(alone, 0.005), f"p99 {alone * 1000:.1f} ms alone, {beside * 1000:.1f} ms beside"


@pytest.mark.full
@pytest.mark.serial
@pytest.mark.req("P-33")
def test_a_dead_agent_raises_the_p99_of_others_by_less_than_a_fifth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = HubProcess(tmp_path / "data", auth="none").start(RETRIES)  # with the times of a real one
    try:
        alone, beside = p99s(hub, 5.0, 11)
    finally:
        hub.stop()
    with capsys.disabled():
        print(f"\np99 {alone * 1000:.2f} ms alone, {beside * 1000:.2f} ms beside: {beside / alone:.2f} times")  # noqa: T201 - the figure
    assert beside < GOAL * alone, f"{beside / alone:.2f} times"


@pytest.mark.full
@pytest.mark.req("P-33", "R-12")
def test_a_step_waits_for_an_agent_that_is_left_alone(hub: HubProcess) -> None:
    agent_id = fresh("agt_mortal")
    with mortal_agent() as agent:
        hub.register(agent.card(agent_id))
        agent.die("refused")
        shut(hub, agent, agent_id)
        agent.live()
        step = {"skill": "echo", "agent": agent_id}
        reply = hub.call("echo", {"n": 1}, agent=agent_id, then=[step], options={"timeout_ms": 10_000})
        assert (reply.status, reply.json.get("result")) == (200, {"n": 1}), reply.body


@pytest.mark.planted
def test_a_breaker_that_never_opens_is_found(tmp_path: Path) -> None:
    with hurried_hub(tmp_path, "breaker_never_opens") as hub, pytest.raises(AssertionError, match="does not open"):
        is_left_alone(hub, "500")


@pytest.mark.planted
def test_retries_without_a_budget_are_found(tmp_path: Path) -> None:
    with hurried_hub(tmp_path, "retries_without_budget") as hub, pytest.raises(AssertionError, match="retries of"):
        stays_within_budget(hub)


@pytest.mark.planted
def test_a_short_timeout_that_counts_is_found(tmp_path: Path) -> None:
    complaint = pytest.raises(AssertionError, match=r"CIRCUIT_OPEN|has shut the agent")
    with hurried_hub(tmp_path, "short_timeouts_count") as hub, mortal_agent() as agent, complaint:
        bears_a_hurried_caller(hub, agent)
