"""Skills as tools, against a real hub: found, named, called, renewed; with functions, chat completions' and MCP's."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from dragoman import A2AClient, Agent, Context, File, errors, models
from dragoman.sdk.client.tool_frameworks import KNOWN
from dragoman.sdk.scope import Scope, within
from dragoman.sdk.testing.hubs import ThreadedHub, hub_in_thread
from tests.end_to_end.world import join, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent
from tests.support.run import run

SEARCH = "agt_archive__web_search"


def archive() -> Agent:
    agent = Agent("Archive", description="Knows every book.", tags=("books",))

    @agent.skill
    def web_search(query: Annotated[str, "What to look for"], max_results: int = 2) -> dict[str, Any]:
        """Search the web"""
        return {"results": [query] * max_results}

    @agent.skill
    def count(words: list[str]) -> list[int]:
        """Count letters"""
        return [len(word) for word in words]

    @agent.skill
    def lend(title: str) -> File:
        """Lend a book"""
        if title == "Tides":
            raise errors.AgentError("Somebody else has it")
        return File(bytes=title.encode(), name="book.txt", mime_type="text/plain")

    @agent.skill
    def forget() -> None:
        """Forget everything"""

    @agent.skill
    async def where(ctx: Context) -> dict[str, Any]:
        """Say which call this is"""
        return {"conversation": ctx.conversation_id, "trace": ctx.trace_id, "left": ctx.remaining_s}

    return agent


def greeter() -> Agent:
    agent = Agent("Greeter", description="Greets people.")

    @agent.on_message
    async def chat(message: str) -> str:  # pyright: ignore[reportUnusedFunction] - it is published
        """Talk"""
        return message.upper()

    @agent.skill
    async def fit(ctx: Context) -> str:  # pyright: ignore[reportUnusedFunction] - it is published
        """Fit a suit"""
        return await ctx.ask("Which size?")

    return agent


@pytest.fixture(scope="module")
def world() -> Iterator[ThreadedHub]:
    with hub_in_thread() as running:
        running.add(archive())
        running.add(greeter())
        yield running


def test_a_tool_is_a_function_that_says_what_it_takes(world: ThreadedHub) -> None:
    async def play() -> None:
        async with world.client() as client:
            tools = {tool.name: tool for tool in await client.tools()}
            search = tools[SEARCH]
            assert search.description == "Search the web\nBy the agent Archive: Knows every book."
            assert inspect.getdoc(search) == search.description
            assert search.input_schema == {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for"},
                    "max_results": {"type": "integer", "default": 2},
                },
                "required": ["query"],
            }
            assert inspect.iscoroutinefunction(search)
            assert str(inspect.signature(search)) == "(*, query: str, max_results: int = 2) -> Any"
            assert search.to_openai_schema()["function"]["parameters"] == search.input_schema
            found = await search(query="tides", max_results=None)
            assert found == {"results": ["tides", "tides"]}
            assert found.id.startswith("a2a_call_")
            assert await tools["agt_archive__count"](words=["a", "bcd"]) == [1, 3]
            assert await tools["agt_greeter__chat"](text="hello") == "HELLO"
            assert await tools["agt_archive__forget"]() is None
            book = await tools["agt_archive__lend"](title="Rivers")
            assert book.artifacts[0].parts[0].bytes == b"Rivers"

    run(play())


def test_an_agent_of_ours_takes_them_among_its_tools(world: ThreadedHub) -> None:
    async def play() -> None:
        async with world.client() as client:
            tools = await client.tools(agent="agt_archive")
            model = models.scripted([
                models.ModelReply(tool_calls=(
                    models.ToolCall(name=SEARCH, arguments={"query": "tides"}),
                    models.ToolCall(name="agt_archive__lend", arguments={"title": "Tides"}),
                    models.ToolCall(name=SEARCH, arguments={}),
                )),
                "They rise.",
            ])  # fmt: skip
            done = await Agent("Reader", "Read.", tools=tools, model=model).run("What of tides?")
        assert done.content == "They rise."
        found, refused, wrong = done.steps[0].results
        assert found == '{"results":["tides","tides"]}'
        assert refused == "AGENT_ERROR: Somebody else has it. Do not repeat this call; use another tool or say so."
        assert wrong.startswith("VALIDATION_ERROR: The input does not fit web_search: query:")
        assert wrong.endswith("Correct the arguments and call again.")

    run(play())


def test_chat_completions_take_them_as_they_are_and_call_by_name(world: ThreadedHub) -> None:
    async def play() -> None:
        async with world.client() as client:
            tools = await client.tools("openai", skill="web_search")
            (shown,) = tools
            assert shown["type"] == "function"
            assert shown["function"].keys() == {"name", "description", "parameters"}
            assert shown["function"]["name"] == SEARCH
            assert await tools.call(SEARCH, '{"query": "tides"}') == '{"results":["tides","tides"]}'
            assert "are not JSON. Correct the arguments" in await tools.call(SEARCH, '{"query"')
            assert await tools.call("search", {}) == f"There is no tool 'search'. There are: {SEARCH}."

    run(play())


def test_mcp_shows_them_and_hears_which_failed(world: ThreadedHub) -> None:
    async def play() -> None:
        async with world.client() as client:
            tools = await client.tools("mcp", agent="agt_archive", skill=["web_search", "lend"])
            assert [tool.keys() for tool in tools] == [{"name", "description", "inputSchema"}] * 2
            assert await tools.call(SEARCH, {"query": "tides", "max_results": 1}) == {
                "content": [{"type": "text", "text": '{"results":["tides"]}'}],
                "structuredContent": {"results": ["tides"]},
                "isError": False,
            }
            failed = await tools.call("agt_archive__lend", {"title": "Tides"})
            assert failed["isError"] is True
            assert failed["content"][0]["text"].startswith("AGENT_ERROR: Somebody else has it.")
            book = await tools.call("agt_archive__lend", {"title": "Rivers"})
            assert book["content"][0]["text"] == "[file: book.txt, text/plain, 6 bytes]"

    run(play())


def test_what_fails_is_raised_where_that_is_asked_for(world: ThreadedHub) -> None:
    async def play() -> None:
        async with world.client() as client:
            (fit,) = await client.tools(skill="fit", raise_errors=True)
            with pytest.raises(errors.InputRequired) as asked:
                await fit()
            assert (await asked.value.handle.send("48")).text == "48"
            (fit,) = await client.tools(skill="fit")
            assert str(await fit()).startswith("INPUT_REQUIRED: Which size? Call this tool again")
            (search,) = await client.tools(skill="web_search", raise_errors=True, timeout_ms=5000)
            with pytest.raises(errors.InputRefused):
                await search()

    run(play())


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"skill": "chat"}, ["agt_greeter__chat"]),
        ({"skill": ["chat", "lend"]}, ["agt_archive__lend", "agt_greeter__chat"]),
        ({"agent": "agt_greeter"}, ["agt_greeter__chat", "agt_greeter__fit"]),
        ({"agent": ["agt_greeter", "agt_archive"], "skill": "lend"}, ["agt_archive__lend"]),
        ({"q": "greets"}, ["agt_greeter__chat", "agt_greeter__fit"]),
        ({"tag": "books", "skill": ["lend", "chat"]}, ["agt_archive__lend"]),
        ({"q": "greets", "agent": "agt_archive"}, []),
        ({"agent": "agt_greeter", "limit": 1}, ["agt_greeter__chat"]),
    ],
)
def test_only_the_skills_that_were_asked_for(world: ThreadedHub, options: Any, names: list[str]) -> None:
    assert sorted(tool["name"] for tool in world.client().sync.tools("mcp", **options)) == names


def test_an_agent_that_was_named_and_is_not_there_is_an_error(world: ThreadedHub) -> None:
    with pytest.raises(errors.AgentNotFound, match="agt_nobody"):
        world.client().sync.tools(agent=["agt_greeter", "agt_nobody"])


def test_a_list_is_of_its_moment_until_it_is_renewed(world: ThreadedHub) -> None:
    async def play() -> None:
        async with world.client() as client:
            tools = await client.tools("mcp", q="newcomer")
            assert tools == []
            newcomer = Agent("Newcomer")

            @newcomer.skill
            def arrive() -> str:  # pyright: ignore[reportUnusedFunction] - it is published
                """Arrive"""
                return "here"

            await asyncio.to_thread(world.add, newcomer)
            assert tools == []
            assert await tools.refresh() is tools
            assert [tool["name"] for tool in tools] == ["agt_newcomer__arrive"]
            assert (await tools.call("agt_newcomer__arrive"))["content"][0]["text"] == "here"

    run(play())


def test_code_that_cannot_await_has_them_too(world: ThreadedHub) -> None:
    tools = world.client().sync.tools(skill="web_search")
    (search,) = tools
    assert not inspect.iscoroutinefunction(search)
    assert search(query="tides", max_results=1) == {"results": ["tides"]}
    assert tools.call(SEARCH, {"query": "tides", "max_results": 1}) == {"results": ["tides"]}
    assert len(tools.refresh()) == 1

    async def inside() -> None:
        with pytest.raises(RuntimeError, match=r"await client\.tools"):
            world.client().sync.tools()

    run(inside())


def test_a_call_of_a_tool_in_a_handler_is_a_nested_call(world: ThreadedHub) -> None:
    outer = Agent("Outer", hub=world.url)

    @outer.skill
    async def ask(ctx: Context) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction] - it is published
        """Ask by way of a tool"""
        (where,) = await A2AClient(world.url).tools(skill="where")
        (again,) = await A2AClient(world.url).tools(skill="ask")
        return {"mine": ctx.trace_id, "inner": dict(await where()), "loop": await again()}

    world.add(outer)

    async def play() -> None:
        async with world.client() as client:
            found = await client.call("agt_outer", "ask", conversation_id="conv_7", timeout_ms=20_000)
            inner = found["inner"]
            assert (inner["conversation"], inner["trace"]) == ("conv_7", found["mine"])
            assert 0 < inner["left"] < 20
            assert found["loop"].startswith("CALL_LOOP: ")
            (where,) = await client.tools(skill="where", conversation_id="conv_8")
            assert (await where())["conversation"] == "conv_8"
            with within(Scope(call_id="a2a_call_mine", deadline=0.0)):
                assert str(await where()).startswith("AGENT_TIMEOUT: No time is left for this call.")

    run(play())


def test_a_key_is_handed_what_it_may_use_and_nothing_else(hub: HubProcess, agent: PlatformAgent) -> None:
    needs = {"type": "bearer", "scopes_required": ["a2a:call"]}
    agent_id = join(hub, agent, skills=[skill("sing"), skill("dance", scopes=["stage:dance"])], authentication=needs)[
        "id"
    ]

    def names(*scopes: str, **more: Any) -> list[str]:
        client = A2AClient(hub.url, hub.new_key(*scopes, **more))
        return [tool["name"].partition("__")[2] for tool in client.sync.tools("mcp", agent=agent_id)]

    assert names("a2a:call", "stage:dance") == ["sing", "dance"]
    assert names("a2a:call") == ["sing"]
    assert names("a2a:call", "stage:dance", allow=[f"{agent_id}:dance"]) == ["dance"]
    assert names("a2a:register") == []


@pytest.mark.parametrize("framework", KNOWN)
def test_a_framework_that_is_not_there_is_named_with_what_to_install(framework: Any, world: ThreadedHub) -> None:
    with pytest.raises(errors.MissingExtra) as missing:
        world.client().sync.tools(framework)
    assert str(missing.value).startswith(f'client.tools("{framework}") needs ')
    assert str(missing.value).endswith(f": pip install {KNOWN[framework].package}")


def test_an_unknown_framework_is_refused_with_those_there_are(world: ThreadedHub) -> None:
    unknown: Any = "langchian"
    with pytest.raises(ValueError, match=r"no tools of 'langchian'; .*: plain, openai, mcp, langchain, "):
        world.client().sync.tools(unknown)


def test_nothing_of_a_framework_is_imported_before_it_is_named() -> None:
    program = """
import sys
from dragoman.sdk.client import tool_frameworks
for framework in ("plain", "openai", "mcp"):
    tool_frameworks.form_of(framework, blocking=False)
print(*[name for name in sys.modules if ".adapters" in name or name == "pydantic"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"
