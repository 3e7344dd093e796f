"""The directory's streams on a real hub: tasks told step by step, and what changes among agents and tasks."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.world import eventually, fresh
from tests.support.agents import agentvault, directory
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.speaking import FAILURE, QUESTION, StubAgent
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.telling import FIRST, SECOND, WHOLE, Teller
from tests.support.telling import a2a_v10 as telling_a2a
from tests.support.telling import directory as telling_directory

TELLERS: Final = {"directory": telling_directory.agent, "a2a-1.0": telling_a2a.agent}


@contextlib.contextmanager
def asked(
    hub: HubProcess, method: str, params: object, *, path: str = "/a2a", last_id: str = "", token: str = ""
) -> Generator[SseStream]:
    """The stream that a method answers with, or the refusal."""
    headers = {"Authorization": f"Bearer {token or hub.token}"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    frame = {"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params}
    with sse(f"{hub.url}{path}", frame, headers=headers) as stream:
        yield stream


def task(words: str, **more: Any) -> dict[str, Any]:
    """The params of a task for whoever echoes."""
    return {"taskId": fresh("task"), "action": "echo", "sender": "tester", "input": {"text": words}, **more}


def results(stream: SseStream) -> list[dict[str, Any]]:
    """The results of all events up to the end."""
    return [result_of(item) for item in stream]


def result_of(item: SseItem) -> dict[str, Any]:
    assert (item.name, item.data["jsonrpc"], item.data["id"]) == ("", "2.0", "r-1")
    assert "error" not in item.data, item.data
    assert item.id
    result: dict[str, Any] = item.data["result"]
    return result


def register(hub: HubProcess, card: dict[str, Any], token: str = "", **more: Any) -> dict[str, Any]:
    reply = hub.post("/v1/a2a/registry", {"agent_card": card, **more}, token=token)
    assert reply.status in (200, 201), reply.body
    answer: dict[str, Any] = reply.json
    return answer


def rpc(hub: HubProcess, method: str, params: object, path: str = "/a2a", token: str = "") -> Reply:
    return hub.post(path, {"jsonrpc": "2.0", "id": "x", "method": method, "params": params}, token=token)


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with directory.agent(fresh("echo")) as stub:
        yield stub


@pytest.fixture
def at(hub: HubProcess, stub: StubAgent) -> str:
    """The URL of an agent that knows no streams."""
    return f"/agents/{register(hub, stub.card)['id']}/"


@pytest.fixture(params=list(TELLERS))
def teller(request: pytest.FixtureRequest) -> Iterator[Teller]:
    with TELLERS[request.param]() as teller:
        yield teller


def joined(hub: HubProcess, teller: Teller) -> str:
    """The URL of an agent that tells."""
    name = fresh("teller")
    card = {**teller.card, "agentId": name} if "agentId" in teller.card else teller.card
    return f"/agents/{register(hub, card, id=name)['id']}/"


# -- a2a/stream


@pytest.mark.req("R-25")
def test_what_an_agent_says_is_told_as_it_says_it(hub: HubProcess, teller: Teller) -> None:
    params = task("tell")
    with asked(hub, "a2a/stream", params, path=joined(hub, teller)) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        told = [result_of(*stream.take(1))]
        while FIRST not in str(told[-1]):
            told.append(result_of(*stream.take(1)))
        teller.go.set()
        told += results(stream)
    *before, last = told
    assert all((each["taskId"], each["status"]) == (params["taskId"], "working") for each in before)
    assert "".join(each.get("output", {}).get("text", "") for each in before) == WHOLE
    answer = {"taskId": params["taskId"], "status": "completed", "output": {"text": WHOLE}}
    assert last == {**answer, "result": answer}


@pytest.mark.req("R-25")
def test_the_last_is_what_a_task_would_be_answered(hub: HubProcess, at: str) -> None:
    for wish in ("hi", "fail", "ask"):
        params = task(wish)
        with asked(hub, "a2a/stream", params, path=at) as stream:
            first, *_, last = list(stream)
        assert result_of(first) == {"taskId": params["taskId"], "status": "working"}
        again = rpc(hub, "a2a/task", params, at).json
        for said in (last.data, again):
            del said["id"]
        assert last.data == again
    assert last.data["error"]["data"]["message"] == QUESTION


@pytest.mark.req("R-25")
def test_a_refusal_before_the_stream_is_none(hub: HubProcess, at: str) -> None:
    with asked(hub, "a2a/stream", {"taskId": "t"}, path=at) as stream:
        assert (stream.status, stream.is_stream) == (200, False)
        assert b"-32602" in stream.body()
    with asked(hub, "a2a/stream", task("hi", action=fresh("nothing"))) as stream:
        assert not stream.is_stream
        assert b"no_agent" in stream.body()
    with asked(hub, "a2a/stream", task("hi"), path=at, token="wrong") as stream:
        assert stream.status == 401


@pytest.mark.req("R-25", "X-20")
def test_who_comes_back_is_told_the_rest(hub: HubProcess, teller: Teller) -> None:
    path, params = joined(hub, teller), task("tell")
    with asked(hub, "a2a/stream", params, path=path) as stream:
        for item in stream:
            if FIRST in str(item.data):
                break
        seen = stream.last_id
    teller.go.set()
    with asked(hub, "a2a/stream", params, path=path, last_id=seen) as stream:
        rest = results(stream)
    assert rest[0]["output"] == {"text": SECOND}
    assert rest[-1]["output"] == {"text": WHOLE}
    assert len(teller.works) == 1


@pytest.mark.req("R-25")
def test_a_number_outlives_the_hub(tmp_path: Path) -> None:
    with agentvault.agent(fresh("slow")) as stub, running_hub(tmp_path / "data") as hub:
        path = f"/agents/{register(hub, stub.card)['id']}/"
        params = task("slow")
        with asked(hub, "a2a/stream", params, path=path) as stream:
            stream.take(1)
            seen = stream.last_id
            assert stub.arrived.wait(10)
            eventually(lambda: any(body["method"] == "tasks/get" for *_, body in stub.requests), "it is looked at")
        hub.kill()
        hub.start()
        stub.release.set()
        with asked(hub, "a2a/stream", params, path=path, last_id=seen) as stream:
            assert results(stream)[-1]["status"] == "completed"
        sends = [body for *_, body in stub.requests if body["method"] == "tasks/send"]
        assert len(sends) == 1


@pytest.mark.req("R-11", "R-25")
def test_a_cancelled_task_ends_its_stream(hub: HubProcess, at: str, stub: StubAgent) -> None:
    params = task("slow")
    with asked(hub, "a2a/stream", params, path=at) as stream:
        stream.take(1)
        assert stub.arrived.wait(10)
        answer = rpc(hub, "a2a/cancel", {"taskId": params["taskId"]}).json["result"]
        assert answer == {"taskId": params["taskId"], "status": "cancelled"}
        assert results(stream)[-1]["status"] == "cancelled"
    assert stub.cancelled.wait(10)
    finished = rpc(hub, "a2a/cancel", {"taskId": params["taskId"]}).json["error"]
    assert (finished["code"], finished["data"]["reason"]) == (-32001, "finished")
    assert rpc(hub, "a2a/cancel", {"taskId": "nobody"}).json["error"]["data"]["reason"] == "task_not_found"


@pytest.mark.req("R-25")
def test_a_caller_that_leaves_does_not_end_the_task(hub: HubProcess, teller: Teller) -> None:
    path, params = joined(hub, teller), task("tell")
    with asked(hub, "a2a/stream", params, path=path) as stream:
        stream.take(1)
    teller.go.set()
    assert rpc(hub, "a2a/task", params, path).json["result"]["output"] == {"text": WHOLE}
    assert not teller.cancelled.is_set()


@pytest.mark.req("R-25")
def test_an_agent_that_has_no_streams_after_all_is_sent_the_task(hub: HubProcess, stub: StubAgent) -> None:
    path = f"/agents/{register(hub, {**stub.card, 'methods': ['a2a/stream']})['id']}/"
    for _ in range(2):
        with asked(hub, "a2a/stream", task("hi"), path=path) as stream:
            assert results(stream)[-1]["output"] == {"text": "hi"}
    methods = [body["method"] for *_, body in stub.requests]
    assert methods == ["a2a/stream", "a2a/task", "a2a/task"]


@pytest.mark.req("R-25")
def test_a_stream_is_none_of_several_answers(hub: HubProcess, at: str) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "a2a/stream", "params": task("hi")}]
    (answer,) = hub.post(at, batch).json
    assert answer["error"]["code"] == -32600


# -- a2a/events


def changes(stream: SseStream) -> Iterator[dict[str, Any]]:
    """The results of a stream that has no end; where nothing comes for long, the test fails."""
    silences = 0
    for item in stream.items():
        silences = silences + 1 if item.name == ":" else 0
        assert silences < 2, "nothing has changed for more than 10 s"
        if item.name != ":":
            yield result_of(item)


def heard(stream: SseStream, name: str, **wanted: Any) -> dict[str, Any]:
    """Read on until an event of this name comes whose agent or task has this."""
    for result in changes(stream):
        about: dict[str, Any] = result.get("agent") or result["task"]
        if result["event"] == name and about.items() >= wanted.items():
            return about
    raise AssertionError(f"the stream ended before {name} {wanted}")


@pytest.mark.req("R-26")
def test_agents_are_told_as_they_come_and_go(hub: HubProcess, stub: StubAgent) -> None:
    name = stub.card["agentId"]
    with asked(hub, "a2a/events", {"topics": ["agents"]}) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        register(hub, stub.card)
        shown = heard(stream, "agent.registered", agentId=name)
        assert shown == hub.get(f"/a2a/agents/{name}").json
        assert hub.request("DELETE", f"/v1/agents/{name}").status in (200, 204)
        assert heard(stream, "agent.removed", agentId=name) == {"agentId": name}


@pytest.mark.req("R-26")
def test_a_callers_own_tasks_are_told_and_no_others(hub: HubProcess, at: str) -> None:
    mine, other = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    foreign, own = task("hi"), task("fail")
    with (
        asked(hub, "a2a/events", {"topics": ["tasks"]}, token=mine) as stream,
        asked(hub, "a2a/events", {"topics": ["tasks"]}) as everything,
    ):
        rpc(hub, "a2a/task", foreign, at, token=other)
        rpc(hub, "a2a/task", own, at, token=mine)
        told: list[dict[str, Any]] = []
        for result in changes(stream):
            assert result["event"] == "task.updated"
            told.append(result["task"])
            if told[-1]["status"] != "working":
                break
        # The administrator sees the tenant's.
        heard(everything, "task.updated", taskId=foreign["taskId"], status="completed")
        heard(everything, "task.updated", taskId=own["taskId"], status="failed")
    assert {each["taskId"] for each in told} == {own["taskId"]}
    assert (told[-1]["status"], told[-1]["message"]) == ("failed", FAILURE)
    assert told[-1]["action"] == "echo"


@pytest.mark.req("R-26")
def test_tasks_of_every_dialect_are_told(hub: HubProcess, at: str) -> None:
    with asked(hub, "a2a/events", {}) as stream:
        call = hub.call("echo", {"text": "hi"}, at.split("/")[2]).json
        done = heard(stream, "task.updated", taskId=call["call_id"], status="completed")
    assert done["output"] == {"text": "hi"}


@pytest.mark.req("R-26", "X-20")
def test_who_comes_back_is_told_what_changed_meanwhile(hub: HubProcess, at: str) -> None:
    key = hub.new_key("a2a:call")
    with asked(hub, "a2a/events", {"topics": ["tasks"]}, token=key) as stream:
        rpc(hub, "a2a/task", task("hi"), at, token=key)
        heard(stream, "task.updated", status="completed")
        seen = stream.last_id
    missed = task("fail")
    rpc(hub, "a2a/task", missed, at, token=key)
    with asked(hub, "a2a/events", {"topics": ["tasks"]}, token=key, last_id=seen) as stream:
        assert heard(stream, "task.updated", taskId=missed["taskId"])["status"] == "failed"
        later = task("hi")
        rpc(hub, "a2a/task", later, at, token=key)
        heard(stream, "task.updated", taskId=later["taskId"], status="completed")
        assert int(stream.last_id) > int(seen)


@pytest.mark.req("R-26", "X-20")
def test_one_task_is_told_until_its_end(hub: HubProcess, at: str, stub: StubAgent) -> None:
    params = task("slow")
    with asked(hub, "a2a/stream", params, path=at) as sent:
        sent.take(1)
        assert stub.arrived.wait(10)
        with asked(hub, "a2a/events", {"taskId": params["taskId"]}) as stream:
            first = result_of(*stream.take(1))
            assert (first["event"], first["task"]["status"]) == ("task.updated", "working")
            seen = stream.last_id
            rpc(hub, "a2a/cancel", {"taskId": params["taskId"]})
            assert results(stream)[-1]["task"]["status"] == "cancelled"
        with asked(hub, "a2a/events", {"taskId": params["taskId"]}, last_id=seen) as stream:
            assert results(stream)[-1]["task"]["status"] == "cancelled"
        with asked(hub, "a2a/events", {"taskId": params["taskId"]}) as stream:
            (whole,) = results(stream)
            assert whole["task"]["status"] == "cancelled"


@pytest.mark.req("R-26", "X-15")
def test_events_are_refused_like_anything_else(hub: HubProcess) -> None:
    for params, code in (({"topics": ["weather"]}, b"-32602"), ({"taskId": "nobody"}, b"task_not_found")):
        with asked(hub, "a2a/events", params) as stream:
            assert (stream.status, stream.is_stream) == (200, False)
            assert code in stream.body()
    with asked(hub, "a2a/events", {}, token="wrong") as stream:
        assert stream.status == 401
    with asked(hub, "a2a/events", {}, token=hub.new_key("a2a:receive")) as stream:
        assert stream.status == 403
