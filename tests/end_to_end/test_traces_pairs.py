"""One trace through every pair of dialects, plain, streamed and asynchronous; and from the bodies of callers without
headers. At the agent: the same trace, the hub's span, which the caller was told, and the caller's own spelling."""

import re
from collections.abc import Generator
from contextlib import ExitStack
from hashlib import sha256
from typing import Any

import pytest

from tests.end_to_end.every_dialect import SLUGS, Asked, Everyone, Known, asked
from tests.end_to_end.world import eventually, fresh
from tests.support.handing import receiver
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.selection import pairs

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]")
STREAMED = {
    "a2a-1.0": "SendStreamingMessage",
    "a2a-0.3": "message/stream",
    "dotted": "message.stream",
    "directory": "a2a/stream",
}
# Where a caller that cannot set headers says its trace.
IN_BODY = {
    "platform": ("context", "metadata"),
    "envelope": ("payload", "metadata"),
    "dotted": ("params", "message", "metadata"),
    "agentvault": ("params", "message", "metadata"),
    "a2a-0.3": ("params", "message", "metadata"),
    "a2a-1.0": ("params", "message", "metadata"),
}


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Generator[Everyone]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("traces") / "data", auth="none"))
        yield Everyone(hub, stack)


def told(known: Known, trace_id: str) -> dict[str, str]:
    """The headers of the request that an agent was sent in a trace, once it was."""

    def look() -> dict[str, str] | None:
        found = [headers for _, _, headers, body in known.stub.requests if body and trace_id in headers.values()]
        return dict(found[0]) if found else None

    return eventually(look, f"{known.id} was asked in {trace_id}")


def hub_span(headers: dict[str, str], w3c_id: str) -> str:
    """The span that an agent was told, the same in every form."""
    found = TRACEPARENT.fullmatch(headers["traceparent"])
    assert found is not None and found[1] == w3c_id, headers
    assert headers["x-span-id"] == f"span_{found[2]}"
    return headers["x-span-id"]


def goes_through(everyone: Everyone, ask: Asked, target: str) -> None:
    given, span = fresh("my-trace"), fresh("my-span")
    known = everyone.agent(target)
    reply = ask.post(everyone.hub, X_Trace_ID=given, X_Span_ID=span)
    assert reply.status < 300, reply.body
    headers = told(known, given)
    assert headers["x-trace-id"] == reply.headers["x-trace-id"] == given
    assert hub_span(headers, sha256(given.encode()).hexdigest()[:32]) == reply.headers["x-span-id"]
    assert headers["x-parent-span-id"] == span
    assert headers["x-request-id"]


@pytest.mark.req("P-35")
@pytest.mark.parametrize(("caller", "target"), pairs(SLUGS, SLUGS))
def test_a_trace_goes_through(everyone: Everyone, caller: str, target: str) -> None:
    goes_through(everyone, asked(caller, everyone.agent(target).id, "hello"), target)


@pytest.mark.full
@pytest.mark.req("P-35")
@pytest.mark.parametrize("target", SLUGS)
@pytest.mark.parametrize("caller", ["platform", *STREAMED])
def test_a_trace_goes_through_streamed(everyone: Everyone, caller: str, target: str) -> None:
    ask = asked(caller, everyone.agent(target).id, "hello")
    path = f"{ask.path}/stream" if caller == "platform" else ask.path
    body = {**ask.body, **({} if caller == "platform" else {"method": STREAMED[caller]})}
    goes_through(everyone, Asked(path=path, body=body, text=ask.text, headers=ask.headers), target)


@pytest.mark.full
@pytest.mark.req("P-35")
@pytest.mark.parametrize("target", SLUGS)
@pytest.mark.parametrize("caller", ["platform", "a2a-1.0", "a2a-0.3"])
def test_a_trace_goes_through_asynchronously(everyone: Everyone, caller: str, target: str) -> None:
    """Envelope and AgentVault calls are so anyway."""
    ask = asked(caller, everyone.agent(target).id, "hello")
    path, body = ask.path, ask.body
    if caller == "platform":
        path += "/async"
    else:
        how = {"returnImmediately": True} if caller == "a2a-1.0" else {"blocking": False}
        body = {**body, "params": {**body["params"], "configuration": how}}
    goes_through(everyone, Asked(path=path, body=body, text=ask.text, headers=ask.headers), target)


