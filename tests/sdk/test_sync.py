"""The blocking twins: the same calls without a loop of one's own, and a refusal inside of one."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from dragoman import A2AClient, errors, sync
from dragoman.sdk.scope import Scope, within
from tests.end_to_end.world import join
from tests.support.hub import ROOT, HubProcess
from tests.support.platform_agent import PlatformAgent


def test_everything_a_client_does_can_be_done_without_awaiting(open_hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(open_hub, agent)["id"]
    client = A2AClient(open_hub.url).sync
    result = client.call(agent_id, "echo", {"a": 1})
    assert (result, result.usage["tokens"]) == ({"a": 1}, 3)
    assert [event.type for event in client.stream(agent_id, "echo", {"a": 1})] == ["start", "complete"]
    handle = client.submit(agent_id, "echo", {"b": 2})
    assert handle.result(timeout_s=10) == {"b": 2}
    assert client.handle(handle.id).status().ended
    assert [event.type for event in handle.stream()][-1] == "complete"
    assert agent_id in [found.id for found in client.discover("echo")]
    assert client.card(agent_id)["name"] == "Echo"
    with pytest.raises(errors.AgentNotFound):
        client.call("agt_nobody", "echo", {})


def test_an_iteration_may_be_left_early(open_hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(open_hub, agent)["id"]
    for event in A2AClient(open_hub.url).sync.stream(agent_id, "echo", {"a": 1}):
        assert event.type == "start"
        break


def test_one_loop_serves_many_threads(open_hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(open_hub, agent)["id"]
    client, results = A2AClient(open_hub.url).sync, list[Any]()

    def call(n: int) -> None:
        results.append(client.call(agent_id, "echo", {"n": n})["n"])

    threads = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(results) == list(range(8))
    assert [thread.name for thread in threading.enumerate()].count("dragoman-sync") == 1


def test_inside_a_running_loop_it_refuses_and_names_the_async_form() -> None:
    async def inside() -> list[str]:
        client = A2AClient("http://127.0.0.1:9").sync
        said: list[str] = []
        for blocking in (
            lambda: client.call("a", "b"),
            lambda: list(client.stream("a", "b")),
            lambda: client.handle("c").result(),
            lambda: sync.call_agent("a", "b"),
        ):
            with pytest.raises(RuntimeError) as raised:
                blocking()
            said.append(str(raised.value).rpartition("use `")[2].rstrip("`."))
        return said

    assert asyncio.run(inside()) == [
        "await client.call(…)",
        "async for event in client.stream(…)",
        "await handle.result()",
        "await dragoman.call_agent(…)",
    ]


@pytest.mark.req("P-42")
def test_what_a_handler_in_a_worker_thread_is_doing_passes_through(open_hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(open_hub, agent)["id"]
    scope = Scope(
        call_id="a2a_call_parent",
        conversation_id="conv_7",
        trace_id="trace_mine",
        span_id="span_mine",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        client=A2AClient(open_hub.url),
    )
    with within(scope):
        result = sync.call_agent(agent_id, "echo", {"a": 1})
    _, headers, body = agent.requests[0]
    assert result.trace["trace_id"] == headers["x-trace-id"] == "trace_mine"
    assert headers["traceparent"].split("-")[1] == "0af7651916cd43dd8448eb211c80319c"
    assert body["context"]["conversation_id"] == "conv_7"
    assert body["context"]["parent_execution_id"] == "a2a_call_parent"


def test_a_program_that_closes_nothing_ends_without_a_warning(open_hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(open_hub, agent)["id"]
    program = f"""
import asyncio, gc
from dragoman import A2AClient, call_agent

client = A2AClient()

async def main():
    print(await client.call({agent_id!r}, "echo", {{"n": 1}}))
    print(await A2AClient().call({agent_id!r}, "echo", {{"n": 2}}))
    gc.collect()
    print(await asyncio.gather(*[call_agent({agent_id!r}, "echo", {{"n": n}}) for n in (3, 4)]))
    async for event in client.stream({agent_id!r}, "echo", {{}}):
        break

asyncio.run(main())
asyncio.run(main())
print(client.sync.call({agent_id!r}, "echo", {{"n": 5}}))
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True, text=True, timeout=30, check=False, cwd=ROOT,
        env={"PATH": "", "DRAGOMAN_URL": open_hub.url, "HOME": "/nonexistent"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["{'n': 1}", "{'n': 2}", "[{'n': 3}, {'n': 4}]"] * 2 + ["{'n': 5}"]
