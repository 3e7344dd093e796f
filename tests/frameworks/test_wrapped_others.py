"""What only one of the frameworks has: Google ADK's sessions, artifacts and blocked answers, LlamaIndex's workflows and
engines, the variables of a smolagents' code, AutoGen's teams.
"""

import asyncio

import pytest

from dragoman import File
from dragoman.errors import AgentError, CallCancelled, InputRefused, InputRequired
from dragoman.sdk.client.handles import CallHandle
from tests.frameworks.world import FrameworkProcess, agents_of
from tests.support.run import run

pytestmark = pytest.mark.full

adk = agents_of("google-adk")
llama_index = agents_of("llama-index")
smolagents = agents_of("smolagents")
autogen = agents_of("autogen")


def test_what_a_tool_saves_is_an_artifact_beside_the_last_words(adk: FrameworkProcess) -> None:
    async def play() -> None:
        async with adk.client() as client:
            events = [event async for event in client.stream("agt_google_adk_looker", message="Oslo")]
            assert "let me look noted" in "".join(event.content for event in events if event.type == "chunk")
            found = await client.call("agt_google_adk_looker", message="Oslo")
        (made,) = found.artifacts
        assert [(part.name, part.bytes) for part in made.parts if isinstance(part, File)] == [("note.txt", b"Oslo")]
        assert made.text == "noted"

    run(play())


def test_an_answer_that_a_model_would_not_give_is_a_failure_with_its_reason(adk: FrameworkProcess) -> None:
    async def play() -> None:
        async with adk.client() as client:
            with pytest.raises(AgentError, match="SAFETY") as refusal:
                await client.call("agt_google_adk_blocked", message="hello")
        assert "1234" not in str(refusal.value)

    run(play())


def test_an_agent_with_an_input_schema_is_given_its_fields(adk: FrameworkProcess) -> None:
    async def play() -> None:
        async with adk.client() as client:
            found = await client.call("agt_google_adk_asked", "echo", {"city": "Oslo"})
            assert found.text == 'you said {"city":"Oslo"} as number 1'
            with pytest.raises(InputRefused, match="city"):
                await client.call("agt_google_adk_asked", "echo", {"town": "Oslo"})

    run(play())


def test_the_last_of_several_agents_answers_and_so_does_a_node_with_an_output(adk: FrameworkProcess) -> None:
    async def play() -> None:
        async with adk.client() as client:
            assert (await client.call("agt_google_adk_flow", message="hello")).text == "HELLO"
            assert (await client.call("agt_google_adk_both", message="hello")).text.startswith('{"name": "Oslo"')

    run(play())


def test_a_runner_keeps_its_own_sessions(adk: FrameworkProcess) -> None:
    async def play() -> None:
        async with adk.client() as client:
            for number, conversation in ((1, "kept"), (2, "kept"), (1, "other")):
                found = await client.call("agt_google_adk_kept", message="hello", conversation_id=conversation)
                assert found.text == f"you said hello as number {number}"

    run(play())


def test_a_long_conversation_keeps_its_newest_turns(adk: FrameworkProcess) -> None:
    async def play() -> list[str]:
        async with adk.client() as client:
            return [
                (await client.call("agt_google_adk_talker", message="hello", conversation_id="long")).text
                for _ in range(102)
            ]

    numbers = [int(text.rpartition(" ")[2]) for text in run(play())]
    assert numbers == [*range(1, 101), 51, 52]


def test_a_workflow_takes_and_gives_its_own_events_and_asks_its_questions(llama_index: FrameworkProcess) -> None:
    async def play() -> None:
        async with llama_index.client() as client:
            (skill,) = (await client.card("agt_llama_index_writer"))["skills"]
            assert skill["input_schema"]["required"] == ["topic"]
            assert set(skill["output_schema"]["properties"]) == {"topic", "length", "number"}
            for number in (1, 2):  # What it counts is kept in its Context.
                progress: list[str | None] = []
                with pytest.raises(InputRequired) as asked:
                    async for event in client.stream(
                        "agt_llama_index_writer", "echo", {"topic": "tides"}, conversation_id="articles"
                    ):
                        progress += [event.message] if event.type == "progress" else []
                assert progress == ["thinking"]
                assert asked.value.question == "How long?"
                answer = dict(await asked.value.handle.send("short"))
                assert answer == {"topic": "tides", "length": "short", "number": number}

    run(play())


