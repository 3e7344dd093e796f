"""An agent's own server answers at its root as a hub does at that agent's base: the same requests, the same answers."""

import difflib
import http.client
import itertools
import json
import time
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.sdk.testing.hubs import hub_in_thread
from tests.sdk.root_requests import TALKS, Ask, Script, alike, looks, rubbish, told
from tests.support.agent_server import AgentServer, running_server
from tests.support.served_agent import AGENT_ID, make_agent

PATIENCE_S = 20.0
_runs = itertools.count(1)


class Place:
    """Where the agent is: below `base` of a server."""

    def __init__(self, url: str, base: str) -> None:
        self._where = urlsplit(url)
        self._base = base
        self.uuid = self.ask("GET", base + "/agent-card.json", None, {})[2]["id"]

    def goes(self, script: Script, run: int) -> list[Any]:
        """What each request of a script is answered with, what may differ taken out."""
        seen: dict[str, Any] = {"uuid": self.uuid, "run": run, "caller": str(UUID(int=2**96 + run, version=4))}
        answers: list[Any] = []
        for ask in script:
            path = ask.path.replace("{task}", str(seen.get("task"))).replace("{caller}", seen["caller"])
            path = path if ask.at_hub else self._base + path
            body = None if ask.body is None else ask.body(seen)
            status, headers, answer, raw = self._until(ask, path, body)
            if ask.keeps is not None:
                seen["task"] = ask.keeps(answer)
            kind = headers.get("content-type", "")
            shown: Any = told(raw, self._base) if kind.startswith("text/event-stream") else alike(raw, self._base)
            answers.append([ask.method, ask.path, status, kind, shown])
        return answers

    def ask(self, method: str, path: str, body: Any, headers: Any) -> tuple[int, dict[str, str], Any, bytes]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(self._where.hostname or "", self._where.port, timeout=PATIENCE_S)
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers))
            reply = connection.getresponse()
            raw = reply.read()
            answered = {name.lower(): value for name, value in reply.getheaders()}
            is_json = "json" in answered.get("content-type", "")
            return reply.status, answered, json.loads(raw) if is_json and raw else None, raw
        finally:
            connection.close()

    def _until(self, ask: Ask, path: str, body: Any) -> tuple[int, dict[str, str], Any, bytes]:
        until = time.monotonic() + PATIENCE_S
        while True:
            seen = self.ask(ask.method, path, body, ask.headers)
            if ask.until is None or ask.until(seen[2]):
                return seen
            assert time.monotonic() < until, f"{path}: {seen[3]!r}"
            time.sleep(0.01)  # such clients poll


class Places:
    def __init__(self, hub: Place, server: Place, process: AgentServer) -> None:
        self.hub = hub
        self.server = server
        self.process = process

    def agree(self, script: Script) -> None:
        run = next(_runs)
        at_hub, at_root = self.hub.goes(script, run), self.server.goes(script, run)
        for hub, root in zip(at_hub, at_root, strict=True):
            if hub != root:
                first, second = json.dumps(hub, indent=1), json.dumps(root, indent=1)
                raise AssertionError("\n".join(difflib.ndiff(first.splitlines(), second.splitlines())))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Generator[Places]:
    with hub_in_thread() as hub, running_server(tmp_path_factory.mktemp("served") / "data") as server:
        hub.add(make_agent())
        yield Places(Place(hub.url, f"/agents/{AGENT_ID}"), Place(server.url, ""), server)


def every(table: Any) -> Any:
    return pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)(table)


@pytest.mark.req("X-22")
@every
def test_cards_and_status_are_the_same(places: Places, dialect: Dialect) -> None:
    script = looks(dialect)
    places.agree(script)
    shown = {path: status for _, path, status, _, _ in places.server.goes(script, 0) if "agent" in path or path == "/"}
    assert {status for path, status in shown.items() if "extended" not in path} == {200}, shown


@pytest.mark.req("X-22")
@every
def test_what_makes_no_sense_is_refused_in_the_same_words(places: Places, dialect: Dialect) -> None:
    places.agree(rubbish(dialect))


@pytest.mark.req("X-22")
@pytest.mark.parametrize(
    ("slug", "talk"), [(slug, talk) for slug, talks in TALKS.items() for talk in talks], ids=lambda each: str(each)
)
def test_a_conversation_goes_the_same_way(places: Places, slug: str, talk: str) -> None:
    places.agree(TALKS[slug][talk])
