"""Real, unmodified counterparts over real sockets: the published SDKs of A2A 1.0 and 0.3 on either side of the hub,
and the clients that the dotted document prints.

Each runs in an environment of its own. Streams and push are in `test_sdk_followers.py` and `test_sdk_tellers.py`.
"""

import json
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.model.fit import Feature
from tests.end_to_end.world import eventually, tracebacks
from tests.support.agents import dotted
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.hub import ADMIN_TOKEN, HubProcess, running_hub
from tests.support.matrix import (
    BYTES,
    DATA,
    FAILED,
    LINK,
    SHOWN_AS_STATE,
    TEXT,
    agent_of,
    caller_of,
    comes_back,
    hosts,
    is_told_to_stop,
)
from tests.support.peers import RECIPES, PeerProcess, peer_python
from tests.support.sdk_caller import CLIENTS, SdkCaller, SdkClient
from tests.support.selection import pairs
from tests.support.speaking import FAILURE, QUESTION, Caller, Content, Seen, StubAgent

DOCUMENT: Final = Path(__file__).parents[1] / "examples" / "dotted"
PATIENCE_S: Final = 20.0
# What is built on protobuf has no other numbers than doubles.
DOUBLES: Final = Content(data={**DATA.data, "n": 2**52 + 1})
ANSWER: Final = Content(text="the blue one")


class SdkAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A published SDK's agent: how it is started, and what the hub must find that it speaks."""

    peer: str
    program: str
    binding: str
    slug: str
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Its name in a test's."""
        return f"{self.peer} {self.binding}"


AGENTS: Final = tuple(
    SdkAgent(peer=peer, program=program, binding=binding, slug=slug, more=more)
    for peer, program, slug, more in (
        ("a2a-1.3.0", "echo_agent.py", "a2a-1.0", ("--mode", "told", "--delay", "30")),
        ("a2a-0.3.26", "echo_agent_v03.py", "a2a-0.3", ()),
    )
    for binding in ("JSONRPC", "HTTP+JSON")
)
# Over HTTP the SDKs of 0.3 disagree about how bytes are written, so the hub sends such an agent a link to them.
LINKED: Final = "a2a-0.3.26 HTTP+JSON"
CALLERS: Final = tuple(DIALECTS[slug] for slug in ("platform", "dotted", "agentvault"))


class World:
    """One hub that asks who calls, and callers and agents as they are needed."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        self.hub = hub
        self._stack = stack
        self._clients: dict[str, SdkCaller] = {}
        self._stubs: dict[str, tuple[str, StubAgent]] = {}
        self._peers: dict[str, tuple[str, PeerProcess]] = {}

    def client(self, client: SdkClient) -> SdkCaller:
        """The published client, running."""
        if str(client) not in self._clients:
            caller = SdkCaller(client, self.hub.url, ADMIN_TOKEN)
            self._clients[str(client)] = self._stack.enter_context(caller)
        return self._clients[str(client)]

    def stub(self, dialect: Dialect) -> tuple[str, StubAgent]:
        """A stub agent that speaks a dialect, and its id at the hub."""
        if dialect.slug not in self._stubs:
            stub = self._stack.enter_context(agent_of(dialect)())
            joined = self.hub.register(stub.card, id=f"stub-{dialect.slug}", dialect=dialect.slug)
            if isinstance(stub, EnvelopeAgent):
                stub.token = joined["token"]
            self._stubs[dialect.slug] = (joined["id"], stub)
        name, stub = self._stubs[dialect.slug]
        stub.arrived.clear()
        stub.cancelled.clear()
        return name, stub

    def peer(self, agent: SdkAgent) -> tuple[str, PeerProcess]:
        """The published SDK's agent, running, and its id at the hub, which was told nothing but its URL."""
        if str(agent) not in self._peers:
            peer = PeerProcess(agent.peer, agent.program, "--binding", agent.binding, *agent.more)
            self._stack.enter_context(peer)
            joined = self.hub.register(None, url=peer.url, id=f"peer-{len(self._peers)}")
            assert joined["dialect"] == agent.slug
            self._peers[str(agent)] = (joined["id"], peer)
        return self._peers[str(agent)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("sdk") / "data"))
        yield World(hub, stack)
    assert tracebacks(hub) == []


