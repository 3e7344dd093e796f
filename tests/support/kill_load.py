"""The load of the kill harness: calls that come when they come, whatever became of the ones before.

Most are accepted calls that are called back; they carry an `Idempotency-Key` and are repeated under it until they are
answered, and one in twenty is cancelled soon after. The others are waited for; half of them have a key, the rest is
sent once. A quarter goes to the slow agent. What was answered is kept in the ledger, to be held against the hub's own
account.
"""

import asyncio
import json
import random
from collections.abc import Mapping
from typing import Any, Final

from tests.support.kill_agents import QUICK, SLOW

ACCEPTED_PER_S: Final = 200.0
WAITING_PER_S: Final = 50.0
PER_S: Final = ACCEPTED_PER_S + WAITING_PER_S
CANCELLED: Final = 0.05
CANCELLED_AFTER_S: Final = 0.3  # at most
KEYED: Final = 0.5  # of those that are waited for
SLOW_SHARE: Final = 0.25
ATTEMPTS: Final = 12
WAIT_S: Final = 0.05
ATTEMPT_S: Final = 60.0  # on a machine that does much else, too
RECENT: Final = 20  # keyed calls that are repeated after a restart although they were answered


class Sent:
    """One call of the loader, and every answer it got."""

    def __init__(self, number: int, key: str | None, agent: str, *, accepted: bool) -> None:
        self.number = number
        self.key = key
        self.agent = agent
        self.accepted = accepted  # and called back, not waited for
        self.answers: list[dict[str, Any]] = []  # of status 200 or 202: the acknowledgements
        self.cut_off = 0
        self.cancel_sent = False
        self.cancelled = False  # the hub has said so

    @property
    def input(self) -> dict[str, Any]:
        """What is asked, and so what must be answered."""
        return {"number": self.number, "said": "x" * (self.number % 97)}


class Ledger:
    """All calls, and what a loader saw that no caller may see."""

    def __init__(self) -> None:
        self.calls: list[Sent] = []
        self.refused = 0
        self.complaints: list[str] = []

    def acknowledged(self) -> list[Sent]:
        """The calls that were answered with success."""
        return [call for call in self.calls if call.answers]


class Client:
    """Requests to one port of this machine, over connections that are used again while they last."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.in_flight = 0
        self.broken_off = 0  # requests that were sent, and whose connection broke

    async def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> tuple[int, Any]:
        """Status and body; OSError or EOFError when the connection breaks, TimeoutError after a minute."""
        payload = b"" if body is None else json.dumps(body).encode()
        headers = {
            "Host": f"127.0.0.1:{self._port}",
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(payload)),
        }
        if key is not None:
            headers["Idempotency-Key"] = key
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        async with asyncio.timeout(ATTEMPT_S):
            return await self._exchange(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + payload)

    def start_anew(self) -> None:
        """Drop the connections that nobody uses, and count again what breaks off."""
        self.broken_off = 0
        while self._idle:
            self._idle.pop()[1].close()

    async def _exchange(self, request: bytes) -> tuple[int, Any]:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.in_flight += 1
        try:
            writer.write(request)
            status, headers = await _read_head(reader)
            said = await reader.readexactly(int(headers["content-length"]))
        except (OSError, EOFError):
            self.broken_off += 1
            writer.close()
            raise
        except asyncio.CancelledError:
            writer.close()
            raise
        finally:
            self.in_flight -= 1
        self._idle.append((reader, writer))
        return status, json.loads(said)


class Load:
    """Sends calls from `run` until `stop`."""

    def __init__(self, client: Client, chance: random.Random, name: str, callback_url: str) -> None:
        self.ledger = Ledger()
        self._callback_url = callback_url
        self._client = client
        self._chance = chance
        self._name = name
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Send no new calls; those under way go on."""
        self._stopped.set()

    async def run(self) -> None:
        """Send calls at the times drawn; returns when the last of them is answered or given up."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        async with asyncio.TaskGroup() as calls:
            while not self._stopped.is_set():
                due += self._chance.expovariate(PER_S)
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                calls.create_task(self._call(self._draw()))

    async def repeat_answered(self) -> None:
        """Send the last answered keyed calls once more: they must be given the answer they had."""
        answered = [call for call in self.ledger.calls[-1000:] if call.key is not None and call.answers]
        await asyncio.gather(*(self._attempt(call) for call in answered[-RECENT:]))

    def _draw(self) -> Sent:
        number = len(self.ledger.calls)
        accepted = self._chance.random() < ACCEPTED_PER_S / PER_S
        key = f"{self._name}-{number}" if accepted or self._chance.random() < KEYED else None
        agent = SLOW if self._chance.random() < SLOW_SHARE else QUICK
        call = Sent(number, key, agent, accepted=accepted)
        self.ledger.calls.append(call)
        return call

    async def _call(self, call: Sent) -> None:
        for attempt in range(ATTEMPTS if call.key is not None else 1):
            if attempt:
                await asyncio.sleep(self._chance.uniform(0, WAIT_S * 2 ** min(attempt - 1, 4)))
            if await self._attempt(call):
                break
        if call.accepted and call.answers and self._chance.random() < CANCELLED:
            await asyncio.sleep(self._chance.uniform(0, CANCELLED_AFTER_S))
            await self._cancel(call)

    async def _attempt(self, call: Sent) -> bool:
        body: dict[str, Any] = {"target_agent_id": call.agent, "skill": "echo", "input": call.input}
        path = "/v1/a2a/call"
        if call.accepted:
            path = "/v1/a2a/call/async"
            body["callback"] = {"url": self._callback_url}
        try:
            status, said = await self._client.ask("POST", path, body, call.key)
        except TimeoutError:
            self.ledger.complaints.append(f"call {call.number} was not answered within {ATTEMPT_S:g} s")
            return False
        except (OSError, EOFError):
            call.cut_off += 1
            return False
        if status == (202 if call.accepted else 200):
            call.answers.append(said)
            return True
        # A hub that is busy may say so; it never was anything else's fault here.
        if status == 503:
            self.ledger.refused += 1
        else:
            self.ledger.complaints.append(f"call {call.number} was answered {status}: {said.get('error')}")
        return False

    async def _cancel(self, call: Sent) -> None:
        """Once: what a hub that is killed meanwhile made of it is seen by the call."""
        call.cancel_sent = True
        call_id = call.answers[0]["call_id"]
        try:
            status, said = await self._client.ask("POST", f"/v1/a2a/call/{call_id}/cancel", {})
        except TimeoutError:
            self.ledger.complaints.append(f"the cancel of call {call.number} was not answered")
        except (OSError, EOFError):
            return
        else:
            call.cancelled = status == 200
            if status not in (200, 409, 503):
                self.ledger.complaints.append(f"the cancel of call {call.number} was answered {status}: {said}")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split(" ", 2)[1]), headers
