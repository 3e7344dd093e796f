"""`Agent.wrap`: whose an object is, one object per call or per conversation, who waits for whom, what pieces become."""

import asyncio
import importlib
import sys
import threading
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest

from dragoman import Agent
from dragoman.errors import AgentError
from dragoman.sdk.adapters.adapter import Answer, Chunk, Made, Offer, Options, Piece, Turn, Usage, Wrapped, in_thread
from dragoman.sdk.adapters.conversations import Conversations, Histories
from dragoman.sdk.adapters.known import KNOWN, Known
from dragoman.sdk.content import Message, Text
from dragoman.sdk.wrap import adapted
from tests.sdk.working import call_of, working
from tests.support.run import run


def of_module(module: str, *bases: type) -> object:
    return type("Thing", bases, {"__module__": module})()


def known_by(obj: object) -> str | None:
    return next((known.file for known in KNOWN if known.recognises(obj)), None)


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("langgraph.graph.state", "langgraph"),
        ("pydantic_ai.agent", "pydantic_ai"),
        ("crewai.crew", "crewai"),
        ("crewai", "crewai"),
        ("crewais.crew", None),
        ("agents.agent", None),
        ("my.langgraph", None),
    ],
)
def test_an_object_is_known_by_the_module_it_comes_from(module: str, file: str | None) -> None:
    assert known_by(of_module(module)) == file


def test_so_is_one_of_a_class_made_from_theirs() -> None:
    theirs = type("Graph", (), {"__module__": "langgraph.pregel"})
    assert known_by(of_module("my.code", theirs)) == "langgraph"


def test_a_common_name_needs_a_second_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("agents")
    monkeypatch.setitem(sys.modules, "agents", mine)
    assert known_by(of_module("agents.agent")) is None
    mine.Runner = object  # pyright: ignore[reportAttributeAccessIssue] - as theirs has
    assert known_by(of_module("agents.agent")) == "openai_agents"


@pytest.mark.parametrize("file", sorted({known.file for known in KNOWN}))
def test_an_adapter_is_imported_without_its_framework(file: str) -> None:
    before = set(sys.modules)
    importlib.import_module(f"dragoman.sdk.adapters.{file}")
    brought = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert brought <= {"dragoman", "httptools", "msgspec", *sys.stdlib_module_names}


def test_what_nobody_knows_is_refused_with_a_list_of_what_is_known() -> None:
    with pytest.raises(
        TypeError, match=r"tests\.sdk\.test_wrap\.Stranger.*LangGraph.*OpenAI Agents.*callables"
    ) as told:
        Agent.wrap(Stranger())
    assert all(known.name in str(told.value) for known in KNOWN)


class Stranger:
    """No agent of anybody."""