def _name(value: object) -> str:
    return value.slug if isinstance(value, Dialect) else str(value)


every_client_and_target = pytest.mark.parametrize(("client", "target"), pairs(CLIENTS, DIALECTS.values()), ids=_name)
every_agent_and_caller = pytest.mark.parametrize(("agent", "caller"), pairs(AGENTS, CALLERS), ids=_name)
every_client_and_agent = pytest.mark.parametrize(("client", "agent"), pairs(CLIENTS, AGENTS), ids=_name)


# -- the published clients, at agents of every dialect


@pytest.mark.req("O-36")
@every_client_and_target
def test_an_agents_card_is_accepted(world: World, client: SdkClient, target: Dialect) -> None:
    name, stub = world.stub(target)
    said = world.client(client).say(name, "card")
    first, *more = said["cards"]
    schemes = {"bearer": "http", "apiKey": "apiKey", "oauth2": "oauth2"}
    if client.words == "1.0":
        schemes = {"bearer": "httpAuthSecurityScheme", "apiKey": "apiKeySecurityScheme"}
        schemes["oauth2"] = "oauth2SecurityScheme"
    for card in said["cards"]:
        assert card["name"] == _shown_name(stub)
        assert [skill["id"] for skill in card["skills"]] == ["echo"]
        assert {name: _kind(scheme) for name, scheme in card["securitySchemes"].items()} == schemes
    if client.words == "0.3":
        transports = [each["transport"] for each in first["additionalInterfaces"]]
        assert (first["protocolVersion"], first["preferredTransport"]) == ("0.3.0", "JSONRPC")
        assert transports == ["JSONRPC", "HTTP+JSON"]
        return
    (second,) = more
    versions = [[each["protocolVersion"] for each in card["supportedInterfaces"]] for card in (first, second)]
    if client.mount:
        assert versions == [["0.3.0"] * 3, ["0.3.0"] * 3]
    else:
        assert versions == [["1.0", "1.0", "0.3", "0.3"], ["1.0", "1.0"]]  # who names no version gets both


@pytest.mark.parametrize("kind", ["text", "data", "file by bytes", "file by uri"])
@every_client_and_target
def test_content_of_every_kind_goes_there_and_back(world: World, client: SdkClient, target: Dialect, kind: str) -> None:
    asking, (name, _) = world.client(client), world.stub(target)
    exact = client.words == "0.3" and client.binding == "JSONRPC"
    sent = {"text": TEXT, "data": DATA if exact else DOUBLES, "file by bytes": BYTES, "file by uri": LINK}[kind]
    seen = asking.call(name, sent)
    assert (seen.error, seen.state) == (None, "completed"), seen
    assert seen.raw["asked"][-1] == _request(client, name)
    (found,) = seen.content
    if sent is BYTES and hosts(DIALECTS[asking.slug], target):
        _is_fetched(found, sent)
    else:
        assert found == comes_back(DIALECTS[asking.slug], target, sent), seen


@every_client_and_target
def test_a_question_is_answered_in_the_same_task(world: World, client: SdkClient, target: Dialect) -> None:
    asking, (name, _) = world.client(client), world.stub(target)
    if Feature.CONTINUE in target.features:
        first = asking.call(name, Content(text="ask"))
        assert (first.error, first.state, first.message) == (None, "input-required", QUESTION), first
        second = asking.follow_up(name, first, ANSWER)
        assert (second.task_id, second.context_id) == (first.task_id, first.context_id)
    else:
        first = asking.call(name, TEXT)
        second = asking.follow_up(name, first, ANSWER)
        assert second.context_id == first.context_id
    assert second.state == "completed", second
    assert second.content == (comes_back(DIALECTS[asking.slug], target, ANSWER),), second


