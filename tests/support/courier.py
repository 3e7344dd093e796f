"""A courier on real sockets without a hub around it, and an agent that answers each request as a test says."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

import msgspec

from dragoman.delivery.courier import HttpCourier
from dragoman.delivery.over_http import Wire
from dragoman.delivery.repeats import WAITS_S
from dragoman.delivery.tries import Retries
from dragoman.dialects import DIALECTS
from dragoman.model.agent import Agent, AgentCard, Endpoint, Skill
from dragoman.model.call import AdmittedCall, Caller, OpenedCall
from dragoman.model.fit import Feature
from dragoman.model.http import NO_HEADERS, Headers
from dragoman.model.operations import SendTask, Wait
from dragoman.net.addresses import AddressRule
from dragoman.net.client import Client
from dragoman.net.tls import ClientIdentity
from dragoman.ports.attempts import Attempts
from dragoman.ports.clock import Clock
from tests.contracts.samples import new_task

DONE: Final = {"status": "completed", "result": {"ok": True}}
SILENCE: Final = b""  # the connection is closed without a word
Said = tuple[int, Mapping[str, str], Any] | bytes


class ScriptedAgent:
    """An agent that gives its answers in their order, and the last of them for ever."""

    def __init__(self, *answers: Said) -> None:
        self.answers: list[Said] = list(answers)
        self.requests: list[tuple[Mapping[str, str], Any]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/a2a"

    @property
    def keys(self) -> list[str]:
        """The key under which each request came."""
        return [headers["idempotency-key"] for headers, _ in self.requests]

    async def listen(self) -> None:
        """Take connections from now on."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.requests.append((headers, json.loads(body or b"{}")))
                said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if isinstance(said, bytes):
                    writer.write(said)
                    await writer.drain()
                    return
                writer.write(_worded(*said))


class NoCredential:
    """Agents that want none."""

    identities: Mapping[str, ClientIdentity] = {}

    def is_ready(self, agent: Agent) -> bool:
        return True

    async def ready(self, agent: Agent) -> None:
        return None

    async def renewed(self, agent: Agent, refused: Headers) -> bool:
        return False

    def shown(self, agent: Agent, url: str, *, subject: str, chain: tuple[str, ...], by_hub: bool) -> Headers:
        return NO_HEADERS

    def signature(self, agent: Agent, call_id: str, body: bytes) -> Headers:
        return NO_HEADERS


class NoMail:
    """Nobody has a mailbox."""

    async def put_mail(self, tenant: str, box: str, body: bytes) -> None:
        raise AssertionError("this agent has a URL")

    async def read_mail(self, tenant: str, box: str, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        return ()

    async def next_mail(self, tenant: str, box: str, after: int) -> tuple[int, bytes] | None:
        return None

    async def drop_mail(self, tenant: str, box: str, numbers: object) -> None:
        return None


@contextlib.asynccontextmanager
async def courier_to(agent: ScriptedAgent, clock: Clock, attempts: Attempts) -> AsyncGenerator[HttpCourier]:
    """A courier with the schedule of the hub."""
    client = Client(clock=clock, rule=AddressRule.of(("127.0.0.1/32",)))
    try:
        yield HttpCourier(
            wire=Wire(client=client, max_answer=65_536),
            boxes=NoMail(),
            credentials=NoCredential(),
            clock=clock,
            dialects=DIALECTS,
            hub_url="http://hub.example",
            hub_id="8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02",
            retries=Retries(waits_s=WAITS_S, clock=clock, attempts=attempts),
        )
    finally:
        await client.close()
        await agent.close()


def opened_call(
    url: str,
    clock: Clock,
    *,
    idempotent: bool = False,
    at_most_once: bool = False,
    streams: bool = False,
    timeout_s: float = 300.0,
    dialect: str = "platform",
) -> OpenedCall:
    """A call of an agent at that URL, as the hub opens it."""
    features = DIALECTS[dialect].features - (frozenset() if streams else {Feature.STREAM, Feature.SUBSCRIBE})
    skill = Skill(id="echo", name="echo", idempotent=idempotent)
    endpoint = Endpoint(dialect=dialect, url=url, features=features)
    task = new_task(clock, skill="echo")
    changes: dict[str, Any] = {"at_most_once": at_most_once, "wait": Wait.STREAM if streams else Wait.END}
    asked: SendTask = msgspec.structs.replace(task.asked, **changes)
    card = AgentCard(id="agt_scripted", name="Scripted", skills=(skill,), endpoints=(endpoint,))
    now = clock.now()
    agent = Agent(
        card=card, uuid=clock.new_id("uuid-"), tenant="acme", owner_id="alice", registered_at=now, updated_at=now
    )
    task = msgspec.structs.replace(task, asked=asked, agent_id=card.id)
    call = AdmittedCall(
        caller=Caller(tenant="acme", id="alice"),
        operation=asked,
        agent=agent,
        endpoint=endpoint,
        skill=skill,
        message=asked.message,
        task=task,
        timeout_s=timeout_s,
        deadline=clock.monotonic() + timeout_s,
    )
    return OpenedCall(call=call, task=task)


def _worded(status: int, headers: Mapping[str, str], body: Any) -> bytes:
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(said)}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + said
