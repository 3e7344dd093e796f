"""The published SDKs' own clients as callers: each is a process of a stranger's program, told what to do line by line.

`SdkCaller` offers what the stub callers offer, so that a test can put either in the other's place. The programs and
their language are in `tests/peers/a2a_client_v10.py` and `a2a_client_v03.py`.
"""

import itertools
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Generator
from typing import IO, Any, Final, Self
from urllib.parse import quote

import msgspec

from tests.support.callers import a2a_v10
from tests.support.kind_caller import seen_of as seen_of_kind
from tests.support.kind_parts import parts_of as parts_of_kind
from tests.support.peers import RECIPES, peer_python
from tests.support.speaking import Content, Seen

PATIENCE_S: Final = 60.0
_numbers = itertools.count(1)


class SdkClient(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which published software talks to an agent."""

    peer: str
    program: str
    binding: str
    words: str  # the version that its users write and read: 1.0 or 0.3
    mount: str = ""  # below the agent's base, where its card is fetched

    def __str__(self) -> str:
        """Its name in a test's."""
        return f"{self.peer} {self.binding}{f' at {self.mount}' if self.mount else ''}"

    @property
    def wire(self) -> str:
        """The version that it speaks: 1.0 or 0.3."""
        return "0.3" if self.mount else self.words


CLIENTS: Final = tuple(
    SdkClient(peer=peer, program=program, binding=binding, words=words, mount=mount)
    for peer, program, words, mount in (
        ("a2a-1.3.0", "a2a_client_v10.py", "1.0", ""),
        ("a2a-1.3.0", "a2a_client_v10.py", "1.0", "a2a-0.3/"),  # where the card is one of 0.3 alone
        ("a2a-0.3.26", "a2a_client_v03.py", "0.3", ""),
    )
    for binding in ("JSONRPC", "HTTP+JSON")
)


class Dialogue:
    """A peer's program that answers each line with a line; started when it is needed, and again when it has died."""

    def __init__(self, peer: str, program: str, *arguments: str) -> None:
        self._command = [str(peer_python(peer)), str(RECIPES / program), *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None
        self._heard = b""

    def say(self, step: dict[str, Any]) -> dict[str, Any]:
        """One step, and what it led to. Fails when the program ends over it, with what the program said."""
        return self._answer(self._told(step), step)

    def live(self, step: dict[str, Any]) -> Generator[dict[str, Any]]:
        """One step that tells as it goes: its events, then what it led to. Closed before that, it ends the program."""
        process, over = self._told({**step, "live": True}), False
        try:
            while not over:
                answer = self._answer(process, step)
                over = "event" not in answer
                yield answer
        finally:
            if not over:
                process.kill()
                self.close()

    def close(self) -> None:
        """Let it end; harmless when it has."""
        process, self._process = self._process, None
        if process is None:
            return
        for file in (process.stdin, process.stdout, self._complaints):
            if file is not None:
                file.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _told(self, step: dict[str, Any]) -> subprocess.Popen[bytes]:
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps(step).encode() + b"\n")
        process.stdin.flush()
        return process

    def _answer(self, process: subprocess.Popen[bytes], step: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._line(process, step))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        self._heard = b""
        # A file, not a pipe: nobody reads it meanwhile, and a full pipe would stop the program.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints
        )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], step: dict[str, Any]) -> bytes:
        assert process.stdout is not None
        until = time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                ready = selector.select(max(0.0, until - time.monotonic()))
                said = os.read(process.stdout.fileno(), 65536) if ready else b""
                if not said:
                    complaint = self._said()
                    self.close()
                    raise AssertionError(f"{step} was not answered. The program said: {complaint}")
                self._heard += said
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def _said(self) -> str:
        assert self._complaints is not None
        self._complaints.seek(0)
        return self._complaints.read().decode(errors="replace").strip()


class SdkCaller:
    """A published client at a hub."""

    def __init__(self, client: SdkClient, hub_url: str, token: str = "") -> None:
        self.client = client
        self.slug = f"a2a-{client.wire}"
        self._hub = hub_url
        self._dialogue = Dialogue(client.peer, client.program, "--binding", client.binding, "--token", token)

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Send a message in a context of its own."""
        message = self.message(content) | {"metadata": {"dragoman": {"timeout_ms": timeout_ms}}}
        return self._seen(self.say(agent, "send", message=message, wait=wait))

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """A further message: into the task if it asks for input, else into its context."""
        into = {"taskId": first.task_id} if first.state == "input-required" else {"contextId": first.context_id}
        return self._seen(self.say(agent, "send", message=self.message(content) | into))

    def get(self, agent: str, first: Seen) -> Seen:
        """The task again."""
        return self._seen(self.say(agent, "get", id=first.task_id))

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel the task."""
        return self._seen(self.say(agent, "cancel", id=first.task_id))

    def say(self, agent: str, do: str, **more: Any) -> dict[str, Any]:
        """One step with an agent, and all that the program tells of it."""
        return self._dialogue.say({"url": self._base(agent), "do": do, **more})

    def live(self, agent: str, do: str, **more: Any) -> Generator[dict[str, Any]]:
        """One step with an agent, told as it goes."""
        return self._dialogue.live({"url": self._base(agent), "do": do, **more})

    def message(self, content: Content) -> dict[str, Any]:
        """A message of its user, under a name of its own."""
        name = f"message-{os.getpid()}-{next(_numbers)}"
        if self.client.words == "1.0":
            return {"messageId": name, "role": "ROLE_USER", "parts": a2a_v10.parts_of(content)}
        return {"kind": "message", "messageId": name, "role": "user", "parts": parts_of_kind(content)}

    def close(self) -> None:
        """End the program."""
        self._dialogue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _base(self, agent: str) -> str:
        return f"{self._hub}/agents/{quote(agent, safe='')}/{self.client.mount}"

    def _seen(self, said: dict[str, Any]) -> Seen:
        if "raised" in said:
            return Seen(error=said.get("code", said["raised"]), message=said["message"], raw=said)
        if "task" in said:
            result = said["task"]
        else:
            (result,) = said["events"]
        return a2a_v10.seen_of(result, 200, said) if self.client.words == "1.0" else seen_of_kind(result, 200, said)
