"""AgentVault's streams on a real hub: a task subscribed to over a socket, whatever dialect its agent speaks."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.agentvault_world import get, mount, result, send, settled, taken_in, text
from tests.end_to_end.world import RFC_3339, fresh
from tests.support.agents import a2a_v10, agentvault, platform
from tests.support.hub import HubProcess, running_hub
from tests.support.speaking import FAILURE, QUESTION, StubAgent
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.telling import FIRST, SECOND, WHOLE, Teller
from tests.support.telling import a2a_v10 as telling_a2a
from tests.support.telling import agentvault as telling_vault

TELLERS: Final = {"agentvault": telling_vault.agent, "a2a-1.0": telling_a2a.agent}


@contextlib.contextmanager
def subscribed(
    hub: HubProcess, agent: str, task_id: str, last_id: str = "", token: str | None = None
) -> Generator[SseStream]:
    """The stream of a task, or the refusal."""
    credential = hub.token if token is None else token
    headers = {"Authorization": f"Bearer {credential}"} if credential else {}
    if last_id:
        headers["Last-Event-ID"] = last_id
    body = {"jsonrpc": "2.0", "id": "req-sub-1", "method": "tasks/sendSubscribe", "params": {"id": task_id}}
    with sse(f"{hub.url}{mount(agent)}", body, headers=headers) as stream:
        yield stream


def told(stream: SseStream) -> list[SseItem]:
    """All events up to the end, each in the shape of its model."""
    return [checked(item) for item in stream]


def checked(item: SseItem) -> SseItem:
    data = item.data
    assert RFC_3339.fullmatch(data["timestamp"])
    match item.name:
        case "task_status":
            assert set(data) - {"message"} == {"taskId", "state", "timestamp"}
            assert isinstance(data.get("message", ""), str)
        case "task_message":
            assert set(data) == {"taskId", "message", "timestamp"}
            assert data["message"]["role"] in ("user", "assistant", "system", "tool")
            assert data["message"]["parts"]
        case "task_artifact":
            assert set(data) == {"taskId", "artifact", "timestamp"}
            assert data["artifact"]["id"]
            assert data["artifact"]["type"]
        case other:
            raise AssertionError(f"there is no event {other!r}")
    return item


def states(items: list[SseItem]) -> list[str]:
    return [item.data["state"] for item in items if item.name == "task_status"]


def said(items: list[SseItem]) -> list[str]:
    """What the agent said, in messages."""
    found = [item.data["message"] for item in items if item.name == "task_message"]
    return [message["parts"][0]["content"] for message in found if message["role"] == "assistant"]


def taken(stream: SseStream, name: str, **data: Any) -> SseItem:
    """Read on until an event comes that has this."""
    for item in stream:
        if item.name == name and item.data.items() >= data.items():
            return checked(item)
    raise AssertionError(f"the stream ended before {name} {data}")


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with agentvault.agent(fresh("echo")) as stub:
        yield stub


@pytest.fixture
def echo(hub: HubProcess, stub: StubAgent) -> str:
    return taken_in(hub, stub)


@pytest.fixture(params=list(TELLERS))
def teller(request: pytest.FixtureRequest) -> Iterator[Teller]:
    with TELLERS[request.param]() as teller:
        yield teller


def joined(hub: HubProcess, teller: Teller) -> str:
    name = fresh("teller")
    card = {**teller.card, "humanReadableId": f"stubs/{name}"} if "humanReadableId" in teller.card else teller.card
    agent_id: str = hub.register(card, id=name)["id"]
    return agent_id


@pytest.mark.req("V-06", "V-07", "V-23", "V-38")
def test_what_an_agent_says_is_told_as_it_says_it(hub: HubProcess, teller: Teller) -> None:
    agent = joined(hub, teller)
    task_id = send(hub, agent, text("tell"))
    with subscribed(hub, agent, task_id) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache"
        assert stream.headers["connection"] == "keep-alive"
        first = next(iter(stream))
        assert first.name == "task_status"
        assert first.data["state"] in ("SUBMITTED", "WORKING")
        assert first.data["taskId"] == task_id
        # Before the agent goes on: its first words are there.
        for item in stream:
            if FIRST in str(item.data):
                break
        teller.go.set()
        rest = told(stream)
    assert (rest[-1].name, rest[-1].data["state"]) == ("task_status", "COMPLETED")
    assert SECOND in str(rest)
    assert get(hub, agent, task_id)["state"] == "COMPLETED"


@pytest.mark.req("V-07")
@pytest.mark.parametrize("made", [agentvault, a2a_v10, platform], ids=["agentvault", "a2a-1.0", "platform"])
def test_an_agent_without_streams_is_followed_to_its_end(hub: HubProcess, made: Any) -> None:
    with made.agent() as stub:
        agent = taken_in(hub, stub, id=fresh("plain"))
        task_id = send(hub, agent, text("hi"))
        with subscribed(hub, agent, task_id) as stream:
            items = told(stream)
    assert states(items)[-2:] == ["WORKING", "COMPLETED"]
    assert said(items)[-1] in ("hi", {"text": "hi"})


@pytest.mark.req("V-07")
def test_a_finished_task_is_shown_whole_with_its_end_last(hub: HubProcess, echo: str) -> None:
    for wish, end in (("hi", "COMPLETED"), ("fail", "FAILED")):
        shown = settled(hub, echo, send(hub, echo, text(wish)))
        with subscribed(hub, echo, shown["id"]) as stream:
            items = told(stream)
        assert states(items) == ["WORKING", end]
        assert (items[0].name, items[-1].name) == ("task_status", "task_status")
        told_of = [item.data["message"] for item in items if item.name == "task_message"]
        assert told_of == shown["messages"]
    assert items[-1].data["message"] == FAILURE


@pytest.mark.req("V-07", "V-22")
def test_a_stream_goes_on_past_a_question(hub: HubProcess, echo: str) -> None:
    task_id = send(hub, echo, text("ask"))
    with subscribed(hub, echo, task_id) as stream:
        asks = taken(stream, "task_status", state="INPUT_REQUIRED")
        assert asks.data.get("message", QUESTION) == QUESTION
        send(hub, echo, text("this"), id=task_id)
        items = told(stream)
    assert states(items) == ["WORKING", "COMPLETED"]
    # Who comes when it was asked already is told so again, behind the state.
    assert said(items) in (["this"], [QUESTION, "this"])


@pytest.mark.req("V-05", "V-23")
def test_a_cancelled_task_ends_its_stream(hub: HubProcess, echo: str) -> None:
    task_id = send(hub, echo, text("slow"))
    with subscribed(hub, echo, task_id) as stream:
        taken(stream, "task_status", state="WORKING")
        assert result(hub, mount(echo), "tasks/cancel", {"id": task_id})["success"] is True
        assert states(told(stream)) == ["CANCELED"]


@pytest.mark.req("V-25", "X-20")
def test_who_comes_back_is_told_the_rest_and_nothing_twice(hub: HubProcess, teller: Teller) -> None:
    agent = joined(hub, teller)
    task_id = send(hub, agent, text("tell"))
    with subscribed(hub, agent, task_id) as stream:
        for item in stream:
            if item.id and FIRST in str(item.data):
                break
        seen = stream.last_id
    teller.go.set()
    settled(hub, agent, task_id)
    with subscribed(hub, agent, task_id, seen) as stream:
        rest = told(stream)
    assert states(rest) == ["COMPLETED"]
    assert SECOND in str(rest)
    numbers = [int(item.id) for item in rest if item.id]
    assert numbers == sorted(numbers)
    assert numbers[0] > int(seen) or not rest[0].id
    with subscribed(hub, agent, task_id, str(numbers[-1])) as stream:
        assert told(stream) == []


@pytest.mark.req("V-25")
def test_a_number_outlives_the_hub(tmp_path: Path) -> None:
    with telling_vault.agent() as teller, running_hub(tmp_path / "data") as hub:
        agent = joined(hub, teller)
        task_id = send(hub, agent, text("tell"))
        with subscribed(hub, agent, task_id) as stream:
            for item in stream:
                if item.id and FIRST in str(item.data):
                    break
            seen = stream.last_id
        hub.kill()
        hub.start()
        teller.go.set()
        with subscribed(hub, agent, task_id, seen) as stream:
            rest = told(stream)
        assert states(rest)[-1] == "COMPLETED"
        piece, *whole = [item.data["artifact"] for item in rest if item.name == "task_artifact"]
        assert (piece["content"], piece["metadata"]["dragoman"]) == (SECOND, {"append": True})
        assert [joined_text(each) for each in whole] == [WHOLE]
        assert [joined_text(each) for each in get(hub, agent, task_id)["artifacts"]] == [WHOLE]


def joined_text(artifact: dict[str, Any]) -> str:
    return "".join(part["content"] for part in artifact["content"])


@pytest.mark.req("V-07")
def test_a_subscriber_that_leaves_ends_nothing(hub: HubProcess, teller: Teller) -> None:
    agent = joined(hub, teller)
    task_id = send(hub, agent, text("tell"))
    with subscribed(hub, agent, task_id) as stream:
        stream.take(1)
    teller.go.set()
    assert settled(hub, agent, task_id)["state"] == "COMPLETED"
    assert not teller.cancelled.is_set()


@pytest.mark.req("V-26", "X-15")
def test_a_foreign_task_is_unknown(hub: HubProcess, echo: str) -> None:
    task_id = send(hub, echo, text("hi"))
    with subscribed(hub, echo, task_id, token=hub.new_key("a2a:call")) as stream:
        assert (stream.status, stream.is_stream) == (404, False)
        assert b"-32001" in stream.body()
    with subscribed(hub, echo, task_id, token="ap_wrong") as stream:
        assert stream.status == 401
        assert b"-32002" in stream.body()
    with subscribed(hub, echo, task_id, token=hub.new_key("a2a:receive")) as stream:
        assert stream.status == 403
        assert b"-32003" in stream.body()
    with subscribed(hub, "nobody", task_id) as stream:
        assert stream.status == 404


@pytest.mark.req("V-09")
def test_a_stranger_may_listen_to_its_task_at_an_open_agent(hub: HubProcess, stub: StubAgent) -> None:
    agent = taken_in(hub, stub, open=True)
    body = {"jsonrpc": "2.0", "id": "1", "method": "tasks/send", "params": {"message": text("hi")}}
    task_id = hub.post(mount(agent), body, {"Authorization": ""}).json["result"]["id"]
    with subscribed(hub, agent, task_id, token="") as stream:
        assert states(told(stream))[-1] == "COMPLETED"
