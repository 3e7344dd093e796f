"""The examples of the platform: its calls, its registry, and what is posted to its agents and to its callers."""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dragoman.model.secret import Secret
from dragoman.security.signing import webhook_signature, x_signature
from tests.end_to_end.example_files.index import Line, example
from tests.end_to_end.example_files.stage import Stage, answering, assert_fits, posted, shows
from tests.end_to_end.world import call_line, eventually, fresh, says
from tests.support.agents import envelope
from tests.support.hub import HubProcess
from tests.support.platform_agent import Answer, PlatformAgent, platform_agent
from tests.support.ports import free_port
from tests.support.speaking import StubAgent
from tests.support.sse_client import sse
from tests.support.streaming_agent import streaming_agent

AGENT: Final = "agt_abc123xyz"
HEADERS: Final = {"X-Trace-ID": "trace_456def", "X-Span-ID": "span_789ghi"}
# How long it took, by the clock.
TOOK: Final = ("timing.duration_ms",)


class Scene(msgspec.Struct, frozen=True):
    """A hub, the document's agent there, its caller, and where that caller is called back."""

    hub: HubProcess
    agent: PlatformAgent
    caller: dict[str, Any]  # what the hub answered to its registration
    sink: StubAgent

    def call(self, file: str, status: int = 200, path: str = "/v1/a2a/call", **changes: Any) -> Any:
        """Post one of the documented calls, as the documented caller."""
        body = {**_shown(file), **changes}
        if "callback_url" in body.get("options", {}):
            body["options"]["callback_url"] = f"{self.sink.url}/callback"
        if "callback" in body:
            body["callback"]["url"] = f"{self.sink.url}/a2a/callback"
        # The same id with the same body would be the same call again.
        headers = {**HEADERS, "X-Request-ID": fresh("req")}
        return posted(self.hub, path, body, status, token=self.caller["token"], headers=headers)

    def told(self, call_id: str) -> tuple[Mapping[str, str], Any]:
        """The callback for a call, once it has come."""

        def look() -> list[tuple[Mapping[str, str], Any]]:
            return [(headers, body) for _, _, headers, body in self.sink.requests if body["call_id"] == call_id]

        return eventually(look, f"{call_id} is called back")[0]


def _shown(file: str) -> Any:
    return example("platform", f"{file}.json")


def documented(stage: Stage) -> Scene:
    """The document's agent, with the two skills of its card and a third that the examples call."""
    hub = stage.hub(auth="token")
    agent, other = stage.enter(platform_agent()), stage.enter(platform_agent())
    caller = hub.register(other.card(id="agt_caller123"))
    card: dict[str, Any] = {**_shown("agent-card"), "endpoint": agent.endpoint}
    card["skills"].append({"name": "deep_research", "description": "Digs", "input_schema": {"type": "object"}})
    hub.register(card)
    agent.respond = says(_shown("agent-answer"))
    return Scene(hub, agent, caller, stage.enter(answering("caller", lambda _: {})))


def _answers(scene: Scene, said: Answer | dict[str, Any]) -> None:
    scene.agent.respond = says(said)


# -- the registry


@shows("registry-request", "registry-response", "agent-card")
def _registered(stage: Stage, line: Line) -> None:
    hub, body = stage.hub(auth="token"), _shown("registry-request")
    first = hub.post("/v1/a2a/registry", body)
    assert first.status == 201
    shown = _shown("registry-response")
    assert_fits(first.json, shown, varies=("token", "signing_secret"))
    assert first.json["endpoint"] == f"http://localhost:{hub.port}/v1/agents/{AGENT}/a2a"
    again = hub.post("/v1/a2a/registry", body)
    assert (again.status, again.json.keys()) == (200, shown.keys() - {"token", "signing_secret"})
    stranger = hub.new_key("a2a:call")
    card = hub.get(f"/v1/a2a/agents/{AGENT}/card", token=stranger).json
    assert_fits(card, _shown("agent-card"))
    assert card["endpoint"] == first.json["endpoint"]


@shows("discover-response")
def _discovered(stage: Stage, line: Line) -> None:
    hub = stage.hub(auth="token")
    hub.register(_shown("agent-card"))
    (path,) = line.paths
    page = hub.get(path)
    figures = [f"agents[].{name}" for name in ("rating", "response_time_p95_ms", "availability")]
    # There is one agent only, so that nothing follows.
    found = {**page.json, "next_cursor": page.json["next_cursor"] or "none"}
    added = ("agents[].dialect", "agents[].status", "agents[].trust", "agents[].circuit")
    assert_fits(found, line.body, varies=(*figures, "total", "next_cursor"), added=added)


