"""The envelope's rules about many messages at once, about sending again, and about who is who."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.end_to_end.every_dialect import asked, enveloped
from tests.end_to_end.world import eventually, fresh, join, tracebacks
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.speaking import StubAgent, json_answer, serving

MANY: Final = 1000
WAITS_S: Final = (1.0, 2.0, 4.0)
PATH: Final = "/a2a/messages"
ONCE: Final = (
    *("INVALID_MESSAGE_FORMAT", "UNSUPPORTED_MESSAGE_TYPE", "INVALID_TASK_TYPE", "TASK_NOT_FOUND"),
    *("AGENT_NOT_FOUND", "CAPABILITY_MISMATCH", "PAYLOAD_VALIDATION_FAILED"),
)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("envelope") / "data", auth="none") as hub:
        yield hub
    assert tracebacks(hub) == []


# -- who is who


@pytest.mark.req("E-04")
def test_a_sender_that_is_no_uuid_must_be_in_the_registry(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    registered = hub.register({"id": fresh("giver"), "name": "Giver", "version": "1.0.0", "supported_tasks": ["x"]})
    for sender in (
        str(uuid4()),
        f"agent-{uuid4()}",
        registered["id"],
        registered["uuid"],
        f"agent-{registered['uuid']}",
    ):
        assert asked("envelope", name, "hello", sender=sender).post(hub).status == 200, sender
    for sender in ("nobody-here", "agent-7", "8a1b6f0e-3c2d-1f5a-9b7c-0d1e2f3a4b01"):
        reply = asked("envelope", name, "hello", sender=sender).post(hub)
        assert (reply.status, reply.json["error_code"]) == (400, "INVALID_MESSAGE_FORMAT"), sender


# -- many at once


@pytest.mark.req("E-33")
def test_a_thousand_assignments_at_once_are_each_done_once(hub: HubProcess) -> None:
    with platform_agent() as worker:
        name, me = join(hub, worker)["id"], str(uuid4())
        requests = [asked("envelope", name, f"number {n}", sender=me) for n in range(MANY)]
        answers = asyncio.run(_all_at_once(hub, [request.body for request in requests]))
        assert {status for status, _ in answers} <= {200, 429}
        taken = {
            request.body["payload"]["task_id"]: request.text
            for request, (status, _) in zip(requests, answers, strict=True)
            if status == 200
        }
        assert taken  # a hub without a limit takes them all
        done: dict[str, Any] = {}
        cursor = 0
        until = time.monotonic() + 60
        while len(done) < len(taken) and time.monotonic() < until:
            box = hub.get(f"{PATH}?after={cursor}&wait=2&agent={me}").json
            cursor = box["cursor"]
            for report in box["messages"]:
                if report["type"] == "task_completion":
                    assert report["payload"]["task_id"] not in done
                    done[report["payload"]["task_id"]] = report["payload"]["result"]["text"]
        assert done == taken
        asked_for = Counter(body["input"]["text"] for path, _, body in worker.requests if path == "/a2a")
        assert asked_for == Counter(taken.values())


async def _all_at_once(hub: HubProcess, bodies: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    """Post all of them, each on a connection of its own that is open before the first is sent."""
    ready = asyncio.Barrier(len(bodies))

    async def post(body: dict[str, Any]) -> tuple[int, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        await ready.wait()
        raw = json.dumps(body).encode()
        head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode() + raw)
        await writer.drain()
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return int(answer[9:12]), json.loads(answer.partition(b"\r\n\r\n")[2])

    return await asyncio.gather(*map(post, bodies))


# -- sending again


class Refusing(StubAgent):
    """An agent that answers each assignment in the same way, and knows when they came."""

    def __init__(self, answer: tuple[int, Mapping[str, str], bytes] | None) -> None:
        super().__init__("envelope")
        self.answer = answer
        self.times: list[float] = []

    def handle(self, _method: str, _path: str, _headers: Mapping[str, str], body: Any) -> Any:
        """Answer; without an answer the connection just ends."""
        if body is not None and body["type"] == "task_assignment":  # The hub looks for its card, too.
            self.times.append(time.monotonic())
        if self.answer is None:
            raise ConnectionError("gone")
        return self.answer

    @property
    def ids(self) -> set[str]:
        """The ids of the assignments that came."""
        return {body["message_id"] for _, _, _, body in self.requests if body and body["type"] == "task_assignment"}


def _refusal(status: int, code: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    payload = {"original_message_id": None, "error_code": code, "error_message": "no"}
    message = enveloped(str(uuid4()), str(uuid4()), "error", payload)
    status_code, _, raw = json_answer({**message, "status": "error", "error": "no", "error_code": code}, status)
    return status_code, {name.replace("_", "-"): value for name, value in headers.items()}, raw


def _begun(
    hub: HubProcess, stack: ExitStack, answer: tuple[int, Mapping[str, str], bytes] | None
) -> tuple[str, Refusing]:
    """A call to an agent that answers so, under way."""
    agent = Refusing(answer)
    stack.enter_context(serving(agent, agent.handle))
    card = {"id": str(uuid4()), "name": "Refuses", "version": "1.0.0", "capabilities": ["analysis"]}
    name = hub.register({**card, "supported_tasks": ["echo"], "endpoint": agent.url})["id"]
    body = {"target_agent_id": name, "skill": "echo", "input": {"text": "hello"}, "options": {"timeout_ms": 60_000}}
    return hub.post("/v1/a2a/call/async", body).json["call_id"], agent


def _ended(hub: HubProcess, call_id: str) -> Any:
    def look() -> Any:
        answer = hub.get(f"/v1/a2a/call/{call_id}/status").json
        return answer if answer["status"] in ("completed", "failed") else None

    return look


@pytest.mark.req("E-21", "E-23")
def test_what_may_pass_is_sent_again_three_times_after_one_two_and_four_seconds(hub: HubProcess) -> None:
    with ExitStack() as stack:
        answers = [_refusal(500, "INTERNAL_ERROR"), _refusal(500, "TIMEOUT"), None]
        calls = [_begun(hub, stack, answer) for answer in answers]
        for call_id, agent in calls:
            assert eventually(_ended(hub, call_id), f"{call_id} ends")["status"] == "failed"
            assert len(agent.times) == 1 + len(WAITS_S)
            waited = [later - sooner for sooner, later in zip(agent.times, agent.times[1:], strict=False)]
            for found, wanted in zip(waited, WAITS_S, strict=True):
                assert wanted - 0.1 <= found <= wanted + 1.0
            assert len(agent.ids) == 1  # the same message each time


@pytest.mark.req("E-21")
def test_a_limit_is_waited_for_as_long_as_it_says(hub: HubProcess) -> None:
    with ExitStack() as stack:
        call_id, agent = _begun(hub, stack, _refusal(429, "RATE_LIMITED", Retry_After="3"))
        eventually(lambda: len(agent.times) == 2, "it is sent again")
        assert agent.times[1] - agent.times[0] >= 2.9
        agent.answer = _refusal(400, "AGENT_NOT_FOUND")
        assert eventually(_ended(hub, call_id), f"{call_id} ends")["status"] == "failed"


@pytest.mark.req("E-22")
@pytest.mark.parametrize("code", ONCE)
def test_what_will_not_pass_is_sent_once(hub: HubProcess, code: str) -> None:
    with ExitStack() as stack:
        call_id, agent = _begun(hub, stack, _refusal(404 if code.endswith("NOT_FOUND") else 400, code))
        assert eventually(_ended(hub, call_id), f"{call_id} ends")["status"] == "failed"
        assert len(agent.times) == 1
