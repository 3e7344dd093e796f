"""The published AgentVault client at a real hub, and a real hub at an agent of the published server SDK."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from dragoman.dialects import DIALECTS
from tests.end_to_end.agentvault_world import called, last_words, mount, rpc, send, taken_in, text
from tests.end_to_end.world import eventually, fresh
from tests.support.agents import agentvault
from tests.support.hub import HubProcess
from tests.support.matrix import agent_of
from tests.support.peers import RECIPES, PeerProcess, peer_python
from tests.support.speaking import FAILURE, QUESTION, StubAgent
from tests.support.sse_client import sse
from tests.support.telling import WHOLE, telling_agent

PEER: Final = "agentvault-0.2.1"
PATIENCE_S: Final = 60.0
SILENCE_S: Final = 35.0  # longer than the client waits for a word


class Client:
    """The published client, told what to do step by step; every session is a process of its own."""

    def __init__(self, hub: HubProcess) -> None:
        self._hub = hub
        self._python = str(peer_python(PEER))

    def run(self, agent: str, *steps: dict[str, Any], key: str | None = None) -> list[Any]:
        """What it says to each step, of the agent's card as the hub serves it."""
        card = f"http://localhost:{self._hub.port}{mount(agent)}agent-card.json"
        key = self._hub.token or "" if key is None else key
        done = subprocess.run(
            [self._python, str(RECIPES / "agentvault_client.py"), card],
            input="".join(f"{json.dumps(step)}\n" for step in steps),
            env={"PATH": os.environ["PATH"], "AGENTVAULT_KEY_DRAGOMAN": key},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(said) == len(steps), done.stderr
        return said


@pytest.fixture(scope="module")
def client(hub: HubProcess) -> Client:
    return Client(hub)


@pytest.fixture(scope="module")
def peer() -> Iterator[PeerProcess]:
    with PeerProcess(PEER, "agentvault_agent.py") as peer:
        yield peer


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with agentvault.agent(fresh("peer")) as stub:
        yield stub


def _parts(words: str) -> dict[str, Any]:
    return {"parts": text(words)["parts"]}


# -- the published client


@pytest.mark.req("V-30")
@pytest.mark.parametrize("slug", list(DIALECTS))
def test_the_client_loads_the_card_of_any_agent_and_calls_it(hub: HubProcess, client: Client, slug: str) -> None:
    with agent_of(DIALECTS[slug])() as stub:
        agent = taken_in(hub, stub, id=fresh("any"), dialect=slug)
        card, sent, task = client.run(agent, {"do": "card"}, {"do": "send", **_parts("hello")}, {"do": "wait"})
    assert card["url"] == f"http://localhost:{hub.port}{mount(agent)}"
    assert card["capabilities"]["a2aVersion"] == "0.2"
    assert [scheme["scheme"] for scheme in card["authSchemes"]] == ["apiKey", "oauth2", "bearer"]
    assert (task["id"], task["state"]) == (sent["id"], "COMPLETED"), task
    assert task["messages"][0]["parts"] == text("hello")["parts"]
    assert task["messages"][-1]["role"] == "assistant"
    assert "hello" in json.dumps(task["messages"][-1]["parts"])


@pytest.mark.req("V-19")
def test_the_client_gets_its_parts_and_context_back(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    agent = taken_in(hub, stub)
    parts: list[dict[str, Any]] = [
        {"type": "text", "content": "look"},
        {"type": "data", "content": {"n": 2**60 + 1, "deep": [1.5, None]}, "mediaType": "application/json"},
        {"type": "file", "url": "https://example.com/a.pdf", "mediaType": "application/pdf", "filename": "a.pdf"},
    ]
    context = {"items": {"note": {"mediaType": "text/plain", "content": "background"}}}
    _, task = client.run(agent, {"do": "send", "parts": parts, "mcp": context}, {"do": "wait"})
    assert task["state"] == "COMPLETED"
    assert task["messages"][0]["parts"] == parts
    assert task["messages"][0]["metadata"]["mcp_context"]["items"]["note"]["content"] == "background"
    assert task["messages"][1]["parts"] == parts


def test_the_client_answers_a_question(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    agent = taken_in(hub, stub)
    _, asks, said, done, late = client.run(
        agent,
        {"do": "send", **_parts("ask")},
        {"do": "wait"},
        {"do": "say", **_parts("this one")},
        {"do": "wait"},
        {"do": "say", **_parts("and more")},
    )
    assert (asks["state"], last_words(asks)) == ("INPUT_REQUIRED", QUESTION)
    assert said == {"sent": True}
    assert (done["state"], last_words(done)) == ("COMPLETED", "this one")
    assert (late["raised"], late["code"]) == ("A2ARemoteAgentError", -32004)


def test_the_client_cancels_and_sees_failures(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    agent = taken_in(hub, stub)
    _, canceled, task = client.run(agent, {"do": "send", **_parts("slow")}, {"do": "cancel"}, {"do": "get"})
    assert canceled == {"canceled": True}
    assert task["state"] == "CANCELED"
    _, failed = client.run(agent, {"do": "send", **_parts("fail")}, {"do": "wait"})
    assert (failed["state"], last_words(failed)) == ("FAILED", FAILURE)


@pytest.mark.req("V-27", "V-26")
def test_the_client_sees_every_refusal(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    agent = taken_in(hub, stub)
    unknown, unseen, bad = client.run(
        agent, {"do": "get", "id": "av-nobody"}, {"do": "listen", "id": "av-nobody"}, {"do": "get", "id": "x" * 300}
    )
    assert (unknown["raised"], unknown["code"]) == ("A2ARemoteAgentError", -32001)
    assert (unseen["raised"], unseen["code"]) == ("A2ARemoteAgentError", 404)
    assert "-32001" in unseen["message"]
    assert (bad["raised"], bad["code"]) == ("A2ARemoteAgentError", -32602)
    (wrong,) = client.run(agent, {"do": "send", **_parts("hi")}, key="ap_wrong")
    assert (wrong["raised"], wrong["code"]) == ("A2ARemoteAgentError", 401)
    assert "-32002" in wrong["message"]
    (barred,) = client.run(agent, {"do": "send", **_parts("hi")}, key=hub.new_key("a2a:receive"))
    assert (barred["raised"], barred["code"]) == ("A2ARemoteAgentError", 403)
    assert "-32003" in barred["message"]


def _told(events: list[dict[str, Any]]) -> list[str]:
    """Each event that the client took, in a word: its state, what was said, or its artifact."""
    return [
        event.get("state") or event.get("artifact", {}).get("id") or event["message"]["parts"][0]["content"]
        for event in events
    ]


@pytest.mark.req("V-37", "V-07", "V-23")
@pytest.mark.parametrize("slug", ["agentvault", "a2a-1.0", "directory"])
def test_the_client_subscribes_to_agents_of_any_dialect(hub: HubProcess, client: Client, slug: str) -> None:
    with telling_agent(DIALECTS[slug]) as teller:
        name = fresh("told")
        card = {**teller.card, "humanReadableId": f"stubs/{name}"} if slug == "agentvault" else teller.card
        agent = hub.register(card, id=name, dialect=slug)["id"]
        teller.go.set()
        sent, heard, again = client.run(agent, {"do": "send", **_parts("tell")}, {"do": "listen"}, {"do": "listen"})
    # None was dropped: the end is the last, and what the agent said came before it.
    for events in (heard["events"], again["events"]):
        assert {event["taskId"] for event in events} == {sent["id"]}
        told = _told(events)
        assert told[0] in ("SUBMITTED", "WORKING")
        assert told[-1] == "COMPLETED"
        assert told.count("COMPLETED") == 1
        assert "tell" in told
        assert WHOLE in told


@pytest.mark.req("V-37", "V-07")
def test_the_client_listens_past_a_question_and_to_failures(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    agent = taken_in(hub, stub)
    sent, *_ = client.run(agent, {"do": "send", **_parts("ask")}, {"do": "wait"})
    *_, heard = client.run(agent, {"do": "say", "id": sent["id"], **_parts("this")}, {"do": "listen", "id": sent["id"]})
    assert _told(heard["events"])[-2:] == ["this", "COMPLETED"]
    _, heard = client.run(agent, {"do": "send", **_parts("fail")}, {"do": "listen"})
    assert _told(heard["events"])[-2:] == [FAILURE, "FAILED"]
    assert heard["events"][-1]["message"] == FAILURE


@pytest.mark.full
@pytest.mark.req("V-25", "V-37")
def test_the_client_stays_at_a_silent_stream(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    """Its read timeout is shorter than the silence: only what the hub says in between keeps it there."""
    agent = taken_in(hub, stub)
    speaks = threading.Timer(SILENCE_S, stub.release.set)
    speaks.start()
    try:
        _, heard = client.run(agent, {"do": "send", **_parts("slow")}, {"do": "listen"})
    finally:
        speaks.cancel()
    assert _told(heard["events"])[-1] == "COMPLETED", heard


@pytest.mark.req("V-30")
def test_the_client_calls_an_open_agent_without_a_key(hub: HubProcess, client: Client, stub: StubAgent) -> None:
    agent = taken_in(hub, stub, open=True)
    card, _, heard, task = client.run(
        agent, {"do": "card"}, {"do": "send", **_parts("hi")}, {"do": "listen"}, {"do": "wait"}, key=""
    )
    assert card["authSchemes"] == [{"scheme": "none"}]
    assert _told(heard["events"])[-2:] == ["hi", "COMPLETED"]
    assert (task["state"], last_words(task)) == ("COMPLETED", "hi")


# -- the published server


def _registered(hub: HubProcess, peer: PeerProcess) -> str:
    answer = hub.register(None, url=peer.url)
    assert (answer["dialect"], answer["name"]) == ("agentvault", "Echo")
    agent_id: str = answer["id"]
    return agent_id


@pytest.mark.req("V-38")
def test_a_url_is_enough_and_the_slash_form_is_found(hub: HubProcess, peer: PeerProcess) -> None:
    done = called(hub, _registered(hub, peer), text("hi"))
    assert (done["state"], last_words(done)) == ("COMPLETED", "hi")
    (artifact,) = done["artifacts"]
    assert (artifact["id"], artifact["type"]) == ("a1", "echo")
    assert artifact["content"]["parts"] == text("hi")["parts"]


@pytest.mark.req("V-38", "V-07")
def test_what_the_published_agent_streams_is_told_once(hub: HubProcess, peer: PeerProcess) -> None:
    agent = _registered(hub, peer)
    task_id = send(hub, agent, text("tell"))
    body = {"jsonrpc": "2.0", "id": "s", "method": "tasks/sendSubscribe", "params": {"id": task_id}}
    with sse(f"{hub.url}{mount(agent)}", body, headers={"Authorization": f"Bearer {hub.token}"}) as stream:
        events = [item.data for item in stream]
    assert _told(events)[-3:] == ["one", "two", "COMPLETED"]
    assert [word for word in _told(events) if word in ("one", "two")] == ["one", "two"]
    turns = rpc(hub, mount(agent), "tasks/get", {"id": task_id}).json["result"]["messages"]
    assert [turn["parts"][0]["content"] for turn in turns] == ["tell", "one", "two"]


@pytest.mark.req("V-38")
def test_the_published_agent_is_called_from_another_dialect(hub: HubProcess, peer: PeerProcess) -> None:
    reply = hub.call("echo", {"n": [1, 2]}, _registered(hub, peer))
    assert reply.status == 200, reply.body
    assert {"type": "data", "content": {"n": [1, 2]}, "mediaType": "application/json"} in reply.json["result"]["parts"]


@pytest.mark.req("V-38", "V-22")
def test_the_published_agent_asks_and_is_answered(hub: HubProcess, peer: PeerProcess) -> None:
    agent = _registered(hub, peer)
    asks = called(hub, agent, text("ask"))
    assert (asks["state"], last_words(asks)) == ("INPUT_REQUIRED", "What should I echo?")
    send(hub, agent, text("this"), id=asks["id"])
    done = eventually(lambda: _finished(hub, agent, asks["id"]), "the task is done")
    assert (done["state"], last_words(done)) == ("COMPLETED", "this")
    assert [message["role"] for message in done["messages"]] == ["user", "assistant", "user", "assistant"]


def _finished(hub: HubProcess, agent: str, task_id: str) -> dict[str, Any] | None:
    task: dict[str, Any] = rpc(hub, mount(agent), "tasks/get", {"id": task_id}).json["result"]
    return task if task["state"] in ("COMPLETED", "FAILED", "CANCELED") else None


@pytest.mark.req("V-38")
def test_the_published_agents_failures_are_told_in_its_words(hub: HubProcess, peer: PeerProcess) -> None:
    agent = _registered(hub, peer)
    failed = called(hub, agent, text("fail"))
    assert (failed["state"], last_words(failed)) == ("FAILED", "This agent always fails.")
    crashed = called(hub, agent, text("crash"))
    assert (crashed["state"], last_words(crashed)) == ("FAILED", "Agent error: it crashed")


@pytest.mark.req("V-38", "V-05")
def test_the_published_agent_is_cancelled(hub: HubProcess, peer: PeerProcess) -> None:
    agent = _registered(hub, peer)
    task_id = send(hub, agent, text("slow"))
    eventually(
        lambda: rpc(hub, mount(agent), "tasks/get", {"id": task_id}).json["result"]["state"] == "WORKING", "work"
    )
    assert rpc(hub, mount(agent), "tasks/cancel", {"id": task_id}).json["result"]["success"] is True
    assert _finished(hub, agent, task_id) is not None