@every_client_and_target
def test_a_task_is_there_to_be_asked_for(world: World, client: SdkClient, target: Dialect) -> None:
    asking, (name, _) = world.client(client), world.stub(target)
    at_once = asking.call(name, TEXT, wait=False)
    assert at_once.error is None and at_once.task_id is not None, at_once

    def look() -> Seen | None:
        seen = asking.get(name, at_once)
        return None if seen.state in ("submitted", "working") else seen

    done = eventually(look, f"{at_once.task_id} ends")
    assert (done.task_id, done.context_id, done.state) == (at_once.task_id, at_once.context_id, "completed"), done
    assert done.content == (comes_back(DIALECTS[asking.slug], target, TEXT),), done
    if client.wire == "0.3":
        return  # which has no word for lists
    listed = asking.say(name, "list", context=done.context_id)["listed"]
    assert [task["id"] for task in listed["tasks"]] == [done.task_id]
    assert listed["totalSize"] == 1


@every_client_and_target
def test_a_cancelled_task_is_stopped(world: World, client: SdkClient, target: Dialect) -> None:
    asking, (name, stub) = world.client(client), world.stub(target)
    first = asking.call(name, Content(text="slow"), wait=False)
    assert first.state in ("submitted", "working"), first
    assert stub.arrived.wait(PATIENCE_S)
    if {Feature.ANSWERS, Feature.GET} <= target.features:  # such an agent has its own name for the task
        eventually(lambda: asking.get(name, first).state == "working", "the hub knows the agent's task")
    seen = asking.cancel(name, first)
    assert (seen.error, seen.task_id, seen.state) == (None, first.task_id, "canceled"), seen
    if is_told_to_stop(target, waited=False):
        assert stub.cancelled.wait(PATIENCE_S), "the agent was not told to stop"


@every_client_and_target
def test_an_agents_failure_is_the_state_of_the_task(world: World, client: SdkClient, target: Dialect) -> None:
    asking, (name, _) = world.client(client), world.stub(target)
    seen = asking.call(name, Content(text="fail"))
    assert (seen.error, seen.state) == (None, "failed"), seen
    assert FAILURE in (seen.message or ""), seen


@every_client_and_target
def test_what_cannot_be_done_is_the_clients_own_error(world: World, client: SdkClient, target: Dialect) -> None:
    asking, (name, _) = world.client(client), world.stub(target)
    not_found, not_cancelable, unsupported = _errors(client)
    nobody = Seen(task_id="task-nobody", state="input-required")
    assert asking.get(name, nobody).error == not_found
    assert asking.cancel(name, nobody).error == not_found
    assert asking.follow_up(name, nobody, TEXT).error == not_found
    done = asking.call(name, TEXT)
    assert asking.cancel(name, done).error == not_cancelable
    into = msgspec.structs.replace(done, state="input-required")
    assert asking.follow_up(name, into, TEXT).error == unsupported


# -- agents made with the published SDKs, called in other dialects


@every_agent_and_caller
@pytest.mark.parametrize("kind", ["text", "data", "file by bytes", "file by uri"])
def test_a_published_agent_takes_content_of_every_kind(
    world: World, agent: SdkAgent, caller: Dialect, kind: str
) -> None:
    asking, (name, _), target = _asking(world, caller), world.peer(agent), DIALECTS[agent.slug]
    exact = agent.slug == "a2a-0.3" and agent.binding == "JSONRPC"
    sent = {"text": TEXT, "data": DATA if exact else DOUBLES, "file by bytes": BYTES, "file by uri": LINK}[kind]
    if sent is BYTES and caller.slug == "agentvault":
        with pytest.raises(NotImplementedError):
            asking.call(name, sent)  # Its own wire has no place for bytes.
        return
    seen = asking.call(name, sent)
    assert (seen.error, seen.state) == (None, "completed"), seen
    if sent is BYTES and str(agent) == LINKED:
        _is_fetched(seen.content[0], sent)
    else:
        assert seen.content == (comes_back(caller, target, sent),), seen


