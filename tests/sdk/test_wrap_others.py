"""Objects of further frameworks: whose they are, what cannot be wrapped, and what is read of them without a model."""

import sys
from collections.abc import AsyncIterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dragoman import Agent
from dragoman.sdk.adapters import autogen, llama_index, smolagents
from dragoman.sdk.adapters.adapter import Usage
from dragoman.sdk.adapters.conversations import TURNS
from dragoman.sdk.adapters.known import KNOWN
from tests.support.run import run


def known_by(obj: object) -> str | None:
    return next((known.file for known in KNOWN if known.recognises(obj)), None)


def of_module(module: str, **members: Any) -> object:
    return type("Thing", (), {"__module__": module, **members})()


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("google.adk.agents.llm_agent", "google_adk"),
        ("google.adk.runners", "google_adk"),
        ("google.genai.types", None),
        ("llama_index.core.agent.workflow", "llama_index"),
        ("smolagents.agents", "smolagents"),
        ("autogen_agentchat.teams", "autogen"),
        ("autogen.agentchat", None),
        ("workflows.workflow", None),
    ],
)
def test_an_object_is_known_by_the_module_it_comes_from(module: str, file: str | None) -> None:
    assert known_by(of_module(module)) == file


def test_a_workflow_is_llama_indexes_where_theirs_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("workflows")
    monkeypatch.setitem(sys.modules, "workflows", theirs)
    assert known_by(of_module("workflows.workflow")) is None
    theirs.Workflow = object  # pyright: ignore[reportAttributeAccessIssue] - as theirs has
    assert known_by(of_module("workflows.workflow")) == "llama_index"


@pytest.mark.parametrize(
    ("module", "advice"),
    [
        ("llama_index.core.llms", r"wrap an agent, a workflow, a chat engine or a query engine"),
        ("smolagents.tools", "wrap an agent"),
        ("autogen_agentchat.messages", "wrap an agent or a team"),
    ],
)
def test_what_answers_nothing_by_itself_is_refused_with_what_to_wrap(module: str, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        Agent.wrap(of_module(module))


def test_a_query_engine_answers_and_remembers_nothing() -> None:
    async def aquery(self: object, text: str) -> object:
        return SimpleNamespace(response=f"all about {text}")

    agent = Agent.wrap(of_module("llama_index.core.query_engine", aquery=aquery), name="Library")
    assert run(agent.test.call("chat", {"text": "tides"})).result == "all about tides"


def test_a_query_engine_that_streams_is_streamed() -> None:
    async def words() -> AsyncIterator[str]:
        for word in ("all ", "about tides"):
            yield word

    async def aquery(self: object, text: str) -> object:
        return SimpleNamespace(async_response_gen=words)

    agent = Agent.wrap(of_module("llama_index.core.query_engine", aquery=aquery), name="Library")
    tried = run(agent.test.call("chat", {"text": "tides"}))
    assert [event.data["content"] for event in tried.events if event.name == "chunk"] == ["all ", "about tides"]
    assert tried.result == "all about tides"


@pytest.mark.parametrize(
    ("raw", "used"),
    [
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 5}, "model": "m"}, (7, 5, "m")),
        (SimpleNamespace(usage=SimpleNamespace(input_tokens=7, output_tokens=5)), (7, 5, None)),
        ({"usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 5}}, (7, 5, None)),
        ({"prompt_eval_count": 7, "eval_count": 5, "model": "local"}, (7, 5, "local")),
    ],
)
def test_what_a_model_used_is_read_in_the_words_of_its_provider(raw: object, used: tuple[int, int, str | None]) -> None:
    taken, given, model = used
    found = llama_index._usage(raw)  # pyright: ignore[reportPrivateUsage] - the table of their words
    assert found == Usage(input_tokens=taken, output_tokens=given, model=model)


@pytest.mark.parametrize("raw", [None, {}, {"usage": None}, "words", {"usage": {"prompt_tokens": "many"}}])
def test_an_answer_that_does_not_say_what_it_used_is_not_counted(raw: object) -> None:
    assert llama_index._usage(raw) is None  # pyright: ignore[reportPrivateUsage] - the table of their words


def test_the_newest_turns_of_an_agents_steps_are_kept_whole() -> None:
    steps = [SimpleNamespace(task=n) if part == 0 else SimpleNamespace(of=n) for n in range(60) for part in range(3)]
    kept = smolagents._newest(steps)  # pyright: ignore[reportPrivateUsage] - pure, and far from what shows it
    assert kept == steps[-3 * TURNS :]
    assert smolagents._newest(steps[:6]) == steps[:6]  # pyright: ignore[reportPrivateUsage] - as above


@pytest.mark.parametrize(
    ("output", "answer"), [({"x": 7}, {"x": 7}), (7, 7), ("words", "words"), (1 + 2j, "(1+2j)"), (None, None)]
)
def test_whatever_an_agent_of_smolagents_ends_with_is_an_answer(output: object, answer: object) -> None:
    assert smolagents._answer(output) == answer  # pyright: ignore[reportPrivateUsage] - pure, and far from what shows it


def test_a_team_that_was_stopped_is_given_a_runtime_of_its_own_and_so_are_teams_in_it() -> None:
    def made(*, ignore_unhandled_exceptions: bool) -> str:
        return "new"

    core = SimpleNamespace(SingleThreadedAgentRuntime=made)
    inner = SimpleNamespace(_participants=(), _embedded_runtime=True, _runtime="old", _initialized=True)
    outer = SimpleNamespace(_participants=(inner,), _embedded_runtime=False, _runtime="theirs", _initialized=True)
    autogen._renew(outer, core)  # pyright: ignore[reportPrivateUsage] - what a cancelled team needs, step by step
    assert (inner._runtime, inner._initialized) == ("new", False)
    assert (outer._runtime, outer._initialized) == ("theirs", True)
