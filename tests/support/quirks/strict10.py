"""Servers that speak A2A 1.0 and nothing else: the official SDK's own, and two that put the answer elsewhere.

strict10       a2a-sdk 1.3    artifacts
statusonly10   AG2            status.message alone; a card without description, a skill without tags
historyonly10  MAF            the history alone
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any

from tests.support.quirks.speak10 import Profile10, answer10, status10, submitted10, task10
from tests.support.quirks.words import MISSING, A, C, M, Said, T, card_base, hello, is_request, skill
from tests.support.speaking import StubAgent, json_answer, serving


@contextlib.contextmanager
def strict10() -> Generator[StubAgent]:
    """The official SDK's server."""
    artifact = {"artifactId": A, "name": "answer", "parts": [{"text": hello("strict10")}]}
    update = {"taskId": T, "contextId": C, "artifact": artifact, "lastChunk": True}
    profile = Profile10(
        task=lambda user: task10("COMPLETED", artifacts=[artifact], history=[user]),
        stream=lambda user: [
            submitted10(user),
            status10("WORKING"),
            {"artifactUpdate": update},
            status10("COMPLETED"),
        ],
    )
    with _serving10("strict10", profile, {}) as stub:
        yield stub


@contextlib.contextmanager
def statusonly10() -> Generator[StubAgent]:
    """AG2: the answer is the status message, and nowhere else."""
    name = "statusonly10"
    said = {"messageId": M, "contextId": C, "taskId": T, "role": "ROLE_AGENT", "parts": [{"text": hello(name)}]}
    profile = Profile10(
        task=lambda user: task10("COMPLETED", {"message": said}),
        stream=lambda user: [
            {"task": task10("SUBMITTED")},
            status10("WORKING"),
            status10("COMPLETED", message=said),
        ],
    )
    with _serving10(name, profile, {"description": None, "skills": [skill(name, tags=None)]}) as stub:
        yield stub


@contextlib.contextmanager
def historyonly10() -> Generator[StubAgent]:
    """MAF: the answer is the last turn of the history; in a stream a working status has it, and the end is empty."""
    name = "historyonly10"
    said = {"messageId": M, "contextId": C, "taskId": T, "role": "ROLE_AGENT", "parts": [{"text": hello(name)}]}
    profile = Profile10(
        task=lambda user: task10("COMPLETED", history=[user, {**said, "metadata": {}}]),
        stream=lambda user: [
            submitted10(user),
            status10("SUBMITTED"),
            status10("WORKING"),
            status10("WORKING", message=said),
            status10("COMPLETED"),
        ],
    )
    with _serving10(name, profile, {}) as stub:
        yield stub


@contextlib.contextmanager
def _serving10(name: str, profile: Profile10, card: dict[str, Any]) -> Generator[StubAgent]:
    stub = StubAgent(name)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if (method, path) == ("GET", "/.well-known/agent-card.json"):
            return json_answer(stub.card)
        if (method, path) == ("POST", "/") and is_request(body):
            return answer10(body, headers, profile)
        return MISSING

    with serving(stub, handle):
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        stub.card = card_base(name, supportedInterfaces=[interface], **card)
        yield stub
