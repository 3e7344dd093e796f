"""Agents: what they publish, and who answers a message that names no skill."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, assert_type

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.cards import read_any_card
from dragoman.model.agent import AgentCard
from dragoman.model.json import JsonObject
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import File, Message
from dragoman.sdk.work.context import Context
from tests.sdk.working import call_of, worked
from tests.support.peers import peer_python

ROOT = Path(__file__).parents[2]


def said(*parts: JsonObject) -> JsonObject:
    return {"message": {"id": "m", "role": "user", "parts": list(parts)}}


async def _model(request: object) -> object:
    raise NotImplementedError


def test_a_decorated_function_stays_what_it_was() -> None:
    agent = Agent("Research Assistant")

    @agent.skill
    async def web_search(query: str, max_results: int = 10) -> dict[str, int]:
        """Search the web

        for information"""
        return {query: max_results}

    @agent.skill(
        name="sum_of", tags=["math"], examples=[{"first": 1}], idempotent=True, scopes=["a2a:math"], timeout_s=5
    )
    def add(first: int, second: int = 1) -> int:
        return first + second

    assert assert_type(add(1), int) == 2
    assert assert_type(asyncio.run(web_search("x")), dict[str, int]) == {"x": 10}
    assert list(agent.skills) == ["web_search", "sum_of"]
    assert agent.skills["web_search"].description == "Search the web"
    assert agent.skills["sum_of"].timeout_s == 5
    assert agent.card()["skills"][1] == {
        "name": "sum_of",
        "description": "sum_of",
        "input_schema": {
            "type": "object",
            "properties": {"first": {"type": "integer"}, "second": {"type": "integer", "default": 1}},
            "required": ["first"],
        },
        "tags": ["math"],
        "examples": [{"first": 1}],
        "scopes": ["a2a:math"],
        "idempotent": True,
    }
    assert repr(agent) == "<Agent 'Research Assistant' (agt_research_assistant): web_search, sum_of>"


def test_schemas_may_be_given_instead() -> None:
    agent = Agent("Given")
    given, made = {"type": "object", "title": "own"}, {"type": "object", "minProperties": 1}

    @agent.skill(input_schema=given, output_schema=made, description="Own words")
    async def search(query: str = "") -> str:
        return query

    skill = agent.card()["skills"][0]
    assert (skill["input_schema"], skill["output_schema"], skill["description"]) == (given, made, "Own words")


def test_a_name_is_published_once() -> None:
    agent = Agent("Once")

    @agent.skill
    async def search() -> None: ...

    with pytest.raises(ValueError, match="'Once' has a skill 'search' already"):
        agent.skill(search)
    agent.skill(name="chat")(search)
    with pytest.raises(ValueError, match="handler of messages already"):
        agent.on_message(search)
    with pytest.raises(ValueError, match="Pass name="):
        agent.skill(name="x" * 129)(search)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": " "}, "needs a name"),
        ({"name": "a", "id": "a b"}, "letters"),
        ({"name": "a", "concurrency": 0}, "at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_made(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Agent(**wrong)


def test_a_key_is_not_shown() -> None:
    agent = Agent("Keyed", api_key="ap_secret")
    assert "ap_secret" not in repr(vars(agent))
    assert agent.api_key is not None and agent.api_key.reveal() == "ap_secret"


# -- a message that names no skill


async def _answered(agent: Agent, skill: str | None = None, given: JsonObject | None = None, **more: Any) -> Any:
    name, data = (await worked(agent, call_of(skill, given, **more))).last
    return data.get("result") if name == "complete" else data


def test_a_handler_of_messages_comes_first() -> None:
    agent = Agent("Chatty", model=_model)

    @agent.skill
    async def other(query: str) -> str:
        return query

    @agent.on_message
    async def talk(message: Message, ctx: Context) -> str:
        """Talks about anything"""
        return f"{message.text} {len(message.files)} {message.data} from {ctx.caller.id}"

    assert agent.default_skill == "chat"
    assert list(agent.skills) == ["chat", "other", "handle"]
    card = agent.card()
    assert (card["default_skill"], card["skills"][0]["description"]) == ("chat", "Talks about anything")
    parts = said({"text": "hi"}, {"file": {"uri": "u"}}, {"data": 5})
    assert asyncio.run(_answered(agent, **parts)) == "hi 1 5 from agt_caller"
    # The same by its name, and from a caller that knows only inputs.
    assert asyncio.run(_answered(agent, "chat", {"text": "hi"})) == "hi 0 None from agt_caller"
    assert asyncio.run(_answered(agent, "chat", {"a": 1})) == " 0 {'a': 1} from agt_caller"


def test_a_handler_of_messages_takes_what_it_names() -> None:
    async def nothing() -> str:
        return "nothing"

    async def message_alone(said: Message) -> str:
        return said.text

    def context_alone(ctx: Context) -> str:
        return ctx.message.text

    async def words(text: str) -> str:
        return text

    async def by_name(message: Any, ctx: Any) -> str:
        return f"{message.text}{ctx.attempt}"

    async def streamed(message: Message) -> AsyncIterator[str]:
        yield message.text

    results: list[Any] = []
    for function in (nothing, message_alone, context_alone, words, by_name, streamed):
        agent = Agent("Chatty")
        assert agent.on_message(function) is function
        results.append(asyncio.run(_answered(agent, **said({"text": "hi"}))))
    assert results == ["nothing", "hi", "hi", "hi", "hi1", None]

    async def odd(first: Message, second: Message) -> None: ...

    with pytest.raises(TypeError, match="odd: a message handler takes a message and a Context"):
        Agent("Odd").on_message(odd)


class Manager(Agent):
    def __init__(self) -> None:
        super().__init__(name="Manager", instructions="Delegate tasks.")
        self.specialists = {"code": "agt_code"}
        self.skill(self.report)

    async def handle_task(self, task: str) -> str:
        return f"{task} for {self.specialists['code']}"

    async def report(self, day: int) -> str:
        """What was done"""
        return f"{self.name} {day}"


def test_the_handle_task_of_a_subclass_is_the_skill_handle() -> None:
    agent = Manager()
    assert agent.default_skill == "handle"
    assert list(agent.skills) == ["report", "handle"]
    handle = agent.card()["skills"][1]
    assert handle["input_schema"] == {
        "type": "object",
        "properties": {"task": {"type": "string"}},
        "required": ["task"],
    }
    assert asyncio.run(_answered(agent, "handle", {"task": "fix"})) == "fix for agt_code"
    assert asyncio.run(_answered(agent, **said({"text": "fix it"}))) == "fix it for agt_code"
    assert asyncio.run(_answered(agent, **said({"data": {"task": "this"}}))) == "this for agt_code"
    assert asyncio.run(_answered(agent, "report", {"day": 1})) == "Manager 1"
    refused = asyncio.run(_answered(agent, "handle", {}))
    assert (refused["code"], refused["details"]["errors"][0]["path"]) == ("VALIDATION_ERROR", "task")


def test_handle_task_may_have_the_context_too_and_call_its_task_what_it_likes() -> None:
    class Careful(Agent):
        def handle_task(self, ctx: Context, job: str) -> str:
            return f"{job} {ctx.call_id}"

    assert asyncio.run(_answered(Careful("Careful"), **said({"text": "x"}))) == "x a2a_call_1"


def test_a_model_publishes_handle() -> None:
    agent = Agent("Model", model=_model)
    assert (agent.default_skill, list(agent.skills)) == ("handle", ["handle"])
    assert agent.card()["capabilities"]["memory"] is True


def test_an_agent_may_have_neither_skills_nor_a_model() -> None:
    agent = Agent("Coordinator", "Coordinate research tasks.")
    assert (dict(agent.skills), agent.default_skill, agent.card()["skills"]) == ({}, None, [])
    refused = asyncio.run(_answered(agent, **said({"text": "x"})))
    assert (refused["code"], "It has: none." in refused["message"]) == ("SKILL_NOT_FOUND", True)
    for dialect in DIALECTS:
        assert agent.card(dialect)


def test_an_own_skill_named_handle_takes_the_place_of_the_models() -> None:
    agent = Agent("Own", model=_model)

    @agent.skill
    async def handle(task: str) -> str:
        return f"own {task}"

    assert asyncio.run(_answered(agent, **said({"text": "x"}))) == "own x"


# -- cards


def _published() -> Agent:
    agent = Agent(
        "Research Assistant",
        description="Finds things",
        version="1.2.0",
        tags=["web"],
        provider={"name": "Acme", "url": "https://acme.example"},
        rate_limits={"requests_per_minute": 60},
        hub="https://hub.example",
    )

    @agent.skill(tags=["find"])
    async def web_search(query: str, max_results: int = 10) -> dict[str, list[str]]:
        """Search the web for information"""
        return {"results": [query] * max_results}

    @agent.on_message
    async def talk(message: Message) -> list[File]:
        return list(message.files)

    return agent


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_a_card_can_be_had_in_every_dialect_and_is_read_again(dialect: str) -> None:
    card = _published().card(dialect)
    msgspec.json.encode(card)
    read = read_any_card({**card, "endpoint": "https://x.example"} if dialect == "platform" else card, dialect)
    assert read.name == "Research Assistant"
    assert {skill.id for skill in read.skills} == {"chat", "web_search"}
    if dialect != "platform":
        assert "https://hub.example/agents/agt_research_assistant" in str(card)


def test_the_platforms_card_says_all_that_the_hub_reads() -> None:
    card = _published().card()
    assert "endpoint" not in card
    read = DIALECTS["platform"].read_card({**card, "endpoint": "https://x.example"})
    assert isinstance(read, AgentCard)
    assert (read.id, read.version, read.description) == ("agt_research_assistant", "1.2.0", "Finds things")
    assert (read.default_skill, read.tags, read.streaming, read.memory) == ("chat", ("web",), True, False)
    assert read.limits.requests_per_minute == 60 and read.scopes_required == ("a2a:call",)
    search = read.skill("web_search")
    assert search is not None and search.tags == ("find",) and search.input_schema is not None
    assert search.input_schema["properties"]["max_results"] == {"type": "integer", "default": 10}


def test_a_card_of_ones_own_is_laid_over_the_one_that_is_made() -> None:
    agent = Agent("Own", card={"version": "9.0.0", "pricing": {"per_call_usd": 1}})
    card = agent.card()
    assert (card["name"], card["version"], card["pricing"]) == ("Own", "9.0.0", {"per_call_usd": 1})


def test_a_dialect_that_there_is_none_of_is_named() -> None:
    with pytest.raises(ValueError, match=r"There is no dialect 'klingon'; there are: a2a-1.0"):
        Agent("Own").card("klingon")


def test_an_agent_is_made_without_the_hubs_packages() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import sys, dragoman.sdk.agent.agent, dragoman.sdk.work.trying; print(*sys.modules)"],
        capture_output=True, text=True, check=True, timeout=30,
    ).stdout.split()  # fmt: skip
    extras = {
        "uvicorn",
        "starlette",
        "joserfc",
        "cryptography",
        "jsonschema_rs",
        "pydantic",
        "dragoman.server",
        "dragoman.hub",
    }
    assert not extras & set(found)


PYDANTIC = """
import asyncio, json, sys
from typing import Annotated
from pydantic import BaseModel, Field
from dragoman.sdk.agent.agent import Agent

