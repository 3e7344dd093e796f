"""Translation adds nothing: what was authorised is what arrives, as one message, at the place that was registered.

Every dialect's request to every dialect's agent with texts that mean something to somebody on the way; then the ways
back. The stub agents keep each request as it came.
"""

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
import pytest

from dragoman.dialects.dialect import Verb
from dragoman.model.content import Message, Role, Text
from dragoman.model.events import Remote
from dragoman.model.json import is_object
from dragoman.model.operations import SendTask
from tests.dialects.loops import AGENT, WIRES, Wire, opened, outgoing_of
from tests.end_to_end.every_dialect import SLUGS, Asked, Everyone, asked
from tests.end_to_end.world import eventually, fresh, join, tracebacks
from tests.security.payloads import CASES, PAYLOADS
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import platform_agent
from tests.support.security_figures import Figures
from tests.support.speaking import Content

VERBS: Final = (Verb.SEND, Verb.STREAM, Verb.GET, Verb.CANCEL, Verb.SUBSCRIBE)
FIELDS: Final = ("text", "context", "message id", "task id", "metadata", "file name", "media type", "title", "trace")
SHORT: Final = 2  # payloads of each pair in the short set, others for each


# -- without a hub: the requests themselves


def _requests(wire: Wire, value: str) -> Iterator[tuple[str, str, dict[bytes, bytes], bytes]]:
    """Every request that an outbound half makes with this text in all places where a caller or an agent may put one."""
    message = Message(id=value, role=Role.USER, parts=(Text(text=value),), metadata={value: value})
    for verb in VERBS:
        said = SendTask(
            message=message,
            agent=AGENT,
            skill=value,
            alias=value,
            context_id=value,
            title=value,
            extensions=(),
            metadata={value: value},
            request_id=value,
        )
        # The id of a task is the hub's own; that of a message that continues one is not.
        for asked_for in (said, msgspec.structs.replace(said, continues="task-1")):
            task = msgspec.structs.replace(opened(asked_for), remote=Remote(task_id=value, context_id=value))
            request = wire.dialect.ask(outgoing_of(wire, asked_for, verb, task))
            if request is not None:
                yield f"{verb} {asked_for.continues}", request.url, dict(request.headers), request.body


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_no_text_leaves_its_place_in_a_request(wire: Wire, figures: Figures) -> None:
    plain = {name: (url, headers) for name, url, headers, _ in _requests(wire, "plain-id-1")}
    tried = 0
    for value in PAYLOADS:
        for name, url, headers, body in _requests(wire, value):
            tried += 1
            expected_url, expected_headers = plain[name]
            # The same place, but for the one segment that the text is.
            was, is_ = urlsplit(expected_url), urlsplit(url)
            assert (is_.scheme, is_.netloc, is_.query, is_.fragment) == (was.scheme, was.netloc, was.query, ""), value
            segments = zip(was.path.split("/"), is_.path.split("/"), strict=True)
            for segment, now in segments:
                assert now == segment or unquote(now) == segment.replace("plain-id-1", value), value
                assert now not in (".", ".."), value
            assert re.fullmatch(r"[!-~]+", url), value
            assert headers.keys() == expected_headers.keys(), value
            for content in headers.values():
                assert re.fullmatch(rb"[ -~]*", content), value
            if body:
                assert isinstance(json.loads(body), dict)
    figures("S8", outgoing_requests=tried)


# -- through a hub, pair by pair


