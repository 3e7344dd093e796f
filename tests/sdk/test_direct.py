"""One agent called without a hub: agents of every dialect, in threads of the test or as their own SDKs serve them."""

import asyncio
import json
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from dragoman import A2AClient, File, errors
from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.model.errors import TaskFinished, TaskNotFound
from dragoman.model.fit import Feature
from dragoman.sdk.client.results import StreamEvent
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.matrix import agent_of
from tests.support.peers import PeerProcess, echo_agent
from tests.support.ports import free_port
from tests.support.run import run
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving
from tests.support.telling import FIRST, SECOND, WHOLE, Teller, telling_agent

# Their agents show no card of their own: a hub is told it, and a client which dialect it is.
UNSEEN = ("platform", "directory")


def known(slug: str, url: str) -> A2AClient:
    return A2AClient.direct(url, dialect=slug if slug in UNSEEN else None)


@contextmanager
def stub_of(dialect: Dialect) -> Generator[tuple[StubAgent, A2AClient]]:
    with agent_of(dialect)() as stub:
        if isinstance(stub, EnvelopeAgent):
            stub.at_once = True  # it has no hub to report to
        yield stub, known(dialect.slug, _place(stub))


def _place(stub: StubAgent) -> str:
    return str(stub.card["endpoint"]) if stub.slug == "platform" else stub.url


async def told(client: A2AClient, **call: Any) -> list[StreamEvent]:
    return [event async for event in client.stream(skill="echo", **call)]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_an_agent_of_any_dialect_is_called_with_the_clients_results_and_errors(dialect: Dialect) -> None:
    async def all_of_it(client: A2AClient, stub: StubAgent) -> None:
        async with client:
            said = await client.call(skill="echo", message="hello, wörld")
            assert (said, said.text) == ({"text": "hello, wörld"}, "hello, wörld")
            assert said.timing["duration_ms"] >= 0
            assert await client.call(skill="echo", input={"q": "ü", "n": [1, None]}) == {"q": "ü", "n": [1, None]}
            assert (await client.handle(said.id).status()).status == "completed"
            assert await client.handle(said.id).result() == said
            with pytest.raises(errors.AgentError, match=FAILURE):
                await client.call(skill="echo", message="fail")
            events = await told(client, message="again")
            assert [events[0].type, events[-1].type] == ["start", "complete"]
            assert events[-1].result == {"text": "again"}
            assert {event.call_id for event in events} == {events[0].call_id} != {""}
            with pytest.raises(errors.AgentError, match=FAILURE):
                await told(client, message="fail")

    with stub_of(dialect) as (stub, client):
        run(all_of_it(client, stub))
        looked = [path for method, path, _, _ in stub.requests if method == "GET"]
        assert len(looked) == len(set(looked))  # its card was read once, whatever was called


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_an_agents_question_is_answered_through_the_handle(dialect: Dialect) -> None:
    async def asked(client: A2AClient) -> None:
        with pytest.raises(errors.InputRequired, match=r"Which one\?") as raised:
            await client.call(skill="echo", message="ask")
        assert raised.value.question == QUESTION
        assert await raised.value.handle.send("the second") == {"text": "the second"}
        with pytest.raises(TaskFinished):
            await raised.value.handle.send("once more")

    with stub_of(dialect) as (_, client):
        if Feature.CONTINUE in dialect.features and dialect.slug != "envelope":
            run(asked(client))
        else:
            with pytest.raises(errors.DragomanError):  # it has no way to ask, or to be answered
                run(_sent_to(client))


async def _sent_to(client: A2AClient) -> None:
    try:
        await client.call(skill="echo", message="ask")
    except errors.InputRequired as error:
        await error.handle.send("the second")
    else:
        raise errors.AgentError("it just answered")


@pytest.mark.parametrize("slug", ["a2a-1.0", "a2a-0.3", "agentvault", "dotted", "platform", "directory"])
def test_a_stream_tells_what_the_agent_says_when_it_says_it(slug: str) -> None:
    async def streamed(client: A2AClient, teller: Teller) -> list[str]:
        pieces: list[str] = []
        async for event in client.stream(skill="echo", message="tell"):
            if event.type == "chunk":
                pieces.append(event.content)
                teller.go.set()  # only now it says the rest
            if event.type == "complete":
                assert event.result is not None
                assert event.result.text == WHOLE
        return pieces

    with telling_agent(DIALECTS[slug]) as teller:
        teller.reset()
        # Named: these answer nothing but calls, so a look at them finds nothing that is spoken.
        client = A2AClient.direct(str(teller.card["endpoint"]) if slug in UNSEEN else teller.url, dialect=slug)
        assert run(streamed(client, teller)) == [FIRST, SECOND]


def test_a_late_agent_is_told_to_stop_and_so_is_one_whose_caller_cancels() -> None:
    with agent_of(DIALECTS["a2a-1.0"])() as stub:
        client = A2AClient.direct(stub.url)
        with pytest.raises(errors.AgentTimeout):
            run(client.call(skill="echo", message="slow", timeout_ms=300))

        async def ask_and_cancel() -> str:
            with pytest.raises(errors.InputRequired) as raised:
                await client.call(skill="echo", message="ask")
            status = await raised.value.handle.cancel("no longer wanted")
            with pytest.raises(errors.CallCancelled):
                await raised.value.handle.result()
            return status.status

        assert run(ask_and_cancel()) == "cancelled"
        assert stub.cancelled.wait(5)


