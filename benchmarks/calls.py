"""The call that every peer is asked to carry, and what a right answer to it looks like.

The agent at the far end gives back what it was told. Each request has an id of its own, in `X-Trace-ID` and in its
input; a right answer has status 200, that id in its result (and, where the wire has one, in its trace or frame), and
the expected text. So an answer that belongs to another request, or to none, is a wrong one. A call that is only
accepted is answered before there is a result: there the database is asked at the end.
"""

import json
import os
import re
from typing import Any, Final, NamedTuple

from benchmarks.http import Endpoint, Reply

QUERY: Final = (
    "Which of the routes over the pass stay open in winter, and for which of them does the council publish a forecast "
    "that a caller may quote? Give the three best known ones with their height and the date of the last closure."
)
ID_LENGTH: Final = 38
PLACEHOLDER: Final = b"@" * ID_LENGTH  # as long as an id, so that Content-Length holds for every request
SPREAD: Final = 2_654_435_761  # a number that has no divisor with 2**32: the products of all numbers with it differ
ID: Final = "(trace_[0-9a-f]{32})"
CALL_ID: Final = r'"call_id":\s*"([^"]+)"'
TASK_ID: Final = r'"task":\s*\{"id":\s*"([^"]+)"'
CALL_PATH: Final = "/v1/a2a/call"
ACCEPT_PATH: Final = "/v1/a2a/call/async"


class Wanted(NamedTuple):
    """Regular expressions that a right answer matches; those with a group must all give the request's id.

    `call_id` finds what the server calls it, where it says so: that must be in its database at the end. An answer that
    gives nothing back of what was asked has no `ids`; then no two answers may have one `call_id`.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    call_id: str | None = None
    status: int = 200

    def named(self, reply: Reply) -> list[str]:
        """The call's id in that answer, if the answer has one."""
        return re.findall(self.call_id, reply.body.decode(errors="replace"))[:1] if self.call_id else []

    def fault(self, reply: Reply, id_: str) -> str | None:
        """What is wrong with the answer to that request, or None."""
        body = reply.body.decode(errors="replace")
        if reply.status != self.status:
            return f"status {reply.status}: {body[:500]}"
        for pattern in self.ids:
            found = re.search(pattern, body, re.DOTALL)
            if found is None or found[1] != id_:
                return f"{pattern} is not {id_} in: {body[:500]}"
        missing = [text for text in self.texts if re.search(text, body, re.DOTALL) is None]
        return f"{missing[0]} is not in: {body[:500]}" if missing else None


class Call(NamedTuple):
    """One kind of request: its bytes with a placeholder for the id, and what must come back."""

    endpoint: Endpoint
    template: bytes
    wanted: Wanted

    def with_id(self, id_: str) -> bytes:
        """The request with its id filled in."""
        return self.template.replace(PLACEHOLDER, id_.encode())


def new_prefix() -> str:
    """The first half of the ids of one round; `numbered` makes each of them whole."""
    return f"trace_{os.urandom(8).hex()}"


def numbered(prefix: str, number: int) -> str:
    """An id of that round: they come in no order, as the trace ids of callers do."""
    return f"{prefix}{number * SPREAD % (1 << 32):08x}{number:08x}"


def platform_call(endpoint: Endpoint, agent_id: str, token: str, *, unique_header: str | None = None) -> Call:
    """A synchronous call in the platform dialect; `unique_header` carries the id too (an idempotency key)."""
    body = _platform_body(agent_id, timeout_ms=30_000)
    headers = {"Authorization": f"Bearer {token}"}
    if unique_header is not None:
        headers[unique_header] = PLACEHOLDER.decode()
    texts = (r'"status":\s*"completed"', re.escape(QUERY))
    wanted = Wanted((rf'"result":.*?"echo":\s*"{ID}"', rf'"trace_id":\s*"{ID}"'), texts, CALL_ID)
    return Call(endpoint, _request(endpoint, CALL_PATH, headers, body), wanted)


def accepted_call(endpoint: Endpoint, agent_id: str, token: str) -> Call:
    """The same call, to be carried out later; with time enough to wait its turn behind all the others."""
    body = _platform_body(agent_id, timeout_ms=3_600_000)
    wanted = Wanted((), (r'"status":\s*"queued"',), CALL_ID, status=202)
    return Call(endpoint, _request(endpoint, ACCEPT_PATH, {"Authorization": f"Bearer {token}"}, body), wanted)


def a2a_call(endpoint: Endpoint, path: str = "/", *, token: str | None = None, framed: bool = True) -> Call:
    """SendMessage of A2A 1.0; `framed`: the answer's JSON-RPC id is the request's, as a real agent sends it."""
    part = {"data": {"echo": PLACEHOLDER.decode(), "query": QUERY, "max_results": 3}}
    message = {"messageId": PLACEHOLDER.decode(), "role": "ROLE_USER", "parts": [part]}
    metadata = {"dragoman": {"skill": "echo"}}
    params = {"message": message, "metadata": metadata}
    body = {"jsonrpc": "2.0", "id": PLACEHOLDER.decode(), "method": "SendMessage", "params": params}
    headers = {"A2A-Version": "1.0"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    ids = (rf'"artifacts":.*?"echo":\s*"{ID}"', *((rf'"id":\s*"{ID}"',) if framed else ()))
    wanted = Wanted(ids, (r'"state":\s*"TASK_STATE_COMPLETED"', re.escape(QUERY)), TASK_ID if token else None)
    return Call(endpoint, _request(endpoint, path, headers, body), wanted)


def echo_answer(id_: str) -> str:
    """What an echo agent of A2A 1.0 answers to the call with that id.

    The JSON-RPC id cannot be known to a server without a program; "unknown" is what some published agents send.
    """
    part = {"data": {"echo": id_, "query": QUERY, "max_results": 3}}
    task = {
        "id": "task-4f1c9b7e2a",
        "contextId": "ctx-7d20e6c41f",
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-12T10:00:02.500Z"},
        "artifacts": [{"artifactId": "artifact-1", "name": "echo", "parts": [part]}],
    }
    return json.dumps({"jsonrpc": "2.0", "id": "unknown", "result": {"task": task}}, separators=(",", ":"))


def echo_card(url: str) -> dict[str, Any]:
    """The card of that agent."""
    return {
        "name": "Echo",
        "description": "Gives back what it is told.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{"id": "echo", "name": "Echo", "description": "Gives back its input.", "tags": ["echo"]}],
    }


def _platform_body(agent_id: str, *, timeout_ms: int) -> dict[str, Any]:
    return {
        "target_agent_id": agent_id,
        "skill": "echo",
        "input": {"echo": PLACEHOLDER.decode(), "query": QUERY, "max_results": 3},
        "options": {"timeout_ms": timeout_ms, "priority": "normal"},
        "context": {"metadata": {"user_id": "usr_abc", "org_id": "org_xyz"}},
    }


def _request(endpoint: Endpoint, path: str, headers: dict[str, str], body: object) -> bytes:
    payload = json.dumps(body, separators=(",", ":")).encode()
    return endpoint.request("POST", path, {**headers, "X-Trace-ID": PLACEHOLDER.decode()}, payload)
