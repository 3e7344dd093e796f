"""A gateway whose card is wrong in every line: it promises streams, HTTP+JSON and gRPC of 1.0, at a host that is none.

All that works is 0.3's `message/send`, where nobody says it is; a stream is answered with a JSON error.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.quirks.speak03 import Profile03, answer03, task03, text03
from tests.support.quirks.words import MISSING, A, Said, card_base, error, hello, is_request
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "liar"


@contextlib.contextmanager
def liar() -> Generator[StubAgent]:
    """The stub."""
    stub = StubAgent(NAME)
    artifact = {"artifactId": A, "parts": [text03(hello(NAME))]}
    profile = Profile03(
        task=lambda user: task03("completed", artifacts=[artifact], history=[user]), stream=lambda user: []
    )

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if (method, path) == ("GET", "/.well-known/agent-card.json"):
            return json_answer(stub.card)
        if (method, path) != ("POST", "/") or not is_request(body):
            return MISSING
        if body["method"] == "message/stream":
            return error(body, -32004, "This operation is not supported")
        return answer03(body, profile) if body["method"] == "message/send" else error(body, -32601, "Method not found")

    with serving(stub, handle):
        port = stub.url.rpartition(":")[2]
        interfaces = [
            {"url": f"http://0.0.0.0:{port}/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": f"0.0.0.0:{port}", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        ]
        stub.card = card_base(NAME, supportedInterfaces=interfaces)
        yield stub
