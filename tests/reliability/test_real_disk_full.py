"""R14 on a real disk: a hub on a small tmpfs that is filled from outside, all its limits a sixteenth of the usual."""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end.world import eventually, holds, join, repeats, tracebacks
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent

DISK_MIB = 48
SETTINGS = {"DRAGOMAN_SQLITE_WAL_MIB": "4", "DRAGOMAN_SQLITE_BALLAST_MIB": "5"}
CALLS = 20
ROUNDS = 3


class HubOnSmallDisk(HubProcess):
    """A hub whose data is on a disk of its own, which nobody but it has mounted."""

    def command(self) -> list[str]:
        """Mounted in a namespace of the process's own, which needs no root."""
        assert shutil.which("unshare"), "this test needs unshare (util-linux) to mount a disk of its own"
        self.data.mkdir(exist_ok=True)
        mount = f'mount -t tmpfs -o size={DISK_MIB}m,mode=0700 tmpfs "{self.data}" && exec "$@"'
        return ["unshare", "-Urm", "sh", "-c", mount, "sh", *super().command()]

    @property
    def disk(self) -> Path:
        """The disk, as it is seen from here."""
        return Path(f"/proc/{self.pid}/root{self.data}")

    def fill(self) -> None:
        """Take all that is free."""
        with (self.disk / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(65_536)):
                    pass
            except OSError as error:
                assert error.errno == 28, error

    def free_mib(self) -> int:
        """What is free."""
        found = os.statvfs(self.disk)
        return found.f_bavail * found.f_frsize // (1024 * 1024)


@pytest.mark.full
def test_a_hub_on_a_full_disk_takes_results_refuses_calls_and_goes_on_without_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = HubOnSmallDisk(tmp_path / "data")
    with platform_agent() as agent, ThreadPoolExecutor(CALLS) as threads:
        hub.start(SETTINGS)
        try:
            name = join(hub, agent)["id"]
            known = [_filled(hub, agent, name, threads, round_) for round_ in range(ROUNDS)]
            assert hub.stop() == 0
        finally:
            agent.release.set()
            hub.kill()
    with capsys.disabled():
        calls = sum(map(len, known))
        sys.stdout.write(f"\n{ROUNDS} times full: {calls} calls ended well on a full disk, every new one was refused")
    assert [line for line in tracebacks(hub) if "disk" not in line["message"] and "log" not in line["message"]] == []


def _filled(
    hub: HubOnSmallDisk, agent: PlatformAgent, name: str, threads: ThreadPoolExecutor, round_: int
) -> list[str]:
    """Once round: calls run, the disk gets full, they end all the same; then there is room, and new ones are taken."""
    agent.release.clear()
    agent.respond = holds(agent)
    before = len(agent.requests)
    running = [threads.submit(hub.call, "echo", {"number": number, "x": "x" * 20_000}, name) for number in range(CALLS)]
    eventually(lambda: len(agent.requests) == before + CALLS, "all calls run")
    hub.fill()
    agent.release.set()
    replies = [each.result(30) for each in running]
    assert [reply.status for reply in replies] == [200] * CALLS, [reply.body[:200] for reply in replies]
    agent.respond = repeats
    refused = eventually(lambda: _refused(hub, name), "new calls are refused")
    assert refused["error"]["details"]["reason"] == "storage_full"
    ready = eventually(lambda: _said_full(hub), "the hub says that its disk is full")
    assert ready == "degraded"
    ids: list[str] = [reply.json["id"] for reply in replies]
    (hub.disk / "filler").unlink()
    eventually(lambda: hub.call("echo", {"round": round_}, name).status == 200, "new calls are taken again")
    assert (hub.disk / "ballast").stat().st_size == 5 * 1024 * 1024
    for call_id in ids:
        assert hub.get(f"/v1/a2a/call/{call_id}/status").json["status"] == "completed"
    return ids


def _said_full(hub: HubOnSmallDisk) -> str | None:
    said = hub.get("/readyz")
    assert said.status == 200, said.body
    return said.json["status"] if said.json["checks"]["storage"] == "full" else None


def _refused(hub: HubOnSmallDisk, name: str) -> dict[str, dict[str, dict[str, str]]] | None:
    reply = hub.call("echo", {"more": "x" * 50_000}, name)
    return reply.json if reply.status == 503 and "retry-after" in reply.headers else None
