"""Done once, and no larger than allowed: the two rules that every dialect keeps for every request."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import SLUGS, Asked, Everyone, asked, framed
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.hub import Reply, running_hub
from tests.support.speaking import StubAgent, json_answer, serving

MIB: Final = 1024 * 1024
# A key that comes again with another body.
CONFLICTS: Final = {"platform": (409, "VALIDATION_ERROR"), "envelope": (400, "PAYLOAD_VALIDATION_FAILED")}
# Those whose messages have no name of the caller's under which they are done once.
NAMELESS: Final = ("a2a-1.0", "a2a-0.3", "agentvault", "dotted", "platform")


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyone]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("bounds") / "data", auth="none"))
        yield Everyone(hub, stack)
        assert tracebacks(hub) == []


def _task_of(slug: str, reply: Reply) -> Any:
    """What a caller calls the task that came of its request."""
    answer = reply.json
    match slug:
        case "platform":
            return answer["call_id"]
        case "envelope":
            return answer["payload"]["task_id"]
        case "directory":
            return answer["result"]["taskId"]
        case _:
            return answer["result"].get("task", answer["result"])["id"]


def _code_of(slug: str, reply: Reply) -> tuple[int, Any]:
    answer = reply.json
    if slug == "envelope":
        return reply.status, answer["error_code"]
    return reply.status, answer["error"]["code"]


def _arrivals(everyone: Everyone, text: str) -> int:
    """How often the agent was asked with these words."""
    found = everyone.agent("a2a-1.0").stub.requests
    return sum(text in str(body) and body["method"] == "SendMessage" for _, _, _, body in found if body)


def _renamed(slug: str, request: Asked) -> Asked:
    """The same request under another name of the caller's, where its dialect has names that make it the same."""
    body = json.loads(json.dumps(request.body))
    if slug == "envelope":
        body["message_id"] = asked(slug, "", "").body["message_id"]
    return Asked(path=request.path, body=body, text=request.text, headers=request.headers)


@pytest.mark.req("X-19")
@pytest.mark.parametrize("slug", SLUGS)
def test_an_idempotency_key_is_honoured_in_every_dialect(everyone: Everyone, slug: str) -> None:
    agent, key = everyone.agent("a2a-1.0"), fresh("key")
    request = asked(slug, agent.id, fresh("once"))
    first = request.post(everyone.hub, Idempotency_Key=key)
    assert first.status == 200, first.body
    again = _renamed(slug, request).post(everyone.hub, Idempotency_Key=key)
    assert (again.status, _task_of(slug, again)) == (200, _task_of(slug, first))
    eventually(lambda: _arrivals(everyone, request.text) == 1, "the agent was asked")
    other = asked(slug, agent.id, fresh("other"))
    refused = other.post(everyone.hub, Idempotency_Key=key)
    assert _code_of(slug, refused) == CONFLICTS.get(slug, (200, -32602))
    assert _arrivals(everyone, other.text) == 0


@pytest.mark.req("X-19")
@pytest.mark.parametrize("slug", NAMELESS)
def test_an_identical_message_without_a_key_is_a_new_task(everyone: Everyone, slug: str) -> None:
    agent = everyone.agent("a2a-1.0")
    request = asked(slug, agent.id, fresh("twice"))
    tasks = {_task_of(slug, request.post(everyone.hub)) for _ in range(3)}
    assert len(tasks) == 3
    eventually(lambda: _arrivals(everyone, request.text) == 3, "the agent was asked each time")


# -- sizes


@pytest.mark.req("X-24")
@pytest.mark.parametrize("slug", SLUGS)
def test_a_call_of_nearly_ten_mebibytes_passes_and_a_larger_one_is_413(everyone: Everyone, slug: str) -> None:
    agent = everyone.agent("platform")
    reply = asked(slug, agent.id, "x" * (10 * MIB - 2000)).post(everyone.hub)
    assert (reply.status, "error" in reply.json) == (200, False), reply.body[:300]
    assert agent.stub.arrived.wait(10)
    reply = asked(slug, agent.id, "x" * (10 * MIB + 1)).post(everyone.hub)
    assert _code_of(slug, reply) == {
        "platform": (413, "VALIDATION_ERROR"),
        "envelope": (413, "INVALID_MESSAGE_FORMAT"),
    }.get(slug, (413, -32600))


@pytest.mark.req("X-24")
@pytest.mark.parametrize("path", ["/v1/a2a/registry", "/a2a/register", "/a2a/discover", "/api/v1/agent-cards/"])
def test_an_administrative_body_may_have_one_mebibyte(everyone: Everyone, path: str) -> None:
    assert everyone.hub.post(path, {"name": "x" * (MIB + 1)}).status == 413
    assert everyone.hub.post(path, {"name": "x" * (MIB - 100)}).status in (400, 413, 422)


@pytest.mark.req("X-24")
@pytest.mark.parametrize("slug", SLUGS)
def test_a_card_may_have_256_kibibytes(everyone: Everyone, slug: str) -> None:
    card = everyone.stub(slug).card
    body = {"agent_card": {**card, "own": "x" * (257 * 1024)}, "id": fresh("large")}
    assert everyone.hub.post("/v1/a2a/registry", body).status == 413
    body["agent_card"] = {**card, "own": "x" * (200 * 1024)}
    assert everyone.hub.post("/v1/a2a/registry", body).status == 201


@pytest.mark.req("X-24")
@pytest.mark.parametrize(
    ("path", "field"), [("/a2a/register", None), ("/a2a", "params"), ("/api/v1/agent-cards/", "card_data")]
)
def test_a_card_at_its_dialects_own_registry_may_have_no_more(everyone: Everyone, path: str, field: str | None) -> None:
    slug = "agentvault" if field == "card_data" else "directory"
    card = {**everyone.stub(slug).card, "own": "x" * (257 * 1024)}
    body = card if field is None else framed("a2a/register", card) if field == "params" else {field: card}
    assert everyone.hub.post(path, body).status == 413


@pytest.mark.req("X-24")
@pytest.mark.parametrize("slug", SLUGS)
def test_an_agents_answer_over_ten_mebibytes_is_its_failure(everyone: Everyone, slug: str) -> None:
    stub, shape = StubAgent(slug), everyone.agent(slug).stub.card
    large = json.dumps(
        {"jsonrpc": "2.0", "id": "1", "status": "success", "result": {"text": "x" * (10 * MIB)}}
    ).encode()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        return (200, {}, large) if method == "POST" else json_answer({}, 404)

    with serving(stub, handle):
        name = fresh("talker")
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        own = {"name": name, "agentId": name, "id": name, "humanReadableId": f"tests/{name}", "url": f"{stub.url}/"}
        own |= {"endpoint": stub.url, "supportedInterfaces": [interface]}
        card = {member: own.get(member, value) for member, value in shape.items()}
        target = everyone.hub.register(card, id=name, dialect=slug)["id"]
        reply = everyone.hub.call("echo", {"text": "x"}, target)
        error = reply.json["error"]
        assert (reply.status, error["code"], error["details"]["reason"]) == (502, "AGENT_ERROR", "too_large"), (
            reply.body
        )