@every_agent_and_caller
def test_a_file_that_a_published_agent_makes_comes_whole(world: World, agent: SdkAgent, caller: Dialect) -> None:
    seen = _asking(world, caller).call(world.peer(agent)[0], Content(text="file"))
    assert (seen.error, seen.state, len(seen.content)) == (None, "completed", 1), seen
    if caller.slug == "agentvault":
        _is_fetched(seen.content[0], BYTES)
    else:
        assert seen.content == (BYTES,), seen


@every_agent_and_caller
def test_a_published_agents_question_is_answered(world: World, agent: SdkAgent, caller: Dialect) -> None:
    asking, (name, _) = _asking(world, caller), world.peer(agent)
    first = asking.call(name, Content(text="ask"))
    assert (first.state, first.message) == ("input-required", "What should I echo?"), first
    second = asking.follow_up(name, first, ANSWER)
    assert (second.task_id, second.state) == (first.task_id, "completed"), second
    assert second.content == (ANSWER,), second


@every_agent_and_caller
def test_a_published_agents_task_is_there_to_be_asked_for(world: World, agent: SdkAgent, caller: Dialect) -> None:
    asking, (name, _) = _asking(world, caller), world.peer(agent)
    first = asking.call(name, TEXT)
    again = asking.get(name, first)
    assert (again.task_id, again.state, again.content) == (first.task_id, "completed", (TEXT,)), again


@every_agent_and_caller
def test_a_published_agent_is_told_to_stop(world: World, agent: SdkAgent, caller: Dialect) -> None:
    asking, (name, peer) = _asking(world, caller), world.peer(agent)
    first = asking.call(name, Content(text="slow"), wait=False)
    assert first.error is None, first
    eventually(lambda: asking.get(name, first).state == "working", "the agent works")
    assert asking.cancel(name, first).state == "canceled"
    peer.await_line("canceled", PATIENCE_S)


@every_agent_and_caller
def test_a_published_agents_failure_has_its_own_words(world: World, agent: SdkAgent, caller: Dialect) -> None:
    asking, (name, _) = _asking(world, caller), world.peer(agent)
    seen, words = asking.call(name, Content(text="fail")), FAILED.get(caller.slug, SHOWN_AS_STATE)
    assert (seen.state, seen.error, seen.status) == (words.state, words.error, words.status), seen
    assert seen.message == "This agent always fails.", seen


# -- both at once


@every_client_and_agent
def test_a_published_client_reaches_a_published_agent(world: World, client: SdkClient, agent: SdkAgent) -> None:
    asking, (name, _) = world.client(client), world.peer(agent)
    for sent in (TEXT, DOUBLES, BYTES, LINK):
        seen = asking.call(name, sent)
        assert (seen.error, seen.state) == (None, "completed"), seen
        if sent is BYTES and str(agent) == LINKED:
            _is_fetched(seen.content[0], sent)
        else:
            assert seen.content == (sent,), seen
    assert asking.call(name, Content(text="file")).content == (BYTES,)


# -- the dotted document's own clients


class DocumentWorld(msgspec.Struct, frozen=True, kw_only=True):
    """A hub that asks nobody who calls, with the document's agent; and where its clients find it."""

    agent: StubAgent
    at: str  # in place of the document's localhost:8001
    name: str  # of the card that is found there