@shows("scopes")
def _scopes(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    made = posted(scene.hub, "/v1/keys", {"name": "documented", **line.body}, 201)
    assert made["scopes"] == line.body["scopes"]


@shows("rate-limits")
def _counted(stage: Stage, line: Line) -> None:
    hub, agent = stage.hub(), stage.enter(platform_agent())
    hub.register(agent.card(id="agt_limited", **line.body))
    allowed = line.body["rate_limits"]["requests_per_minute"]
    answers = [hub.call("echo", {"n": n}, "agt_limited") for n in range(allowed + 1)]
    assert [answer.status for answer in answers] == [200] * allowed + [429]
    assert answers[-1].json["error"]["code"] == "RATE_LIMITED"
    assert answers[-1].headers["x-ratelimit-limit"] == str(allowed)


# -- calls


@shows("rating-request")
def _rated(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    _answers(scene, _shown("agent-answer"))
    (path,) = line.paths
    place = path.replace("{call_id}", scene.call("call-request")["call_id"])
    assert posted(scene.hub, place, line.body, 200, token=scene.caller["token"])["rating"] == line.body["rating"]
    posted(scene.hub, place, line.body, 404)  # Whoever did not make the call does not know it.


@shows("call-request", "call-response", "agent-request", "agent-answer", "status-completed", "log-line")
def _called(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    _answers(scene, _shown("agent-answer"))
    answer = scene.call("call-request")
    assert_fits(answer, _shown("call-response"), varies=TOOK, added=("call_id",))
    assert answer["call_id"] == answer["id"]
    assert answer["trace"]["trace_id"] == HEADERS["X-Trace-ID"]
    path, headers, sent = scene.agent.requests[-1]
    assert path == "/a2a"
    assert_fits(sent, _shown("agent-request"), varies=("options.timeout_ms",))
    assert headers["x-trace-id"] == HEADERS["X-Trace-ID"]
    status = scene.hub.get(f"/v1/a2a/call/{answer['id']}/status", token=scene.caller["token"]).json
    assert_fits(status, _shown("status-completed"), varies=TOOK)
    assert status == {**answer, "progress": 1.0}
    logged = call_line(scene.hub, answer["id"])
    documented_line = {**_shown("log-line"), "target_agent_id": AGENT}
    assert list(logged)[: len(documented_line)] == list(documented_line)
    assert_fits({name: logged[name] for name in documented_line}, documented_line, varies=("duration_ms",))
    assert scene.told(answer["id"])[1]["result"] == answer["result"]  # at the call's own callback_url


@shows("call-async-request", "call-async-response", "callback-request")
def _accepted(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    shown = _shown("callback-request")
    _answers(scene, {"status": "completed", "result": shown["result"], "usage": shown["usage"]})
    accepted = scene.call("call-async-request", 202, "/v1/a2a/call/async")
    assert accepted["call_id"] == accepted["id"]
    assert_fits(accepted, _shown("call-async-response"), varies=("call_id", "estimated_duration_ms"), added=("id",))
    headers, body = scene.told(accepted["call_id"])
    assert_fits(body, shown, added=("id", "timing", "trace"))
    _signed(scene, headers, body)


@shows("callback-request-failed")
def _failed_callback(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    card = scene.agent.card(id=fresh("agt_gone"), endpoint=f"http://127.0.0.1:{free_port()}/a2a")
    card["skills"][0]["name"] = "deep_research"
    gone = scene.hub.register(card)["id"]
    accepted = scene.call("call-async-request", 202, "/v1/a2a/call/async", target_agent_id=gone)
    headers, body = scene.told(accepted["call_id"])
    more = ("error.retryable", "error.details.retry_after", "error.details.reason")
    shown = {**line.body, "error": {**line.body["error"], "details": {"agent_id": gone}}}
    assert_fits(body, shown, varies=("error.message",), added=("id", "timing", "trace", *more))
    _signed(scene, headers, body)


def _signed(scene: Scene, headers: Mapping[str, str], body: Any) -> None:
    """The caller's own header came along, and both signatures are under the caller's own secret."""
    assert headers["x-callback-secret"] == _shown("call-async-request")["callback"]["headers"]["X-Callback-Secret"]
    raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    secret = Secret(scene.caller["signing_secret"])
    assert headers["x-signature"] == x_signature(secret, raw)
    signed = webhook_signature(secret, headers["webhook-id"], int(headers["webhook-timestamp"]), raw)
    assert headers["webhook-signature"] == signed
    assert headers["webhook-id"] == f"cb_{body['call_id']}"


@shows("signature-vector")
def _vector(stage: Stage, line: Line) -> None:
    vector, raw = line.body, line.body["raw_body"].encode()
    secret = Secret(vector["secret"])
    assert x_signature(secret, raw) == vector["x-signature"]
    at = int(vector["webhook-timestamp"])
    assert webhook_signature(secret, vector["webhook-id"], at, raw) == vector["webhook-signature"]


@shows("agent-answer-error")
def _agent_failed(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    _answers(scene, line.body)
    answer = scene.call("call-request", 502)
    _answers(scene, _shown("agent-answer"))
    assert_fits(answer["error"], line.body["error"], added=("details.agent_code",))
    assert answer["error"]["code"] in line.outcome
    assert answer["error"]["retryable"] is ("retryable" in line.outcome)


@shows("call-error-response", "agent-cancel-request")
def _timed_out(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    scene.agent.cancelled.clear()

    def slow(_: Any) -> dict[str, Any]:
        scene.agent.cancelled.wait(20)
        return _shown("agent-answer")

    scene.agent.respond = slow
    asked = {"timeout_ms": 300}
    answer = scene.call("call-stream-request", 504, options=asked)
    assert scene.agent.cancelled.wait(10)
    _answers(scene, _shown("agent-answer"))
    added = ("call_id", "error.retryable", "trace", "error.details.retry_after")
    assert_fits(answer, _shown("call-error-response"), varies=("error.details.timeout_ms",), added=added)
    cancels = [(path, body) for path, _, body in scene.agent.requests if body.get("call_id") == answer["id"]]
    assert [path for path, _ in cancels] == ["/a2a", "/a2a/cancel"]
    assert cancels[1][1] == {"call_id": answer["id"], "reason": _shown("agent-cancel-request")["reason"]}


@shows("rate-limited-response")
def _limited(stage: Stage, line: Line) -> None:
    """The hub's own limits and an agent's are answered in the same words."""
    scene = stage.once(documented)
    slow = scene.hub.register(scene.agent.card(id=fresh(), rate_limits={"requests_per_minute": 5}))["id"]
    for _ in range(5):
        assert scene.hub.call("echo", {}, slow).status == 200
    reply = scene.hub.call("echo", {}, slow)
    assert (reply.status, reply.headers["retry-after"]) == (429, "12"), "five a minute, one each twelve seconds"
    assert reply.headers["x-ratelimit-limit"] == "5"
    facts = ("scope", "allowed", "remaining", "reset")
    assert_fits(reply.json, line.body, varies=("error.message",), added=[f"error.details.{each}" for each in facts])
    _answers(scene, (429, {"Retry-After": "12"}, json.dumps(line.body).encode()))
    reply = scene.hub.post("/v1/a2a/call", _shown("call-stream-request"), token=scene.caller["token"])
    _answers(scene, _shown("agent-answer"))
    ((status, _),) = line.outcomes
    assert (reply.status, reply.headers["retry-after"]) == (status, "12")
    assert_fits(reply.json, line.body, added=("trace", "timing.started_at"))


@shows("status-running")
def _running(stage: Stage, line: Line) -> None:
    """A call that is under way, at an agent that tells how far it is."""
    scene = stage.once(documented)
    worker = stage.enter(envelope.agent())
    worker.silent = True
    worker.token = scene.hub.register(worker.card)["token"]
    body = {"target_agent_id": worker.id, "skill": "echo", "input": {"text": "x"}}
    call_id = posted(scene.hub, "/v1/a2a/call/async", body, 202, headers=HEADERS)["call_id"]
    assert worker.arrived.wait(10)
    asked = worker.assignments[-1]
    told = {"status": "in_progress", "progress": line.body["progress"], "message": line.body["message"]}
    report = worker.envelope(asked["from"], "status_update", {"task_id": asked["payload"]["task_id"], **told})
    assert worker.post(scene.hub.url, report)[0] == 200
    assert_fits(scene.hub.get(f"/v1/a2a/call/{call_id}/status").json, line.body)


STREAM: Final = tuple(
    f"stream-{name}"
    for name in (
        "1-start",
        "2-progress",
        "3-progress",
        "4-chunk",
        "5-chunk",
        "6-progress",
        "7-complete",
        "8-done",
    )
)


@shows("call-stream-request", *STREAM, "stream-error")
def _streamed(stage: Stage, line: Line) -> None:
    hub = stage.once(documented).hub
    with streaming_agent() as agent:
        name = fresh("agt_streams")
        skills = [{"name": "summarize", "description": "Summarizes", "input_schema": {"type": "object"}}]
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(name, skills=skills)}).status == 201
        body = {**_shown("call-stream-request"), "target_agent_id": name}
        headers = {"Authorization": f"Bearer {hub.token}"}
        with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers) as stream:
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
            call = agent.next_call()
            told = [{"event": item.name, "data": item.data} for item in stream.take(1)]
            for each in map(_shown, STREAM[1:-1]):
                call.say(each["event"], each["data"])
                told += [{"event": item.name, "data": item.data} for item in stream.take(1)]
            call.hang_up()
            told += [{"event": item.name, "data": item.data} for item in stream]
        for found, shown in zip(told, map(_shown, STREAM), strict=True):
            assert_fits(found, shown)
        broken = _shown("stream-error")
        with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers) as stream:
            agent.next_call().say("error", {**broken["data"], "code": "SUMMARIZER_BROKE"})
            _, error, done = stream
        assert_fits({"event": error.name, "data": error.data}, broken, added={"data.details.agent_code"})
        assert done.name == "done"
