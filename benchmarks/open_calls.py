"""Calls of the streaming agent that stay open until it is told to go on: what readers come to follow."""

import time
from typing import Final

from benchmarks.calls import ACCEPT_PATH
from benchmarks.http import Endpoint
from benchmarks.hub import Hub
from benchmarks.place import Void
from benchmarks.stage import AGENT_ID
from benchmarks.telling import asked, call_body

PATIENCE_S: Final = 10.0


def open_calls(hub: Hub, count: int, lines: int, per_s: float) -> list[str]:
    """Have so many calls accepted and sent; their ids, once the agent has them all."""
    body = call_body(AGENT_ID, asked(lines, per_s, waits=True))
    ids: list[str] = []
    for _ in range(count):
        reply = hub.endpoint.ask("POST", ACCEPT_PATH, token=hub.caller_token, body=body)
        if reply.status != 202:
            raise Void(f"{hub.name} did not accept a call: {reply.status} {reply.body.decode(errors='replace')[:500]}")
        ids.append(reply.json()["call_id"])
    deadline = time.perf_counter() + PATIENCE_S
    for id_ in ids:
        while (
            hub.endpoint.ask("GET", f"/v1/a2a/call/{id_}/status", token=hub.caller_token).json()["status"] != "running"
        ):
            if time.perf_counter() > deadline:
                raise Void(f"{hub.name} did not begin {id_}.")
            time.sleep(0.05)
    return ids


def go(endpoint: Endpoint, path: str = "/go") -> None:
    """Let who waits begin."""
    endpoint.ask("POST", path)


def follow_request(hub: Hub, call_id: str) -> bytes:
    """The request for the stream of a call that runs."""
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {hub.caller_token}"}
    return hub.endpoint.request("GET", f"/v1/a2a/call/{call_id}/stream", headers, b"")


def bare_request(endpoint: Endpoint) -> bytes:
    """The request for a stream of the bare server."""
    return endpoint.request("GET", "/stream", {"Accept": "text/event-stream"}, b"")
