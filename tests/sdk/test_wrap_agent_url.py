"""Agents somewhere else, wrapped by their URL: called in the dialect they speak; their streams, questions and failures
are passed on, and so are conversations and cancellation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dragoman import A2AClient, Agent
from dragoman.dialects import DIALECTS
from dragoman.errors import AgentError, AgentUnavailable
from tests.sdk.working import call_of, working
from tests.support.matrix import agent_of
from tests.support.ports import free_port
from tests.support.run import run
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving
from tests.support.telling import FIRST, WHOLE, Teller, telling_agent

# The others show no card of their own: nobody could know their skills.
CARDED = ("a2a-1.0", "a2a-0.3", "agentvault", "dotted")


@pytest.fixture(scope="module", params=CARDED)
def stub(request: pytest.FixtureRequest) -> Iterator[StubAgent]:
    with agent_of(DIALECTS[request.param])() as stub:
        yield stub


def test_its_skills_are_offered_and_it_is_called_by_what_its_card_says(stub: StubAgent) -> None:
    agent = Agent.wrap(stub.url)
    assert agent.name == stub.card["name"]
    assert set(agent.skills) == {"chat", "echo"}
    assert run(agent.test.call("echo", {"text": "hello, wörld"})).result == "hello, wörld"
    assert run(agent.test.call(message="to no skill")).result == "to no skill"
    with pytest.raises(AgentError, match=FAILURE):
        run(agent.test.call(message="fail"))
    looked = [path for method, path, _, _ in stub.requests if method == "GET"]
    assert len(looked) == len(set(looked))  # its card was read once, whatever was called


def test_its_questions_are_asked_and_answered() -> None:
    with agent_of(DIALECTS["a2a-1.0"])() as stub:
        tried = run(Agent.wrap(stub.url).test.call(message="ask", answers=["the second"]))
    assert tried.result == "the second"
    assert [event.data["prompt"] for event in tried.events if event.name == "ask"] == [QUESTION]


@pytest.fixture
def teller() -> Iterator[Teller]:
    with telling_agent(DIALECTS["a2a-1.0"]) as teller:
        teller.reset()
        yield teller


def wrapped(teller: Teller) -> Agent:
    # Named: it answers nothing but calls, so a look at it finds nothing that is spoken.
    return Agent.wrap(A2AClient.direct(teller.url, dialect="a2a-1.0"), name="Teller")


def test_its_words_are_passed_on_as_it_says_them(teller: Teller) -> None:
    async def told() -> None:
        async with working(wrapped(teller), call_of("chat", {"text": "tell"})) as told:
            assert (await told.until("chunk"))["content"] == FIRST
            teller.go.set()  # only now it says the rest
        assert "".join(chunk["content"] for chunk in told.all("chunk")) == WHOLE
        assert told.last[1]["result"] == WHOLE

    run(told())


def test_who_cancels_a_call_cancels_it_there(teller: Teller) -> None:
    async def cancelled() -> None:
        async with working(wrapped(teller), call_of("chat", {"text": "tell"})) as told:
            await told.until("chunk")
            told.work.cancel("enough")
        assert told.last[0] == "cancelled"

    run(cancelled())
    assert teller.cancelled.wait(5)


def test_each_callers_conversation_is_one_of_its_own_there() -> None:
    stub, heard = StubAgent("a2a-0.3"), list[str]()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET":
            return json_answer(stub.card)
        heard.append(body["params"]["message"]["contextId"])
        said = {"kind": "message", "messageId": f"m{len(heard)}", "role": "agent", "contextId": f"own-{len(heard)}"}
        result = {**said, "parts": [{"kind": "text", "text": "ok"}]}
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "result": result})

    with serving(stub, handle):
        with agent_of(DIALECTS["a2a-0.3"])() as other:
            stub.card = {**other.card, "url": stub.url}
        agent = Agent.wrap(A2AClient.direct(stub.url, dialect="a2a-0.3"))
        heard.clear()
        for caller in ("agt_ada", "agt_ada", "agt_bob"):
            run(agent.test.call(message="hello", caller=caller, conversation_id="same"))
    assert heard[1] == "own-1"
    assert not heard[2].startswith("own-")
    assert heard[2] != heard[0]


def test_what_cannot_be_wrapped_is_said_at_once() -> None:
    with pytest.raises(AgentUnavailable, match="Nothing answers"):
        Agent.wrap(f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(TypeError, match="A client of a hub is no agent"):
        Agent.wrap(A2AClient("http://127.0.0.1:1"))