class World:
    """A hub and an agent of each dialect that says again what it is told."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        self.hub = hub
        self.everyone = Everyone(hub, stack)
        self.caller = hub.new_key("a2a:call")
        self.headers: dict[tuple[str, str], set[str]] = {}  # that a plain call has, by the target's dialect
        self.sends: dict[tuple[str, str], int] = {}

    def carried(self, source: str, target: str, field: str, value: str) -> tuple[Reply, list[Any]]:
        """Send it, and what reached the agent meanwhile."""
        agent = self.everyone.agent(target)
        before = len(agent.stub.requests)
        known = {item["id"] for item in self._calls()}
        request = placed(asked(source, agent.id, "plain words", sender=fresh("s")), source, field, value)
        reply = request.post(self.hub, self.caller if source != "envelope" else "")
        if reply.status < 400 and b'"error"' not in reply.body:

            def ended() -> bool:
                news = [item for item in self._calls() if item["id"] not in known]
                return all(item["status"] not in ("submitted", "working", "queued", "running") for item in news)

            eventually(ended, f"{source} to {target}: the call is over")
        return reply, agent.stub.requests[before:]

    def _calls(self) -> list[Any]:
        items: list[Any] = self.hub.get("/v1/calls?limit=20").json["items"]
        return items


def placed(request: Asked, source: str, field: str, value: str) -> Asked:
    """A request with a text in one of its places; where the dialect has no such place, in its words."""
    body: dict[str, Any] = json.loads(json.dumps(request.body))
    params: dict[str, Any] = body.get("params", body)
    message: dict[str, Any] = params.get("message", {})
    headers = dict(request.headers)
    match field, source:
        case "context", "platform":
            body["context"] = {"conversation_id": value}
        case "context", "a2a-1.0" | "a2a-0.3" | "dotted":
            message["contextId"] = value
        case "message id", "a2a-1.0" | "a2a-0.3" | "dotted":
            message["messageId"] = value
        case "task id", "directory":
            params["taskId"] = value
        case "task id", "envelope":
            body["payload"]["task_id"] = value
        case "title", "envelope":
            body["payload"] |= {"title": value, "description": value}
        case "metadata", "platform":
            body["context"] = {"metadata": {value: value}}
        case "metadata", "a2a-1.0" | "a2a-0.3" | "dotted" | "agentvault":
            message["metadata"] = {value: value}
        case "file name" | "media type", "a2a-1.0":
            name, kind = (value, "text/plain") if field == "file name" else ("a.txt", value)
            message["parts"] = [{"raw": "aGVsbG8=", "filename": name, "mediaType": kind}]
        case "file name" | "media type", "a2a-0.3" | "dotted":
            name, kind = (value, "text/plain") if field == "file name" else ("a.txt", value)
            message["parts"] = [{"kind": "file", "file": {"bytes": "aGVsbG8=", "name": name, "mimeType": kind}}]
        case "trace", _ if value.isascii() and value.isprintable():
            headers |= {"traceparent": value, "tracestate": value, "X-Request-Id": value, "X-Trace-Id": value}
        case _:
            body = json.loads(json.dumps(body).replace('"plain words"', json.dumps(value)))
    return msgspec.structs.replace(request, body=body, headers=headers)


def faults(world: World, source: str, target: str, field: str, value: str) -> Iterator[str]:
    """What arrived that was not asked for."""
    where = f"{source} to {target}, {field} {value!r}"
    reply, arrived = world.carried(source, target, field, value)
    if reply.status >= 500 and b"AGENT_" not in reply.body:
        yield f"{where}: {reply.status} {reply.body[:200]!r}"
    sends = 0
    for method, path, headers, body in arrived:
        shown = json.dumps([method, path, dict(headers), body])
        if world.caller in shown or (world.hub.token or "") in shown:
            yield f"{where}: the caller's credential reached the agent"
        known = world.headers.setdefault((target, method), set())
        if extra := headers.keys() - known:
            yield f"{where}: headers {sorted(extra)}"
        if "injected" in f"{method} {path} {dict(headers)}".lower():
            yield f"{where}: {method} {path} {headers}"
        sends += _sends(body)
    if sends > world.sends[source, target]:
        yield f"{where}: {sends} messages"


def _sends(body: Any) -> int:
    """Whether a request hands over work, in whatever dialect."""
    if not is_object(body):
        return 0
    known = body
    method = str(known.get("method", ""))
    asks = re.search(r"send|stream|a2a/task$", method, re.IGNORECASE) is not None
    return int(asks or known.get("type") == "task_assignment" or ("input" in known and "skill" in known))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path_factory.mktemp("translation") / "data").start()
        stack.callback(hub.stop)
        world = World(hub, stack)
        for source, target in itertools.product(SLUGS, SLUGS):
            _, arrived = world.carried(source, target, "text", "plain words")
            world.sends[source, target] = sum(_sends(body) for *_, body in arrived)
            for method, _, headers, _ in arrived:
                world.headers.setdefault((target, method), set()).update(headers)
        yield world
        assert tracebacks(hub) == []


@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_what_arrives_is_what_was_asked_for_in_every_pair(world: World, figures: Figures, full: bool) -> None:
    wrong: list[str] = []
    turns = itertools.cycle(itertools.product(PAYLOADS, FIELDS))
    calls = 0
    for source, target in itertools.product(SLUGS, SLUGS):
        tried = itertools.islice(turns, 7, 7 + SHORT) if not full else zip(PAYLOADS, itertools.cycle(FIELDS))
        for value, field in tried:
            calls += 1
            wrong += faults(world, source, target, field, value)
    figures("S8", pairs=0 if full else 49, payloads=0 if full else len(PAYLOADS), calls=calls, faults=len(wrong))
    assert wrong == [], "\n".join(wrong[:20])


@pytest.mark.parametrize("value", PAYLOADS[:: len(PAYLOADS) // 12])
def test_words_come_back_as_they_were_said(world: World, value: str) -> None:
    agent = world.everyone.agent("platform")
    for slug in ("platform", "a2a-1.0", "a2a-0.3", "dotted"):
        seen = world.everyone.caller(slug).call(agent.id, Content(data={"q": value}))
        assert seen.content == (Content(data={"q": value}),), (slug, value)


STREAMS: Final = {
    "platform": ("/v1/a2a/call/stream", "", ""),
    "a2a-1.0": ("", "SendMessage", "SendStreamingMessage"),
    "a2a-0.3": ("", "message/send", "message/stream"),
    "dotted": ("", "message.send", "message.stream"),
    "directory": ("", "a2a/task", "a2a/stream"),
}


@pytest.mark.parametrize("slug", STREAMS)
def test_no_text_breaks_a_stream_apart(world: World, slug: str, figures: Figures) -> None:
    """Split as the strictest reader would, at every character that some reader takes for the end of a line."""
    agent = world.everyone.agent("platform")
    path, plain, streamed = STREAMS[slug]
    frames = 0
    for value in PAYLOADS[::5]:
        request = placed(asked(slug, agent.id, "plain words"), slug, "text", value)
        body = json.loads(json.dumps(request.body).replace(f'"{plain}"', f'"{streamed}"')) if plain else request.body
        reply = world.hub.post(path or request.path, body, {**request.headers, "Accept": "text/event-stream"})
        assert reply.status == 200, reply.body
        assert reply.headers["content-type"].startswith("text/event-stream"), reply.body
        for line in reply.body.decode().splitlines():
            assert line == "" or re.match(r"(id|event|data|retry)?:", line), (slug, value, line)
            if line.startswith("data:") and line[5:].strip() not in ("", "[DONE]"):
                frames += 1
                assert isinstance(json.loads(line[5:]), dict)
    figures("S8", stream_frames=frames)


def test_a_hostile_error_message_stays_a_message(world: World) -> None:
    """What an agent says of its failure is told in each dialect's words, as one answer."""

    def fails(body: dict[str, Any]) -> dict[str, Any]:
        return {"status": "failed", "error": {"code": "AGENT_ERROR", "message": body["input"]["text"]}}

    with platform_agent(fails) as agent:
        target = join(world.hub, agent)["id"]
        for value, slug in zip(
            PAYLOADS[::9], itertools.cycle(("platform", "a2a-1.0", "a2a-0.3", "dotted", "directory"))
        ):
            request = placed(asked(slug, target, "plain words"), slug, "text", value)
            reply = request.post(world.hub, world.caller)
            answer: dict[str, Any] = json.loads(reply.body)
            assert "injected" not in f"{reply.headers}".lower(), (slug, value)
            shown: str = answer["error"]["message"] if slug == "platform" else json.dumps(answer)
            assert value == shown or slug != "platform" or "[redacted" in shown, (value, shown)
        assert len(agent.requests) == len(PAYLOADS[::9])


