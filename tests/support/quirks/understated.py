"""ADK: speaks 1.0 and 0.3, though its card names 1.0 alone, at a url without its final slash.

The same text stands in an artifact and in the history, there without ids; metadata is large; 0.3 errors have a null
beside them, and a 0.3 method that comes with `A2A-Version: 1.0` breaks it.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.quirks.speak03 import Profile03, answer03, artifact03, status03, task03, text03
from tests.support.quirks.speak10 import METHODS, Profile10, answer10, status10, submitted10, task10
from tests.support.quirks.words import MISSING, A, C, M, Said, T, card_base, error, hello, is_request
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "understated"
METADATA: Final = {f"adk_{word}": f"{word}-1" for word in ("app_name", "user_id", "session_id", "invocation_id")}
ARTIFACT10: Final = {"artifactId": A, "parts": [{"text": hello(NAME)}], "metadata": METADATA}
SAID10: Final = {"messageId": M, "role": "ROLE_AGENT", "parts": [{"text": hello(NAME)}], "metadata": METADATA}
ARTIFACT03: Final = {"artifactId": A, "parts": [text03(hello(NAME))], "metadata": METADATA}
SAID03: Final = {"kind": "message", "messageId": M, "role": "agent", "parts": [text03(hello(NAME))]}

IN_10: Final = Profile10(
    task=lambda user: task10("COMPLETED", artifacts=[ARTIFACT10], history=[user, SAID10], metadata=METADATA),
    stream=lambda user: [
        submitted10(user),
        status10("WORKING"),
        status10("WORKING", message=SAID10),
        {"artifactUpdate": {"taskId": T, "contextId": C, "artifact": ARTIFACT10, "lastChunk": True}},
        status10("COMPLETED"),
    ],
)
IN_03: Final = Profile03(
    task=lambda user: task03("completed", artifacts=[ARTIFACT03], history=[user, SAID03], metadata=METADATA),
    stream=lambda user: [
        task03("submitted", history=[user]),
        status03("working"),
        status03("working", message=SAID03),
        artifact03(ARTIFACT03, lastChunk=True),
        status03("completed", final=True),
    ],
    about_errors={"data": None},
    bad_params=-32600,
)


@contextlib.contextmanager
def understated() -> Generator[StubAgent]:
    """The stub."""
    stub = StubAgent(NAME)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if (method, path) == ("GET", "/.well-known/agent-card.json"):
            return json_answer(stub.card)
        if (method, path) != ("POST", "/") or not is_request(body):
            return MISSING
        if body["method"] in METHODS:
            return answer10(body, headers, IN_10)
        if headers.get("a2a-version") == "1.0":
            return error(body, -32603, "Internal error", data=None)
        return answer03(body, IN_03)

    with serving(stub, handle):
        interface = {"url": stub.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        stub.card = card_base(NAME, supportedInterfaces=[interface])
        yield stub