class Place(BaseModel):
    name: str

class Query(BaseModel):
    text: str = Field(min_length=1, description="What")
    places: list[Place] = []

agent = Agent("Typed")

@agent.skill
async def search(
    query: Query,
    count: Annotated[int | None, Field(ge=1, le=9, description="How many")] = None,
    code: Annotated[str, Field(pattern="^[a-z]+$", max_length=4)] = "abc",
    share: float = Field(0.5, gt=0),
) -> Query:
    assert isinstance(query, Query) and isinstance(query.places[0], Place)
    return query

async def main():
    good = await agent.test.call("search", {"query": {"text": "x", "places": [{"name": "Oslo"}]}, "count": 3})
    refused = []
    for wrong in ({"query": {}}, {"query": {"text": "x"}, "count": 0}, {"query": {"text": "x"}, "code": "A"}):
        try:
            await agent.test.call("search", wrong)
        except Exception as error:
            refused.append(error.details["errors"][0])
    skill = agent.card()["skills"][0]
    print(json.dumps([good.result, refused, skill["input_schema"], skill["output_schema"]]))

asyncio.run(main())
"""


def test_pydantic_models_and_fields_are_understood_as_they_are() -> None:
    site = next((peer_python("a2a-1.3.0").parents[1] / "lib").glob("python*/site-packages"))
    # After our own packages: only what those do not have comes from there.
    script = f"import sys; sys.path.append({str(site)!r})\n{PYDANTIC}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result, refused, takes, gives = json.loads(done.stdout)
    assert result == {"text": "x", "places": [{"name": "Oslo"}]}
    assert refused == [
        {"path": "query", "message": "text: Field required"},
        {"path": "count", "message": "expected int >= 1"},
        {"path": "code", "message": "expected str matching regex '^[a-z]+$'"},
    ]
    place = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    query: dict[str, Any] = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "description": "What"},
            "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}, "default": []},
        },
        "required": ["text"],
    }
    assert takes == {
        "type": "object",
        "properties": {
            "query": query,
            "count": {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}],
                "description": "How many",
                "default": None,
            },
            "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4, "default": "abc"},
            "share": {"type": "number", "exclusiveMinimum": 0, "default": 0.5},
        },
        "required": ["query"],
        "$defs": {"Place": place},
    }
    assert gives == {**query, "$defs": {"Place": place}}
