"""The envelope over a WebSocket: a peer that says messages and acknowledges those it gets, and an agent made of it.

None of the hub's code is used, so that a mistake there cannot hide itself.
"""

import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.agents.envelope import now
from tests.support.hub import HubProcess
from tests.support.speaking import FAILURE

PATIENCE_S: Final = 15.0
PATH: Final = "/a2a/messages/ws"

_open: Callable[..., AbstractContextManager[ClientConnection]] = connect


class SocketPeer:
    """One open WebSocket, and what came over it and was not taken yet."""

    def __init__(self, socket: ClientConnection, name: str, token: str) -> None:
        self.socket = socket
        self.id = name
        self.token = token
        self._came: deque[dict[str, Any]] = deque()

    def envelope(self, to: str, kind: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A message of this peer's."""
        return {
            "version": "1.0.0",
            "message_id": str(uuid4()),
            "timestamp": now(),
            "from": self.id,
            "to": to,
            "type": kind,
            "payload": payload,
            "signature": None,
            **more,
        }

    def assignment(self, to: str, given: dict[str, Any], task_type: str = "echo") -> dict[str, Any]:
        """A task for an agent."""
        payload = {"task_id": f"task-{uuid4()}", "task_type": task_type, "title": "A task", "description": "To do"}
        return self.envelope(to, "task_assignment", {**payload, "payload": given})

    def say(self, frame: object) -> None:
        """One frame; what is neither text nor bytes goes as JSON."""
        self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Say a message, and the answer to it; what comes meanwhile is kept."""
        self.say(message)
        return self.answer_to(message["message_id"])

    def answer_to(self, message_id: object) -> dict[str, Any]:
        """The answer to one message: an acknowledgement by its id, or an error that names it."""

        def answers(frame: dict[str, Any]) -> bool:
            if frame.get("status") == "error":
                return frame["payload"]["original_message_id"] == message_id
            return frame.get("status") == "success" and frame["message_id"] == message_id

        return self._first(answers)

    def receive(self, kind: str | None = None, **payload: Any) -> dict[str, Any]:
        """The next message for this peer: of that type, with these members of its payload, where they are given."""

        def wanted(frame: dict[str, Any]) -> bool:
            if "status" in frame or (kind is not None and frame["type"] != kind):
                return False
            return all(frame["payload"].get(name) == value for name, value in payload.items())

        return self._first(wanted)

    def acknowledge(self, message: dict[str, Any], **more: Any) -> None:
        """Say that a message came."""
        self.say({"status": "success", "message_id": message["message_id"], "processed_at": now(), **more})

    def take(self, kind: str | None = None, **payload: Any) -> dict[str, Any]:
        """The next such message, acknowledged."""
        message = self.receive(kind, **payload)
        self.acknowledge(message)
        return message

    def settle(self) -> None:
        """See that the hub answers."""
        ping = self.envelope(self.id, "ping", {"nonce": "n"})
        assert self.ask(ping)["nonce"] == "n"

    def closed(self) -> int:
        """The code with which the hub closes the connection, sooner or later."""
        try:
            while True:
                self.socket.recv(PATIENCE_S)
        except ConnectionClosed as closed:
            return 1006 if closed.rcvd is None else closed.rcvd.code

    def _first(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for kept in self._came:
            if wanted(kept):
                self._came.remove(kept)
                return kept
        until = time.monotonic() + PATIENCE_S
        while True:
            frame: dict[str, Any] = json.loads(self.socket.recv(max(0.0, until - time.monotonic())))
            if wanted(frame):
                return frame
            self._came.append(frame)


@contextlib.contextmanager
def peer(
    hub: HubProcess,
    name: str | None = None,
    *,
    token: str = "",
    headers: dict[str, str] | None = None,
    path: str = PATH,
    host_name: str = "127.0.0.1",
    **how: Any,
) -> Generator[SocketPeer]:
    """A connection to the hub within the block, for the mailbox of `name` where one is named."""
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"ws://{host_name}:{hub.port}{path}" + (f"?agent={quote(name)}" if name else "")
    how = {"address": ("127.0.0.1", hub.port), "max_size": None, "proxy": None, **how}
    with _open(url, additional_headers={**sent, **(headers or {})}, open_timeout=PATIENCE_S, **how) as socket:
        yield SocketPeer(socket, name or "", token)


def joined(hub: HubProcess, *tasks: str) -> tuple[str, str]:
    """A fresh agent without an endpoint: its id, and its own token."""
    name = str(uuid4())
    card = {"id": name, "name": f"agent {name[:8]}", "version": "1.0.0", "supported_tasks": list(tasks) or ["echo"]}
    return name, hub.register(card)["token"]


@contextlib.contextmanager
def working(hub: HubProcess, name: str, token: str = "") -> Generator[list[dict[str, Any]]]:
    """An agent that does its tasks over a WebSocket within the block: the assignments it got.

    It acknowledges each, says that it is half done, and completes it with its input; `fail` fails.
    """
    seen: list[dict[str, Any]] = []

    def work(worker: SocketPeer) -> None:
        with contextlib.suppress(ConnectionClosed):
            for frame in worker.socket:
                message = json.loads(frame)
                if "status" in message:
                    continue
                worker.acknowledge(message)
                if message["type"] == "task_assignment":
                    seen.append(message)
                    _done(worker, message)

    with peer(hub, name, token=token) as worker:
        thread = threading.Thread(target=work, args=(worker,), daemon=True)
        thread.start()
        yield seen
        worker.socket.close()
        thread.join(5)


def _done(worker: SocketPeer, message: dict[str, Any]) -> None:
    asked = message["payload"]
    about = {"task_id": asked["task_id"]}
    worker.say(worker.envelope(message["from"], "status_update", {**about, "status": "in_progress", "progress": 0.5}))
    outcome: dict[str, Any] = {"status": "completed", "result": asked["payload"]}
    if asked["payload"].get("text") == "fail":
        outcome = {"status": "failed", "result": {"error": {"code": "INTERNAL_ERROR", "message": FAILURE}}}
    worker.say(worker.envelope(message["from"], "task_completion", {**about, **outcome}))