def test_a_conversation_goes_on_under_the_agents_own_name_for_it() -> None:
    stub, heard = StubAgent("a2a-0.3"), list[str]()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET":
            return json_answer(stub.card)
        frame = {"jsonrpc": "2.0", "id": body["id"]}
        if "message" not in body["params"] or "parts" not in body["params"]["message"]:
            return json_answer({**frame, "error": {"code": -32001, "message": "no such task"}})
        heard.append(body["params"]["message"]["contextId"])
        said = {"kind": "message", "messageId": f"m{len(heard)}", "role": "agent", "contextId": "its-own"}
        return json_answer({**frame, "result": {**said, "parts": [{"kind": "text", "text": "ok"}]}})

    async def three(client: A2AClient) -> None:
        for conversation in ("mine", "mine", "another"):
            await client.call(message="hello", conversation_id=conversation)

    with serving(stub, handle):
        with agent_of(DIALECTS["a2a-0.3"])() as other:
            stub.card = {**other.card, "url": stub.url}
        run(three(A2AClient.direct(stub.url, dialect="a2a-0.3")))
    assert heard[-3:] == ["mine", "its-own", "another"]


def test_an_agent_that_reports_to_a_hub_is_said_to_need_one() -> None:
    with agent_of(DIALECTS["envelope"])() as stub, pytest.raises(errors.AgentError, match="call it through one"):
        assert isinstance(stub, EnvelopeAgent)
        stub.silent = True
        run(A2AClient.direct(stub.url).call(skill="echo", message="hello"))


def test_what_only_a_hub_can_do_is_refused_and_what_is_wrong_is_named() -> None:
    async def all_of_it(client: A2AClient) -> None:
        for needs_a_hub in (client.submit(skill="echo"), client.register("http://x"), anext(client.discover())):
            with pytest.raises(errors.DragomanError, match="needs a hub"):
                await needs_a_hub
        with pytest.raises(errors.SkillNotFound, match="It has: echo"):
            await client.call(skill="sing")
        with pytest.raises(errors.AgentNotFound):
            await client.call("agt_other", "echo")
        with pytest.raises(TaskNotFound):
            await client.handle("nobody").status()

    with agent_of(DIALECTS["a2a-1.0"])() as stub:
        run(all_of_it(A2AClient.direct(stub.url)))
        with pytest.raises(errors.DragomanError, match=r"does not speak envelope; it speaks a2a-1\.0"):
            run(A2AClient.direct(stub.url, dialect="envelope").call(skill="echo", message="x"))
    with pytest.raises(errors.DragomanError, match="There is no dialect 'klingon'"):
        A2AClient.direct("http://127.0.0.1:1", dialect="klingon")


def hello(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
    return json_answer({"hello": "world"})


def test_where_nothing_answers_or_nothing_is_understood_the_error_says_so() -> None:
    with pytest.raises(errors.AgentUnavailable, match="Nothing answers"):
        run(A2AClient.direct(f"http://127.0.0.1:{free_port()}").call(skill="echo"))
    stub = StubAgent("none")
    with serving(stub, hello), pytest.raises(errors.DragomanError, match="dialect= one of"):
        run(A2AClient.direct(stub.url).call(skill="echo"))


def test_a_file_goes_inside_where_the_dialect_takes_it_and_is_refused_where_it_does_not() -> None:
    file = File(bytes=b"\x00\xff", name="a.bin", mime_type="application/x-thing")
    with agent_of(DIALECTS["a2a-1.0"])() as stub:
        (artifact,) = run(A2AClient.direct(stub.url).call(skill="echo", message=file)).artifacts
        assert artifact.parts == (file,)
    with agent_of(DIALECTS["agentvault"])() as stub, pytest.raises(errors.DragomanError, match="no file inside"):
        run(A2AClient.direct(stub.url).call(skill="echo", message=file))


def test_one_client_serves_many_loops_and_the_sync_form() -> None:
    with agent_of(DIALECTS["a2a-0.3"])() as stub:
        client = A2AClient.direct(stub.url)
        for words in ("one", "two"):
            assert asyncio.run(client.call(skill="echo", message=words)).text == words
        assert client.sync.call(skill="echo", message="three").text == "three"


def test_agents_as_their_own_sdks_serve_them_are_called() -> None:
    with ExitStack() as stack:
        official = stack.enter_context(echo_agent())
        legacy = stack.enter_context(PeerProcess("a2a-0.3.26", "echo_agent_v03.py"))
        vault = stack.enter_context(PeerProcess("agentvault-0.2.1", "agentvault_agent.py"))
        for peer in (official, legacy, vault):
            client = A2AClient.direct(peer.url)
            assert "hello" in json.dumps(run(client.call(message="hello")))