@pytest.fixture(params=["the only agent", "the default agent", "an agent's base"])
def document(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[DocumentWorld]:
    hub = HubProcess(tmp_path / "data", auth="none")
    is_default, at_base = request.param == "the default agent", request.param == "an agent's base"
    hub.start({"DRAGOMAN_DEFAULT_AGENT": "terminal_bench_agent"} if is_default else {})
    try:
        with dotted.agent("terminal_bench_agent") as agent, dotted.agent("another") as other:
            printed = json.loads((DOCUMENT / "agent-card.json").read_text())
            hub.register({**printed, "url": agent.url}, id="terminal_bench_agent", dialect="dotted")
            if request.param != "the only agent":
                hub.register(other.card, id="another", dialect="dotted")
            at = f"127.0.0.1:{hub.port}"
            found = hub.get("/.well-known/agent-card").json["name"]
            if at_base:
                at, found = f"{at}/agents/terminal_bench_agent", "terminal_bench_agent"
            yield DocumentWorld(agent=agent, at=at, name=found)
            assert other.requests == []
    finally:
        hub.stop()
    assert tracebacks(hub) == []


@pytest.mark.req("D-12")
def test_the_documents_python_client_runs_as_printed(document: DocumentWorld) -> None:
    program = (RECIPES / "dotted_document_client.py").read_text().replace("localhost:8001", document.at)
    command = [str(peer_python("requests")), "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    agent, skills, task, status, solution = done.stdout.splitlines()
    assert agent == f"Agent: {document.name}"
    for skill in ("Terminal Problem Solving", "Code Analysis"):
        assert repr(skill) in skills
    assert task.startswith("Task ID: task-")
    assert status == "Status: completed"
    assert solution == "Solution: Write a bash script to monitor disk usage"
    first, second = _messages(document.agent)
    assert second["parts"] == [{"kind": "text", "text": "Add email alerting to that script"}]
    assert second["contextId"] == first["contextId"]  # one conversation, under one name at the agent, too


@pytest.mark.req("D-12")
def test_the_documents_curl_examples_run_as_printed_but_for_the_quote(document: DocumentWorld) -> None:
    printed = (RECIPES / "dotted_document_curl.sh").read_text()
    assert '-H "Content-Type": application/json"' in printed
    mended = printed.replace('"Content-Type": application/json"', '"Content-Type: application/json"')
    command = ["bash", "-ec", mended.replace("localhost:8001", document.at)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    card, sent, got = documents(done.stdout)
    assert card["name"] == document.name
    assert sent["id"] == "req-001"
    assert sent["result"]["status"]["state"] == "completed"
    (artifact,) = sent["result"]["artifacts"]
    assert artifact["parts"] == [{"kind": "text", "text": "Write a bash script to find large files"}]
    assert (got["id"], got["error"]["code"]) == ("req-002", -32001)  # the document's task is nobody's


def _messages(agent: StubAgent) -> list[dict[str, Any]]:
    return [body["params"]["message"] for method, _, _, body in agent.requests if method == "POST"]


def documents(said: str) -> list[Any]:
    """JSON documents that stand one behind the other."""
    found: list[Any] = []
    while said := said.strip():
        document, end = json.JSONDecoder().raw_decode(said)
        found.append(document)
        said = said[end:]
    return found


def _asking(world: World, caller: Dialect) -> Caller:
    return caller_of(caller)(world.hub.url, ADMIN_TOKEN)


def _shown_name(stub: StubAgent) -> str:
    name: str = stub.card["name"]
    return name


def _kind(scheme: dict[str, Any]) -> str:
    """What a security scheme is: a member of that name in 1.0, a word in 0.3."""
    return scheme.get("type") or next(iter(scheme))


def _request(client: SdkClient, name: str) -> list[Any]:
    """The request that a client makes to send a message, as it tells of it."""
    path = f"/agents/{name}/{client.mount}"
    if client.binding == "HTTP+JSON":
        path += "message:send" if client.wire == "1.0" else "v1/message:send"
    return ["POST", path] if client.words == "0.3" else ["POST", path, client.wire]


def _errors(client: SdkClient) -> tuple[str | int, str | int, str | int]:
    """How a client says: no such task, it cannot be cancelled, it takes no more."""
    if client.words == "1.0":
        return "TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"
    return (-32001, -32002, -32004) if client.binding == "JSONRPC" else (404, 400, 400)


def _is_fetched(found: Content, sent: Content) -> None:
    """The bytes lie at the hub, behind a link that anyone may follow until it expires."""
    assert found.file is not None and sent.file is not None
    assert found.file.uri is not None and found.file.raw is None, found
    assert (found.file.name, found.file.media_type) == (sent.file.name, sent.file.media_type)
    with urllib.request.urlopen(found.file.uri, timeout=10) as reply:
        assert reply.read() == sent.file.raw