@pytest.mark.parametrize("name", CASES)
def test_names_in_other_letters_mean_nothing(world: World, name: str) -> None:
    """Of a name and the same in other letters the right one counts, whichever comes last."""
    good, other = world.everyone.agent("platform"), world.everyone.agent("dotted")
    body = {"skill": "echo", "input": {"text": "x"}, "target_agent_id": good.id, name: other.id}
    if name.lower() in body and name not in ("Target_Agent_Id", "Skill"):
        body[name] = "x"
    assert world.hub.post("/v1/a2a/call", body, token=world.caller).json["status"] == "completed"
    assert not other.stub.arrived.is_set()
    framed_body = asked("a2a-0.3", good.id, "x")
    framed_body.body[name] = {"message": {"parts": []}} if name == "PARAMS" else "tasks/cancel"
    assert "result" in framed_body.post(world.hub, world.caller).json


def test_of_a_repeated_name_the_last_is_authorised_and_delivered(world: World) -> None:
    good, other = world.everyone.agent("platform"), world.everyone.agent("dotted")
    limited = world.hub.new_key("a2a:call", allow=[f"{good.id}:*"])
    for first, last, allowed in ((good, other, False), (other, good, True)):
        raw = f'{{"target_agent_id":"{first.id}","skill":"echo","input":{{"text":"x"}},"target_agent_id":"{last.id}"}}'
        other.stub.arrived.clear()
        reply = world.hub.post("/v1/a2a/call", raw.encode(), token=limited)
        assert (reply.status == 200) is allowed, reply.body
        assert not other.stub.arrived.is_set()
