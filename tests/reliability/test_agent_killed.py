"""An agent that dies in the midst of its stream leaves nobody waiting: callers hear the end, the task has failed."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.hub import HubProcess, running_hub
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.stream_agents import STREAMER, stream_agents
from tests.support.stream_agents_v10 import AGENT, stream_agent_v10

PIECES = 3
LEASE_S = 30.0  # within which it must be known
KNOWN_S = 2.0  # within which it is
ENDINGS = ("AGENT_ERROR", "AGENT_UNAVAILABLE")


class Agent(NamedTuple):
    """An agent that streams and can be killed."""

    id: str
    kill: Callable[[], None]


@contextlib.contextmanager
def platform_agent(hub: HubProcess, *, chunked: bool = True) -> Generator[Agent]:
    with stream_agents() as agent:
        hub.register(agent.card(chunked=chunked))
        yield Agent(STREAMER, agent.kill)


@contextlib.contextmanager
def platform_agent_unframed(hub: HubProcess) -> Generator[Agent]:
    """Its answer ends with its connection, so that nothing tells a killed agent from one that has no more to say."""
    with platform_agent(hub, chunked=False) as agent:
        yield agent


@contextlib.contextmanager
def v10_agent(hub: HubProcess) -> Generator[Agent]:
    with stream_agent_v10(PIECES) as (card, kill):
        hub.register(card, id=AGENT)
        yield Agent(AGENT, kill)


class PlatformCaller:
    """Calls in the platform's dialect."""

    @staticmethod
    def call(hub: HubProcess, agent: Agent, patience_s: float) -> contextlib.AbstractContextManager[SseStream]:
        """A call that is streamed."""
        skill = "tell" if agent.id == STREAMER else "echo"
        body = {"target_agent_id": agent.id, "skill": skill, "input": {"events": PIECES, "holds": True}}
        return sse(f"{hub.url}/v1/a2a/call/stream", body, headers=_headers(hub), patience_s=patience_s)

    @staticmethod
    def call_id(first: SseItem) -> str:
        """The id of the call, by its first event."""
        return first.data["call_id"]

    @staticmethod
    def judge_end(rest: list[SseItem]) -> None:
        """An error in the dialect's words, and that it was the last."""
        error, done = rest
        assert (error.name, done.name) == ("error", "done")
        assert error.data["code"] in ENDINGS and error.data["message"], error


class V10Caller:
    """Calls in A2A 1.0."""

    @staticmethod
    def call(hub: HubProcess, agent: Agent, patience_s: float) -> contextlib.AbstractContextManager[SseStream]:
        """A call that is streamed."""
        parts = [{"data": {"events": PIECES, "holds": True}}]
        params = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": parts}}
        body = {"jsonrpc": "2.0", "id": "r1", "method": "SendStreamingMessage", "params": params}
        headers = {**_headers(hub), "A2A-Version": "1.0"}
        return sse(f"{hub.url}/agents/{agent.id}", body, headers=headers, patience_s=patience_s)

    @staticmethod
    def call_id(first: SseItem) -> str:
        """The id of the task, by its first event."""
        return first.data["result"]["task"]["id"]

    @staticmethod
    def judge_end(rest: list[SseItem]) -> None:
        """A status that says so, and says why."""
        status: dict[str, Any] = rest[-1].data["result"]["statusUpdate"]["status"]
        assert status["state"] == "TASK_STATE_FAILED", rest
        assert status["message"]["parts"], rest


CALLERS = [PlatformCaller, V10Caller]
AGENTS = [platform_agent, platform_agent_unframed, v10_agent]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("agent", AGENTS)
def test_the_stream_of_a_killed_agent_ends_with_an_error_and_its_task_has_failed(
    caller: type[PlatformCaller] | type[V10Caller],
    agent: Callable[[HubProcess], contextlib.AbstractContextManager[Agent]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running_hub(tmp_path / "data") as hub, agent(hub) as running:
        took_s = _heard_of_the_end_after(hub, running, caller, LEASE_S)
    with capsys.disabled():
        sys.stdout.write(f"\nan agent was killed: its callers heard of it after {took_s * 1000:.0f} ms")
    assert took_s < KNOWN_S


@pytest.mark.planted
def test_a_hub_that_takes_a_broken_stream_for_a_silent_one_is_found_out(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data", planted="stream_end_swallowed").start()
    try:
        with platform_agent(hub) as agent, pytest.raises(TimeoutError):
            _heard_of_the_end_after(hub, agent, PlatformCaller, KNOWN_S)
    finally:
        hub.kill()


def _heard_of_the_end_after(
    hub: HubProcess, agent: Agent, caller: type[PlatformCaller] | type[V10Caller], patience_s: float
) -> float:
    """How long the caller, and one who came later, waited for the end after the agent was killed."""
    with caller.call(hub, agent, patience_s) as stream:
        call_id = caller.call_id(stream.take(1)[0])
        _take_pieces(stream)
        later = f"{hub.url}/v1/a2a/call/{call_id}/stream"
        with sse(later, headers={**_headers(hub), "Last-Event-ID": stream.last_id}, patience_s=patience_s) as other:
            agent.kill()
            killed = time.monotonic()
            caller.judge_end(list(stream))
            PlatformCaller.judge_end(list(other))
            took_s = time.monotonic() - killed
    told = hub.get(f"/v1/a2a/call/{call_id}/status").json
    assert told["status"] == "failed", told
    assert told["error"]["code"] in ENDINGS, told
    return took_s


def _take_pieces(stream: SseStream) -> None:
    """All that the agent says before it falls silent; pieces that come at once are one event."""
    for item in stream:
        if f"{PIECES - 1}@" in json.dumps(item.data):
            return


def _headers(hub: HubProcess) -> dict[str, str]:
    return {"Authorization": f"Bearer {hub.token}"}
