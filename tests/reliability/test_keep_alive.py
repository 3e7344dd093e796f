"""X-20: a stream that has nothing to say says that it is still there, at most every 10 seconds."""

import itertools
import time
from pathlib import Path

import pytest

from tests.support.hub import HubProcess
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.stream_agents import SKILL, STREAMER, stream_agents

MOST_S = 10.0
SWEPT_S = 3.0  # where a second of silence is enough: that, the sweep's error of one more, and a busy machine
COMMENTS = 2


@pytest.mark.req("X-20")
def test_a_silent_stream_carries_comments(tmp_path: Path) -> None:
    _judge(tmp_path, "keeps_alive_each_second", SWEPT_S)


@pytest.mark.full
@pytest.mark.req("X-20")
def test_a_silent_stream_carries_a_comment_at_most_every_10_seconds(tmp_path: Path) -> None:
    _judge(tmp_path, "", MOST_S)


@pytest.mark.planted
def test_a_stream_that_says_nothing_is_found(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        _judge(tmp_path, "keeps_alive_each_second,no_keep_alive", SWEPT_S)


def _judge(folder: Path, planted: str, most_s: float) -> None:
    """The caller's own stream, and one that was asked for later."""
    hub = HubProcess(folder / "data", planted=planted).start()
    headers = {"Authorization": f"Bearer {hub.token}"}
    body = {"target_agent_id": STREAMER, "skill": SKILL, "input": {"holds": True}}
    try:
        with stream_agents() as agent:
            hub.register(agent.card())
            with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers, patience_s=most_s) as own:
                call_id = own.take(1)[0].data["call_id"]
                url = f"{hub.url}/v1/a2a/call/{call_id}/stream"
                with sse(url, headers=headers, patience_s=most_s) as later:
                    later.take(1)
                    for stream in (own, later):
                        _is_kept_alive(stream, most_s)
                    agent.end()
                    assert [item.name for item in own][-1] == [item.name for item in later][-1] == "done"
    finally:
        hub.kill()


def _is_kept_alive(stream: SseStream, most_s: float) -> None:
    said = stream.last_id
    heard = time.monotonic()
    for item in itertools.islice(stream.items(), COMMENTS):
        now = time.monotonic()
        assert item == SseItem(":", "", said)
        assert now - heard < most_s
        heard = now
