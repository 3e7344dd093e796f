"""Servers that speak A2A 0.3 over JSON-RPC and nothing else.

manyparts03   Strands   one artifact in many parts, some of them empty; times with an offset
statusonly03  BeeAI     status.message alone; streams without a task; card url without its slash, no tags
wholetask03   CrewAI    no times at all; a stream that is one whole task
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any

from tests.support.quirks.speak03 import Profile03, answer03, artifact03, status03, task03, text03
from tests.support.quirks.words import AT_OFFSET, MISSING, A, C, M, Said, T, card_base, hello, is_request, skill
from tests.support.speaking import StubAgent, json_answer, serving


@contextlib.contextmanager
def manyparts03() -> Generator[StubAgent]:
    """Strands: the text is cut into parts as the model's chunks came."""
    pieces = ["hello ", "from manyparts03", ""]
    artifact = {"artifactId": A, "name": "agent_response", "parts": [text03(piece) for piece in pieces]}
    chunks = [{"artifactId": A, "name": "agent_response", "parts": [text03(piece)]} for piece in pieces]
    profile = Profile03(
        task=lambda user: task03("completed", at=AT_OFFSET, artifacts=[artifact], history=[user]),
        stream=lambda user: [
            task03("submitted", at=AT_OFFSET, history=[user]),
            artifact03(chunks[0], append=False),
            artifact03(chunks[1], append=True),
            artifact03(chunks[2], append=True, lastChunk=True),
            status03("completed", final=True, at=AT_OFFSET),
        ],
    )
    with _serving03("manyparts03", profile) as stub:
        yield stub


@contextlib.contextmanager
def statusonly03() -> Generator[StubAgent]:
    """BeeAI: the answer is the status message; its streams begin without a task."""
    name = "statusonly03"
    said = {
        "kind": "message",
        "messageId": M,
        "taskId": T,
        "contextId": C,
        "role": "agent",
        "parts": [text03(hello(name))],
    }
    profile = Profile03(
        task=lambda user: task03("completed", {"message": said}, history=[user]),
        stream=lambda user: [
            status03("submitted"),
            status03("working"),
            status03("completed", final=True, message=said),
        ],
    )
    with _serving03(name, profile, slash="", skills=[skill(name, tags=[])]) as stub:
        yield stub


@contextlib.contextmanager
def wholetask03() -> Generator[StubAgent]:
    """CrewAI: no times; the stream is the finished task."""
    name = "wholetask03"
    said = {"kind": "message", "messageId": M, "role": "agent", "parts": [text03(hello(name))]}
    artifact = {"artifactId": A, "name": "result", "parts": [text03(hello(name))]}

    def task(user: dict[str, Any]) -> dict[str, Any]:
        return task03("completed", at=None, artifacts=[artifact], history=[user, said])

    with _serving03(name, Profile03(task=task, stream=lambda user: [task(user)])) as stub:
        yield stub


@contextlib.contextmanager
def _serving03(name: str, profile: Profile03, slash: str = "/", **card: Any) -> Generator[StubAgent]:
    stub = StubAgent(name)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if (method, path) == ("GET", "/.well-known/agent-card.json"):
            return json_answer(stub.card)
        if (method, path) == ("POST", "/") and is_request(body):
            return answer03(body, profile)
        return MISSING

    with serving(stub, handle):
        stub.card = card_base(
            name, protocolVersion="0.3.0", url=f"{stub.url}{slash}", preferredTransport="JSONRPC", **card
        )
        yield stub