def test_a_plain_workflow_takes_words_and_any_fields(llama_index: FrameworkProcess) -> None:
    async def play() -> None:
        async with llama_index.client() as client:
            assert (await client.call("agt_llama_index_repeater", message="hello")).text == "hello, no topic"
            given = {"topic": "tides", "words": 2}
            assert (await client.call("agt_llama_index_repeater", "echo", given)).text.endswith(", tides")

    run(play())


def test_engines_answer_each_for_itself_or_in_a_conversation(llama_index: FrameworkProcess) -> None:
    async def play() -> None:
        async with llama_index.client() as client:
            assert (await client.call("agt_llama_index_library", message="tides")).text == "all about tides"
            for number, conversation in ((1, "one"), (1, "two"), (2, "one")):
                found = await client.call("agt_llama_index_engine", message="hello", conversation_id=conversation)
                assert found.text == f"you said hello as number {number}"

    run(play())


def test_an_agents_output_class_is_on_its_card(llama_index: FrameworkProcess) -> None:
    async def play() -> None:
        async with llama_index.client() as client:
            (skill,) = (await client.card("agt_llama_index_claims"))["skills"]
        assert skill["output_schema"]["required"] == ["name", "people"]

    run(play())


def test_the_variables_of_a_conversations_code_are_nobody_elses(smolagents: FrameworkProcess) -> None:
    async def play() -> None:
        async with smolagents.client() as client:

            async def said(code: str, conversation: str) -> object:
                return (await client.call("agt_smolagents_coder", message=code, conversation_id=conversation)).data

            assert await said("x = 7\nfinal_answer({'x': x})", "mine") == {"x": 7}
            found = await client.call("agt_smolagents_coder", message="final_answer(x)", conversation_id="yours")
            assert "7" not in str(dict(found))
            assert await said("final_answer({'x': x + 1})", "mine") == {"x": 8}

    run(play())


def test_steps_are_progress_and_the_card_says_one_at_a_time(smolagents: FrameworkProcess) -> None:
    async def play() -> None:
        async with smolagents.client() as client:
            events = [event async for event in client.stream("agt_smolagents_talker", message="hello")]
            assert [event.message for event in events if event.type == "progress"] == ["step 1: final_answer"]
            card = await client.card("agt_smolagents_talker")
            assert card["rate_limits"]["concurrent_requests"] == 1

    run(play())


def test_a_cancelled_step_is_waited_for_and_not_remembered(smolagents: FrameworkProcess) -> None:
    async def play() -> None:
        async with smolagents.client() as client:

            async def begun(said: str) -> CallHandle:
                handle = await client.submit("agt_smolagents_sleeper", message=said, conversation_id="waited")
                await asyncio.to_thread(smolagents.await_line, "waiting")
                return handle

            first = await begun("hello")
            smolagents.tell("go")
            assert (await first.result(timeout_s=10)).text == "you said hello as number 1"
            second = await begun("enough")
            await second.cancel("enough")
            with pytest.raises(CallCancelled):
                await second.result(timeout_s=10)
            smolagents.tell("go")  # Only now its thread is free, and the agent with it.
            third = await begun("again")
            smolagents.tell("go")
            assert (await third.result(timeout_s=10)).text == "you said again as number 2"

    run(play())


def test_a_team_answers_with_its_last_message_and_remembers_each_conversation(autogen: FrameworkProcess) -> None:
    async def play() -> None:
        async with autogen.client() as client:
            for numbers, conversation in (((1, 2), "one"), ((1, 2), "two"), ((3, 4), "one")):
                first, second = numbers
                found = await client.call("agt_autogen_pair", message="hello", conversation_id=conversation)
                assert found.text == f"you said you said hello as number {first} as number {second}"

    run(play())


def test_who_says_something_in_a_team_is_told_as_progress(autogen: FrameworkProcess) -> None:
    async def play() -> None:
        async with autogen.client() as client:
            events = [event async for event in client.stream("agt_autogen_pair", message="hello")]
        assert [event.message for event in events if event.type == "progress"] == ["First", "Second"]

    run(play())


def test_a_team_that_was_cancelled_works_on(autogen: FrameworkProcess) -> None:
    async def play() -> None:
        async with autogen.client() as client:
            found = await client.call("agt_autogen_pair", message="hello", conversation_id="broken")
            handle = await client.submit("agt_autogen_pair", message="wait", conversation_id="broken")
            await asyncio.to_thread(autogen.await_line, "waiting")
            await handle.cancel("enough")
            await asyncio.to_thread(autogen.await_line, "cancelled")
            found = await client.call("agt_autogen_pair", message="hello", conversation_id="broken")
            assert found.text == "you said you said hello as number 3 as number 4"

    run(play())