def with_metadata(ask: Asked, where: tuple[str, ...], metadata: dict[str, str]) -> Asked:
    """The same request with something in the metadata of its message."""
    body: dict[str, Any] = {**ask.body}
    inner = body
    for name in where[:-1]:
        inner[name] = {**inner.get(name, {})}
        inner = inner[name]
    inner[where[-1]] = metadata
    return Asked(path=ask.path, body=body, text=ask.text, headers=ask.headers)


@pytest.mark.req("P-35")
@pytest.mark.parametrize("caller", IN_BODY)
def test_a_caller_without_headers_says_its_trace_in_the_body(everyone: Everyone, caller: str) -> None:
    known = everyone.agent("platform")
    trace_id, span_id = sha256(fresh().encode()).hexdigest()[:32], "b7ad6b7169203331"
    ask = asked(caller, known.id, "hello")
    parent = {"traceparent": f"00-{trace_id}-{span_id}-01"}
    reply = with_metadata(ask, IN_BODY[caller], parent).post(everyone.hub)
    assert reply.status < 300, reply.body
    headers = told(known, f"trace_{trace_id}")
    assert hub_span(headers, trace_id) == reply.headers["x-span-id"]
    assert headers["x-parent-span-id"] == f"span_{span_id}"
    given = fresh("in-the-body")
    reply = with_metadata(asked(caller, known.id, "again"), IN_BODY[caller], {"trace_id": given}).post(everyone.hub)
    assert reply.headers["x-trace-id"] == given
    assert told(known, given)


def test_what_the_headers_say_counts_before_the_body_and_rubbish_there_is_ignored(everyone: Everyone) -> None:
    known = everyone.agent("platform")
    given = fresh("in-the-headers")
    ask = with_metadata(asked("platform", known.id, "x"), IN_BODY["platform"], {"trace_id": "in-the-body"})
    assert ask.post(everyone.hub, X_Trace_ID=given).headers["x-trace-id"] == given
    for rubbish in ({"traceparent": "00-zz"}, {"trace_id": ""}, {"trace_id": 7}, {"trace_id": "\xe9"}):
        ask = with_metadata(asked("platform", known.id, "x"), IN_BODY["platform"], rubbish)  # type: ignore[arg-type]
        reply = ask.post(everyone.hub)
        assert reply.status == 200
        assert re.fullmatch(r"trace_[0-9a-f]{32}", reply.headers["x-trace-id"])


@pytest.mark.req("P-35")
def test_a_callback_tells_the_trace(everyone: Everyone) -> None:
    hub, known = everyone.hub, everyone.agent("a2a-1.0")
    given = fresh("called-back")
    with receiver() as there:
        body = {**asked("platform", known.id, "x").body, "callback": {"url": f"{there.url}/told"}}
        call_id = hub.post("/v1/a2a/call/async", body, {"X-Trace-ID": given}).json["call_id"]
        headers, _ = there.until(lambda said: said["call_id"] == call_id and said["status"] == "completed")
    assert headers["x-trace-id"] == given
    span = hub_span(dict(headers), sha256(given.encode()).hexdigest()[:32])
    assert headers["x-parent-span-id"] == told(known, given)["x-span-id"]

    def delivered() -> Any:
        spans = hub.get(f"/v1/traces/{given}").json["spans"]
        return next((each for each in spans if each["name"].startswith("deliver") and each["duration_ms"]), None)

    shown = eventually(delivered, "the callback is in the trace")
    assert (f"span_{shown['span_id']}", shown["parent_id"]) == (span, None)
    assert f"span_{shown['linked_to']}" == headers["x-parent-span-id"]


def test_calls_of_one_batch_have_spans_of_their_own(everyone: Everyone) -> None:
    known = everyone.agent("platform")
    given = fresh("batch")
    one, two = (asked("directory", known.id, text).body for text in ("a", "b"))
    reply = batch(everyone.hub, known.id, [one, two], given)
    assert reply.status == 200, reply.body

    def spans() -> set[str] | None:
        found = {headers["x-span-id"] for _, _, headers, _ in known.stub.requests if headers.get("x-trace-id") == given}
        return found if len(found) == 2 else None

    assert eventually(spans, "both calls were made")


def batch(hub: HubProcess, agent: str, calls: list[Any], given: str) -> Reply:
    """Several requests at once."""
    return hub.post(f"/agents/{agent}/directory/", calls, {"X-Trace-ID": given})
