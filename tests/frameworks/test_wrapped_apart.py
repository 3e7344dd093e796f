"""What only one of the frameworks has: LangGraph's threads, interrupts and states, approvals and guardrails of the
OpenAI Agents SDK, tools in the middle of pydantic-ai's words, CrewAI's inputs.
"""

import pytest

from dragoman.errors import AgentError, InputRefused, InputRequired
from tests.frameworks.world import FrameworkProcess, agents_of, alone
from tests.support.run import run

pytestmark = pytest.mark.full

langgraph = agents_of("langgraph")
openai = agents_of("openai-agents")
pydantic_ai = agents_of("pydantic-ai")
crewai = agents_of("crewai")


@pytest.mark.parametrize("framework", ["langgraph", "openai-agents", "pydantic-ai", "crewai"])
def test_a_conversation_is_kept_where_nobody_else_keeps_it(framework: str) -> None:
    said = alone(framework, "--remember")
    assert said[-2:] == ["you said hello as number 1", "you said hello as number 2"]


@pytest.mark.parametrize("framework", ["langgraph", "openai-agents"])
def test_a_run_ends_too_when_its_caller_is_being_told_something(framework: str) -> None:
    assert "left" in alone(framework, "--leave")


def test_an_interrupt_is_a_question_and_its_answer_goes_on(langgraph: FrameworkProcess) -> None:
    async def play() -> None:
        async with langgraph.client() as client:
            with pytest.raises(InputRequired) as asked:
                await client.call("agt_langgraph_asker", message="paint it")
            assert asked.value.question == "Which colour?"
            assert (await asked.value.handle.send("blue")).text == "blue it is"

    run(play())


def test_a_graph_that_cannot_go_on_after_a_question_says_what_it_lacks(langgraph: FrameworkProcess) -> None:
    async def play() -> None:
        async with langgraph.client() as client:
            with pytest.raises(AgentError, match="checkpointer"):
                await client.call("agt_langgraph_forgetful", message="paint it")

    run(play())


def test_a_graph_with_a_checkpointer_keeps_its_own_threads(langgraph: FrameworkProcess) -> None:
    async def play() -> None:
        async with langgraph.client() as client:
            for number, conversation in ((1, "kept"), (2, "kept"), (1, "other")):
                found = await client.call("agt_langgraph_keeper", message="hello", conversation_id=conversation)
                assert found.text == f"you said hello as number {number}"

    run(play())


def test_a_graph_without_messages_takes_and_gives_its_state(langgraph: FrameworkProcess) -> None:
    async def play() -> None:
        async with langgraph.client() as client:
            card = await client.card("agt_langgraph_writer")
            (skill,) = card["skills"]
            assert card["name"] == "Writer"
            assert set(skill["input_schema"]["properties"]) == {"topic", "words", "text"}
            assert "required" not in skill["output_schema"], "a state may lack what no node wrote"
            found = await client.call("agt_langgraph_writer", "echo", {"topic": "tides", "words": 2, "text": ""})
            assert dict(found) == {"topic": "tides", "words": 2, "text": "tides tides"}
            with pytest.raises(InputRefused, match="words"):
                await client.call("agt_langgraph_writer", "echo", {"topic": "tides", "words": "two", "text": ""})

    run(play())


def test_a_graph_without_an_end_is_told_in_words(langgraph: FrameworkProcess) -> None:
    async def play() -> None:
        async with langgraph.client() as client:
            with pytest.raises(AgentError, match="more steps than it may"):
                await client.call("agt_langgraph_circle", message="go")

    run(play())


@pytest.mark.parametrize(("answer", "done"), [("yes", True), ("no", False)])
def test_a_tool_that_needs_approval_is_asked_for(openai: FrameworkProcess, answer: str, done: bool) -> None:
    async def play() -> None:
        async with openai.client() as client:
            with pytest.raises(InputRequired) as asked:
                await client.call("agt_openai_agents_deleter", message="delete my notes")
            assert asked.value.question == 'May delete be called with {"name": "notes"}?'
            found = await asked.value.handle.send(answer)
            assert (found.text == "notes deleted") is done

    run(play())


def test_what_a_guardrail_stops_is_rejected(openai: FrameworkProcess) -> None:
    async def play() -> None:
        async with openai.client() as client:
            with pytest.raises(AgentError, match="guardrail does not let this through"):
                await client.call("agt_openai_agents_guarded", message="tell me the secret")
            assert (await client.call("agt_openai_agents_guarded", message="hello")).text.startswith("you said hello")

    run(play())


def test_an_agent_that_comes_to_no_end_says_so(openai: FrameworkProcess) -> None:
    async def play() -> None:
        async with openai.client() as client:
            with pytest.raises(AgentError, match="more turns than it may"):
                await client.call("agt_openai_agents_again", message="go")

    run(play())


def test_words_before_a_tool_are_streamed_and_the_answer_is_what_follows_it(pydantic_ai: FrameworkProcess) -> None:
    async def play() -> None:
        async with pydantic_ai.client() as client:
            events = [event async for event in client.stream("agt_pydantic_ai_looker", message="Oslo?")]
            assert "let me look" in "".join(event.content for event in events if event.type == "chunk")
            assert (await client.call("agt_pydantic_ai_looker", message="Oslo?")).text == "709000 people"
            card = await client.card("agt_pydantic_ai_looker")
        assert (card["name"], card["description"]) == ("Looker", "Knows cities")

    run(play())


def test_a_crew_takes_the_inputs_its_tasks_name_one_call_at_a_time(crewai: FrameworkProcess) -> None:
    async def play() -> None:
        async with crewai.client() as client:
            card = await client.card("agt_crewai_writer")
            (skill,) = card["skills"]
            assert card["name"] == "Guides"
            assert card["rate_limits"]["concurrent_requests"] == 1
            assert skill["input_schema"]["required"] == ["reader", "topic"]
            found = await client.call("agt_crewai_writer", "echo", {"topic": "tides", "reader": "ada"})
            assert found.text == "you said tides for ada as number 1"
            with pytest.raises(InputRefused, match="reader"):
                await client.call("agt_crewai_writer", "echo", {"topic": "tides"})

    run(play())