@pytest.mark.parametrize(
    ("obj", "per", "said"),
    [
        (Stranger, "shared", "is a class"),
        (Stranger(), "call", "needs something that makes the object"),
        (run, "often", "this is 'often'"),
    ],
)
def test_options_that_make_no_sense_are_refused(obj: object, per: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Agent.wrap(obj, per=per)


def test_a_factory_is_a_plain_function() -> None:
    async def make() -> object:
        return len

    with pytest.raises(TypeError, match="not an async one"):
        Agent.wrap(make, per="call")


# -- one object for all, for a call, for a conversation


class Counter:
    """Counts how often it was called."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, text: str) -> int:
        self.count += 1
        return self.count


@pytest.mark.parametrize(
    ("agent", "counts"),
    [
        (lambda: Agent.wrap(Counter()), [1, 2, 3, 4]),
        (lambda: Agent.wrap(Counter, per="call"), [1, 1, 1, 1]),
        (lambda: Agent.wrap(Counter, per="conversation"), [1, 2, 1, 1]),
    ],
    ids=["shared", "call", "conversation"],
)
def test_an_object_serves_all_calls_or_one_or_those_of_a_conversation(
    agent: Callable[[], Agent], counts: list[int]
) -> None:
    async def play() -> list[Any]:
        made = agent()
        said = [("ada", "one"), ("ada", "one"), ("ada", "two"), ("bob", "one")]
        return [
            (await made.test.call(message="x", caller=caller, conversation_id=talk)).result for caller, talk in said
        ]

    assert run(play()) == counts


# -- a framework of our own: an adapter is a row and a file


class Talker:
    """What a test lets it do."""

    def __init__(self, run: Callable[[Turn], AsyncIterator[Piece]], **more: Any) -> None:
        self.run = run
        self.more = more


def talker_wrapped(obj: object, options: Options) -> Wrapped:
    assert isinstance(obj, Talker)
    return Wrapped(name="Talker", description="Talks", skills=(Offer(run=obj.run),), **obj.more)


def is_talker(obj: object) -> bool:
    return isinstance(obj, Talker)


@pytest.fixture(autouse=True)
def talkers(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("talker")
    module.wrapped = talker_wrapped  # pyright: ignore[reportAttributeAccessIssue] - all that an adapter has
    monkeypatch.setitem(sys.modules, "dragoman.sdk.adapters.talker", module)
    row = Known("talkers", "talker", is_talker)
    monkeypatch.setattr("dragoman.sdk.wrap.KNOWN", (row, *KNOWN))


def test_its_pieces_are_chunks_artifacts_usage_and_the_answer() -> None:
    async def work(turn: Turn) -> AsyncIterator[Piece]:
        yield Chunk("one ")
        yield Made(content={"n": 1}, name="figures")
        yield Usage(input_tokens=2, output_tokens=3, model="m")
        yield Usage(output_tokens=1)
        yield Chunk("two")
        yield Answer(f"one two {turn.text}")

    tried = run(Agent.wrap(Talker(work)).test.call(message="three"))
    assert [event.data["content"] for event in tried.events if event.name == "chunk"] == ["one ", "two"]
    assert tried.artifacts[0].name == "figures" and tried.artifacts[0].data == {"n": 1}
    assert tried.usage == {"input_tokens": 2, "output_tokens": 4, "model": "m"}
    assert tried.result == "one two three"


def test_its_card_has_one_skill_that_takes_messages() -> None:
    async def work(turn: Turn) -> AsyncIterator[Piece]:
        yield Answer(turn.text)

    card = Agent.wrap(Talker(work)).card()
    assert (card["id"], card["name"], card["description"]) == ("agt_talker", "Talker", "Talks")
    assert card["default_skill"] == "chat" and [skill["name"] for skill in card["skills"]] == ["chat"]
    assert "rate_limits" not in card
    card = Agent.wrap(Talker(work), name="Ada", id="ada", description="Answers", skill="talk").card()
    assert (card["id"], card["name"], card["description"]) == ("ada", "Ada", "Answers")
    assert [skill["name"] for skill in card["skills"]] == ["talk"]


@pytest.mark.parametrize(
    ("more", "talks", "most"),
    [
        ({"concurrency": 1}, ("one", "two"), 1),
        ({}, ("one", "one"), 1),
        ({}, ("one", "two"), 2),
        ({"conversational": False}, ("one", "one"), 2),
    ],
    ids=["locked", "one conversation", "two conversations", "remembers nothing"],
)
def test_calls_that_would_mix_wait_for_each_other(more: dict[str, Any], talks: tuple[str, str], most: int) -> None:
    at_once: list[int] = []
    inside = 0

    async def work(turn: Turn) -> AsyncIterator[Piece]:
        nonlocal inside
        inside += 1
        at_once.append(inside)
        for _ in range(5):
            await asyncio.sleep(0)
        inside -= 1
        yield Answer("done")

    async def play() -> None:
        agent = Agent.wrap(Talker(work, **more))
        async with asyncio.TaskGroup() as group:
            for talk in talks:
                group.create_task(agent.test.call(message="x", conversation_id=talk))

    run(play())
    assert max(at_once) == most


def test_the_card_of_a_locked_object_says_one_at_a_time() -> None:
    async def work(turn: Turn) -> AsyncIterator[Piece]:
        yield Answer(turn.text)

    agent = Agent.wrap(Talker(work, concurrency=1))
    assert agent.concurrency == 1 and agent.card()["rate_limits"] == {"concurrent_requests": 1}
    freed = Agent.wrap(lambda: Talker(work, concurrency=1), per="call")
    assert freed.concurrency > 1 and "rate_limits" not in freed.card()


def test_a_run_ends_with_its_call() -> None:
    ended: list[str] = []

    async def work(turn: Turn) -> AsyncIterator[Piece]:
        try:
            yield Chunk("half")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def play() -> None:
        async with working(Agent.wrap(Talker(work)), call_of("chat", {"text": "x"})) as told:
            await told.until("chunk")
            told.work.cancel("enough")
        assert told.last[0] == "cancelled" and ended == ["cancelled"]

    run(play())


def test_a_thread_cannot_be_stopped_and_is_waited_for() -> None:
    begun, go = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        go.wait(10)

    async def play() -> None:
        task = asyncio.ensure_future(in_thread(block))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.wait([task], timeout=0.05)
        assert not task.done(), "its object would be taken for free"
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(play())


# -- conversations


def test_of_the_conversations_the_one_unused_for_longest_goes() -> None:
    kept: Conversations[list[int]] = Conversations(list, most=2)
    kept.of(("a", "1")).append(1)
    kept.of(("a", "2")).append(2)
    assert kept.of(("a", "1")) == [1]
    kept.of(("a", "3"))
    assert len(kept) == 2
    assert kept.of(("a", "1")) == [1]
    assert kept.of(("a", "2")) == []


def test_a_history_is_what_was_kept_else_what_the_hub_knows() -> None:
    histories = Histories()
    seen: list[list[str]] = []

    async def work(turn: Turn) -> AsyncIterator[Piece]:
        before = histories.of(turn, lambda is_user, text: f"{'user' if is_user else 'agent'}: {text}")
        seen.append(before)
        histories.add(turn, before, [turn.text])
        yield Answer("done")

    async def play() -> None:
        agent = Agent.wrap(Talker(work))
        earlier = [Message(parts=(Text("hi"),)), Message(role="agent", parts=(Text("hello"),))]
        await agent.test.call(message="one", history=earlier)
        await agent.test.call(message="two", history=earlier)
        await agent.test.call(message="three", conversation_id="another")
        for number in range(60):
            await agent.test.call(message=str(number), conversation_id="long")

    run(play())
    assert seen[0] == ["user: hi", "agent: hello"]
    assert seen[1] == ["user: hi", "agent: hello", "one"]
    assert seen[2] == []
    assert seen[-1] == [str(number) for number in range(9, 59)], "the newest 50"


def test_an_error_of_the_object_is_told_by_its_name_alone() -> None:
    async def work(turn: Turn) -> AsyncIterator[Piece]:
        yield Chunk("half")
        raise ValueError("the password is 1234")

    with pytest.raises(AgentError, match=r"^chat failed: ValueError"):
        run(Agent.wrap(Talker(work)).test.call("chat", {"text": "x"}))


def test_adapted_gives_what_the_adapter_gives() -> None:
    async def work(turn: Turn) -> AsyncIterator[Piece]:
        yield Answer(turn.input)

    assert adapted(Talker(work), Options()).skills[0].run is work
    assert run(Agent.wrap(Talker(work)).test.call("chat", {"a": 1})).result == {"a": 1}
