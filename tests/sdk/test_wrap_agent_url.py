"""Agents somewhere else, wrapped by their URL: called in the dialect they speak; their streams, questions and failures
are passed on, and so are conversations and cancellation.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dragoman import A2AClient, Agent
from dragoman.dialects import DIALECTS
from dragoman.errors import AgentError, AgentUnavailable
from tests.support.matrix import agent_of
from tests.support.ports import free_port
from tests.support.run import run
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving
from tests.support.telling import FIRST, SECOND, WHOLE, telling_agent

# The others show no card of their own: nobody could know their skills.
CARDED = ("a2a-1.0", "a2a-0.3", "agentvault", "dotted")


@pytest.fixture(scope="module", params=CARDED)
def stub(request: pytest.FixtureRequest) -> Iterator[StubAgent]:
    with agent_of(DIALECTS[request.param])() as stub:
        yield stub


def test_its_skills_are_offered_and_called_by_what_its_card_says(stub: StubAgent) -> None:
    agent = Agent.wrap(stub.url)
    assert agent.name == stub.card["name"]
    assert set(agent.skills) == {"chat", "echo"}
    assert run(agent.test.call("echo", {"text": "hello, wörld"})).result == "hello, wörld"
    assert run(agent.test.call(message="to no skill")).result == "to no skill"
    looked = [path for method, path, _, _ in stub.requests if method == "GET"]
    assert len(looked) == len(set(looked))  # its card was read once, whatever was called


def test_its_failures_are_the_agents_own(stub: StubAgent) -> None:
    agent = Agent.wrap(stub.url)
    with pytest.raises(AgentError, match=FAILURE):
        run(agent.test.call(message="fail"))


def test_its_questions_are_asked_and_answered() -> None:
    with agent_of(DIALECTS["a2a-1.0"])() as stub:
        tried = run(Agent.wrap(stub.url).test.call(message="ask", answers=["the second"]))
    assert tried.result == "the second"
    assert [event.data["prompt"] for event in tried.events if event.name == "ask"] == [QUESTION]


def test_its_words_are_passed_on_as_it_says_them() -> None:
    with telling_agent(DIALECTS["a2a-1.0"]) as teller:
        teller.reset()
        teller.go.set()
        # Named: it answers nothing but calls, so a look at it finds nothing that is spoken.
        agent = Agent.wrap(A2AClient.direct(teller.url, dialect="a2a-1.0"), name="Teller")
        tried = run(agent.test.call(message="tell"))
    assert [event.data["content"] for event in tried.events if event.name == "chunk"] == [FIRST, SECOND]
    assert tried.result == WHOLE


def test_who_cancels_a_call_cancels_it_there() -> None:
    with agent_of(DIALECTS["a2a-1.0"])() as stub:
        agent = Agent.wrap(stub.url)

        async def cancelled() -> None:
            calling = asyncio.ensure_future(agent.test.call(message="slow"))
            while not any(method == "POST" for method, *_ in stub.requests):
                await asyncio.to_thread(stub.cancelled.wait, 0.01)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling

        run(cancelled())
        assert stub.cancelled.wait(5)


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
    assert len({heard[0], heard[2], "own-1"}) == 3


def test_what_cannot_be_wrapped_is_said_at_once() -> None:
    with pytest.raises(AgentUnavailable, match="Nothing answers"):
        Agent.wrap(f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(TypeError, match="A client of a hub is no agent"):
        Agent.wrap(A2AClient("http://127.0.0.1:1"))
