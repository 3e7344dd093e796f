"""One pair: a framework's client sends one message to a framework's agent, and says what it understood."""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final, Self

from tests.interop.frameworks import CLIENTS, SERVERS, Framework
from tests.support.sdk_caller import Dialogue

LONGEST: Final = 130
_ADDRESS: Final = re.compile(r"http://[\w.]+:\d+[^\s'\",)\]]*")


class Clients:
    """The clients' programs, each started when it is first needed, all ended together."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._programs: dict[Framework, Dialogue] = {}

    def fault(self, client: Framework, server: Framework, url: str) -> str:
        """What went wrong when the client asked the agent at that address; empty where nothing did."""
        if client not in self._programs:
            self._programs[client] = self._running.enter_context(Dialogue(client.peer, client.program))
        text = f"hello {SERVERS.index(server)}-{CLIENTS.index(client)} there"
        return fault_in(self._programs[client].say({"url": url, "text": text}), server, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def fault_in(said: Mapping[str, Any], server: Framework, text: str) -> str:
    """What is wrong with what a client said: it must be the agent's answer, whole, and once."""
    if "error" in said:
        return _ADDRESS.sub("URL", said["error"]).partition(" For more information")[0][:LONGEST].strip()
    understood: str = said["text"]
    if not understood.strip():
        return "an empty answer"
    if understood.count(text) > 1:
        return "the answer more than once"
    if not understood.startswith(server.answer) or text not in understood:
        return "another text than the answer"
    return ""
