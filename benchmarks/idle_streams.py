"""`idle_streams`: what an open stream weighs on which nothing happens, and what is left when thousands came and went.

The readers follow some fifty calls that stay open. At the end each of these says one line, which must reach every
reader: streams that were only thought to be open void the run.
"""

import resource
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import report
from benchmarks.http import TIMEOUT_S, Endpoint
from benchmarks.ledger import Answers
from benchmarks.open_calls import bare_request, follow_request, go, open_calls
from benchmarks.place import LOAD_CORE, SERVER_CORE, Void
from benchmarks.processes import rss_mb
from benchmarks.rounds import Options
from benchmarks.stage import Stage
from benchmarks.telling import telling_card

STREAMS, QUICK_STREAMS = 10_000, 2_000
CHURNS, QUICK_CHURNS = 10, 3
CALLS: Final = 50
AT_ONCE: Final = 100
SPARE_FILES: Final = 500
SETTLE_S: Final = 1.0
BARE: Final = "uvicorn"
GOAL: Final = "gate 25, goal 12"
ABORT: Final = struct.pack("ii", 1, 0)  # close at once, so that the port is free again


class Followed(NamedTuple):
    """A server, the requests that its readers take in turn, and how all of their streams are brought to an end."""

    name: str
    endpoint: Endpoint
    pid: int
    requests: Sequence[bytes]
    finish: Callable[[], None]


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Open the streams on each server, one server after the other; what is kept of it."""
    count = _affordable(QUICK_STREAMS if options.quick else STREAMS)
    churns = QUICK_CHURNS if options.quick else CHURNS
    kept: dict[str, Any] = {"streams": count, "churns": churns, "servers": {}}
    with Stage(folder, options) as stage:
        agent = stage.program("benchmarks.stream_agent", core=LOAD_CORE)
        bare = stage.program("benchmarks.bare_streams", core=SERVER_CORE)
        hubs = stage.hubs(agent.endpoint, card=telling_card)
        finish_bare = lambda: go(bare.endpoint, "/go?lines=1&per_s=10")  # noqa: E731 - as for the hubs
        servers = [Followed(BARE, bare.endpoint, bare.server.pid, [bare_request(bare.endpoint)], finish_bare)]
        for hub in hubs:
            ids = open_calls(hub, CALLS, 1, 10.0)
            stage.count(hub.name, Answers(CALLS, ids))
            requests = [follow_request(hub, id_) for id_ in ids]
            servers.append(Followed(hub.name, hub.endpoint, hub.server.pid, requests, lambda: go(agent.endpoint)))
        # All hubs' calls are open at once, and end at once: so their streams do.
        streams = {each.name: _measure(each, count, churns, kept["servers"]) for each in servers}
        _show(kept, list(options.hubs))
        servers[0].finish()
        servers[-1].finish()
        for each in servers:
            _all_told(each.name, streams[each.name])
        print("\nproof")
        print(f"  every one of {count * len(servers):,} streams got its last line and its end")
        kept["database"] = stage.settle(hubs)
    return kept


def _affordable(wanted: int) -> int:
    """As many streams as this process may have files; both ends of each are on this machine."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    count = min(wanted, most - SPARE_FILES)
    if count < wanted:
        print(f"  only {count:,} streams: this process may have {most:,} files (ulimit -n)")
    return count


def _measure(server: Followed, count: int, churns: int, kept: dict[str, Any]) -> list[socket.socket]:
    """Open, close and open again; the streams that are open at the end."""
    # A few first: what a server makes once is not a stream's.
    _close(_open(server, AT_ONCE))
    time.sleep(SETTLE_S)
    empty_mb = rss_mb(server.pid)
    began = time.perf_counter()
    streams = _open(server, count)
    opened_s = time.perf_counter() - began
    time.sleep(SETTLE_S)
    full_mb = rss_mb(server.pid)
    after: list[float] = []
    for _ in range(churns):
        _close(streams)
        _await_closed(server.pid, count)
        streams = _open(server, count)
        time.sleep(SETTLE_S)
        after.append(rss_mb(server.pid))
    kept[server.name] = {
        "empty_mb": empty_mb,
        "full_mb": full_mb,
        "kb_per_stream": (full_mb - empty_mb) * 1e3 / count,
        "opened_per_s": count / opened_s,
        "after_churn_mb": after,
        "churned_kb_per_stream": (after[-1] - empty_mb) * 1e3 / count,
    }
    return streams


def _open(server: Followed, count: int) -> list[socket.socket]:
    streams: list[socket.socket] = []
    address = (server.endpoint.host, server.endpoint.port)
    while len(streams) < count:
        missing = min(AT_ONCE, count - len(streams))
        batch = [socket.create_connection(address, TIMEOUT_S) for _ in range(missing)]
        for place, stream in enumerate(batch, len(streams)):
            stream.sendall(server.requests[place % len(server.requests)])
        for stream in batch:
            said = _until(stream, b"event: start", server.name)
            if not said.startswith(b"HTTP/1.1 200 "):
                raise Void(f"{server.name} refused a stream: {said[:500]!r}")
        streams += batch
    return streams


def _all_told(name: str, streams: list[socket.socket]) -> None:
    for stream in streams:
        said = _until(stream, b"event: done", name)
        if said.count(b"event: chunk") != 1 or said.count(b"event: complete") != 1:
            raise Void(f"A stream of {name} said {said[:500]!r}")
    _close(streams)


def _until(stream: socket.socket, word: bytes, name: str) -> bytes:
    said = b""
    while word not in said:
        try:
            more = stream.recv(65536)
        except OSError as error:
            raise Void(f"A stream of {name} was silent after {said[-500:]!r}: {error}") from error
        if not more:
            raise Void(f"A stream of {name} ended after {said[-500:]!r}")
        said += more
    return said


def _close(streams: list[socket.socket]) -> None:
    for stream in streams:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
        stream.close()


def _await_closed(pid: int, count: int) -> None:
    deadline = time.perf_counter() + TIMEOUT_S
    while len(list(Path(f"/proc/{pid}/fd").iterdir())) > count // 2:
        if time.perf_counter() > deadline:
            raise Void(f"Process {pid} keeps connections open that were closed.")
        time.sleep(0.05)


def _show(kept: dict[str, Any], hubs: list[str]) -> None:
    print(f"\n{kept['streams']:,} idle streams, {kept['churns']} times closed and opened again")
    rows = [
        (
            name,
            f"{found['kb_per_stream']:.1f}",
            GOAL if name in hubs else "",
            f"{found['churned_kb_per_stream']:.1f}",
            f"{found['empty_mb']:.0f}",
            f"{found['full_mb']:.0f}",
            f"{found['after_churn_mb'][-1]:.0f}",
            f"{found['opened_per_s']:,.0f}",
        )
        for name, found in kept["servers"].items()
    ]
    headings = ("server", "KB per stream", "", "the same after churn", "MB empty", "MB full", "MB after churn")
    report.table((*headings, "opened/s"), rows)
