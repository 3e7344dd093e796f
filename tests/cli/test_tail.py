"""`dragoman tail` and the feed behind it: a real hub, its calls as they begin and end, over its restart too."""

import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.output import Output
from dragoman.cli.tail import line_of
from tests.cli.terminal import COMMAND, environment
from tests.end_to_end.world import fresh, holds, join, says
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.sse_client import sse

PATIENCE_S = 20.0
NONE: Mapping[str, str] = {}
ITEM = {
    "id": "a2a_call_01m7j0pceaaYGSeKH2tb8zy8BJlR1bgw", "status": "failed", "agent": "agt_archive",
    "skill": "web_search", "duration_ms": 14, "error_code": "AGENT_ERROR", "updated_at": "2026-01-12T10:00:00.000Z",
}  # fmt: skip


class Tailed:
    """A running `tail`, and the lines that it has said."""

    def __init__(self, hub: HubProcess, home: Path, *words: str) -> None:
        env = environment(home, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=hub.token or "")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([COMMAND, "tail", *words], env=env, stdout=pipe, stderr=pipe, text=True)
        self._news = threading.Condition()
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def until(self, *words: str) -> list[str]:
        """The fields of the first line that has these words."""

        def found() -> list[str] | None:
            split = (line.split("\t") for line in self.lines)
            return next((fields for fields in split if all(word in fields for word in words)), None)

        with self._news:
            fields = self._news.wait_for(found, PATIENCE_S)
            assert fields, self.lines
            return fields

    def end(self) -> tuple[int, str]:
        """Ctrl-C: its exit code, and what it said on stderr."""
        self._process.send_signal(signal.SIGINT)
        assert self._process.stderr is not None and self._process.stdout is not None
        said = self._process.stderr.read()
        code = self._process.wait(PATIENCE_S)
        self._process.stdout.close()
        self._process.stderr.close()
        return code, said


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("tail") / "data").start()
    yield hub
    hub.stop()


@pytest.fixture
def agent() -> Generator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


def listening(hub: HubProcess, tail: Tailed, agent: str) -> None:
    """Return when the command hears of calls: it says nothing before the first."""
    while not tail.lines:
        hub.call("echo", {"sign": "of life"}, agent)


def test_calls_are_followed_as_they_begin_and_end(real: HubProcess, agent: PlatformAgent, tmp_path: Path) -> None:
    name = join(real, agent, id=fresh("agt_tailed"))["id"]
    tail = Tailed(real, tmp_path, "--agent", name)
    listening(real, tail, name)
    agent.respond = holds(agent)
    held = real.post("/v1/a2a/call/async", {"skill": "echo", "input": {}, "target_agent_id": name}).json["call_id"]
    assert tail.until(held)[1] in ("submitted", "working"), "while it runs"
    agent.release.set()
    assert tail.until(held, "completed")[1:4] == ["completed", name, "echo"]
    agent.respond = says((500, {}, b"{}"))
    failed = real.call("echo", {}, name).json["call_id"]
    assert "AGENT_ERROR" in tail.until(failed, "failed", name)
    code, said = tail.end()
    assert code == 130
    assert "1 failed" in said.splitlines()[-1]


@pytest.mark.full
def test_a_hub_that_restarts_is_followed_on(real: HubProcess, agent: PlatformAgent, tmp_path: Path) -> None:
    name = join(real, agent, id=fresh("agt_tailed"))["id"]
    tail = Tailed(real, tmp_path, "--agent", name)
    listening(real, tail, name)
    real.kill()
    real.start()
    last = real.call("echo", {"after": "restart"}, name).json["call_id"]
    tail.until(last, "completed")
    code, said = tail.end()
    assert code == 130
    assert "the connection is lost; trying again" in said and "connected again" in said
    ended = [line.split("\t")[-1] for line in tail.lines if "\tcompleted\t" in line or "\tfailed\t" in line]
    assert len(ended) == len(set(ended)), "none is told twice"


def frames(
    hub: HubProcess, query: str, token: str, calls: Callable[[], str], headers: Mapping[str, str] = NONE
) -> list[dict[str, Any]]:
    """What a feed tells of some calls: those of one made last, which ends it."""
    told: list[dict[str, Any]] = []
    sent = {"Authorization": f"Bearer {token}", **headers}
    with sse(f"{hub.url}/v1/calls/feed{query}", headers=sent) as stream:
        last = calls()
        for item in stream:
            assert item.name == "call"
            told.append({**item.data, "event_id": item.id})
            if told[-1]["id"] == last:
                break
    return told


def test_a_feed_tells_each_caller_of_its_own_calls_as_it_wants(real: HubProcess, agent: PlatformAgent) -> None:
    name = join(real, agent)["id"]
    mine, other = real.new_key("a2a:call"), real.new_key("a2a:call")

    def some() -> str:
        real.call("echo", {"of": "other"}, name, token=other)
        return real.call("echo", {"of": "me"}, name, token=mine).json["call_id"]

    told = frames(real, "", mine, some)
    assert [item["status"] for item in told] == ["completed"], "and nothing of the other's"
    since = {"Last-Event-ID": told[0]["event_id"]}
    missed = real.call("echo", {"missed": True}, name, token=mine).json["call_id"]
    again = frames(real, "", mine, some, since)
    assert missed in [item["id"] for item in again]
    agent.respond = says((500, {}, b"{}"))

    def one_fails() -> str:
        return real.call("echo", {}, name, token=mine).json["call_id"]

    assert [item["error_code"] for item in frames(real, "?failed=1", mine, one_fails)] == ["AGENT_ERROR"]
    for wrong in ("?topics=weather", "?status=odd", "?failed=yes", "?colour=red"):
        assert real.get(f"/v1/calls/feed{wrong}", token=mine).status == 400


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_line_fits_and_names_the_error(width: int) -> None:
    line = line_of(Output(color=False), dict(ITEM), width)
    assert len(line) == width or (len(line) < width and str(ITEM["id"]) in line)
    assert "failed" in line and "AGENT_ERR" in line and "agt_archive" in line and line.endswith("bgw")
