"""The envelope dialect over real sockets: what the hub takes, refuses and acknowledges."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.end_to_end.world import fresh, tracebacks
from tests.support.agents.envelope import EnvelopeAgent, agent
from tests.support.hub import HubProcess, Reply, running_hub

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "envelope"
ONE: Final = "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b01"
TWO: Final = "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("envelope") / "data", auth="none") as hub:
        hub.register(card_of(TWO))
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def stub(hub: HubProcess) -> Iterator[EnvelopeAgent]:
    """An envelope agent that the hub knows by its own UUID."""
    with agent() as stub:
        hub.register(stub.card)
        yield stub


def card_of(agent_id: str) -> dict[str, Any]:
    """A card of an agent that is known, and that nobody calls."""
    return {**example("agent-card"), "id": agent_id, "endpoint": "http://127.0.0.1:9009"}


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def message(kind: str, said: Any, to: str = TWO, **changes: Any) -> dict[str, Any]:
    """A message in order, changed where a test says so; a member that is ... is left out."""
    whole = {
        "version": "1.0.0",
        "message_id": str(uuid4()),
        "timestamp": "2024-02-05T15:30:00Z",
        "from": ONE,
        "to": to,
        "type": kind,
        "payload": said,
        **{name.rstrip("_"): value for name, value in changes.items()},
    }
    return {name: value for name, value in whole.items() if value is not ...}


def ping(**changes: Any) -> dict[str, Any]:
    return message("ping", {"nonce": "n"}, **changes)


def assignment(stub: EnvelopeAgent, text: str = "hello", **changes: Any) -> dict[str, Any]:
    payload = {
        "task_id": f"task-{next(_numbers)}",
        "task_type": "echo",
        "title": "Say it",
        "description": "Say it again",
        "payload": {"text": text},
        **changes,
    }
    return message("task_assignment", {name: value for name, value in payload.items() if value is not ...}, stub.id)


def post(hub: HubProcess, body: object, path: str = "/a2a/messages", **headers: str) -> Reply:
    """Post a message; whatever the answer, it has the form that clients rely on."""
    reply = hub.post(path, body, headers)
    assert reply.headers["content-type"] == "application/json"
    answer = reply.json
    if reply.status == 200:
        assert answer["status"] == "success"
        assert answer["message_id"] == (body["message_id"] if isinstance(body, dict) else ...)
        assert answer["processed_at"].endswith("Z")
    else:
        assert answer["status"] == "error"
        assert isinstance(answer["error"], str)
        assert isinstance(answer["error_code"], str)
    return reply


def refused(reply: Reply, status: int, code: str) -> dict[str, Any]:
    """The payload of an error envelope, after a look at its whole form."""
    answer = reply.json
    assert (reply.status, answer["error_code"]) == (status, code), answer
    assert (answer["version"], answer["type"]) == ("1.0.0", "error")
    payload: dict[str, Any] = answer["payload"]
    assert set(payload) == {"original_message_id", "error_code", "error_message", "details"}
    assert (payload["error_code"], payload["error_message"]) == (code, answer["error"])
    assert answer["message_id"] != payload["original_message_id"]
    return payload


def named(payload: dict[str, Any]) -> list[str]:
    return [error["path"] for error in payload["details"]["errors"]]


# -- the envelope


@pytest.mark.req("E-01")
@pytest.mark.req("E-14")
@pytest.mark.req("E-49")
@pytest.mark.parametrize("path", ["/a2a/messages", "/a2a/messages/", "/a2a/a2a/messages"])
def test_a_ping_is_echoed_in_its_payload_and_beside_it(hub: HubProcess, path: str) -> None:
    sent = example("ping.strict")
    answer = post(hub, sent, path).json
    expected = example("ack-ping")
    assert {**answer, "processed_at": "", "timestamp": ""} == {**expected, "processed_at": "", "timestamp": ""}
    for echo in (None, 0, [1, {"a": 2**70}], "x"):
        answer = post(hub, message("ping", {"nonce": "n-1", "echo": echo}), path).json
        assert answer["payload"] == {"nonce": "n-1", "echo": echo}
        assert (answer["nonce"], answer["echo"]) == ("n-1", echo)


@pytest.mark.req("E-34")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_only_json_is_taken(hub: HubProcess, kind: str) -> None:
    reply = hub.post("/a2a/messages", ping(), {"Content-Type": kind})
    refused(reply, 400, "INVALID_MESSAGE_FORMAT")


@pytest.mark.req("E-35")
@pytest.mark.req("E-44")
@pytest.mark.parametrize("body", [b"{", b"nonsense", b"[]", b"null", b'"x"', b"\xff\xfe"])
def test_a_body_that_is_no_object_is_refused(hub: HubProcess, body: bytes) -> None:
    payload = refused(post(hub, body), 400, "INVALID_MESSAGE_FORMAT")
    assert payload["original_message_id"] is None


@pytest.mark.req("E-36")
@pytest.mark.parametrize("member", ["version", "message_id", "timestamp", "from", "to", "type", "payload"])
def test_a_missing_member_is_named_and_a_signature_may_be_missing(hub: HubProcess, member: str) -> None:
    payload = refused(post(hub, ping(**{f"{member}_": ...})), 400, "INVALID_MESSAGE_FORMAT")
    assert named(payload) == [member]
    assert post(hub, ping(signature=None)).status == 200


@pytest.mark.req("E-02")
@pytest.mark.req("E-03")
@pytest.mark.req("E-04")
@pytest.mark.req("E-05")
@pytest.mark.req("E-06")
@pytest.mark.req("E-07")
@pytest.mark.req("E-16")
@pytest.mark.parametrize(
    ("changes", "code", "detail"),
    [
        ({"version": "2.0.0"}, "INVALID_MESSAGE_FORMAT", '"supported_versions": ["1.0.0"]'),
        ({"message_id": "msg-123"}, "INVALID_MESSAGE_FORMAT", "message_id"),
        ({"message_id": "8a1b6f0e-3c2d-1f5a-9b7c-0d1e2f3a4b01"}, "INVALID_MESSAGE_FORMAT", "message_id"),
        ({"from_": "two words"}, "INVALID_MESSAGE_FORMAT", "from"),
        ({"to": "a/b"}, "INVALID_MESSAGE_FORMAT", "to"),
        ({"timestamp": "yesterday"}, "INVALID_MESSAGE_FORMAT", "timestamp"),
        ({"timestamp": "2024-02-05T15:30:00"}, "INVALID_MESSAGE_FORMAT", "timestamp"),
        ({"type": "greeting"}, "UNSUPPORTED_MESSAGE_TYPE", "task_completion"),
        ({"payload": [1]}, "INVALID_MESSAGE_FORMAT", "payload"),
    ],
)
def test_a_wrong_member_is_refused(hub: HubProcess, changes: dict[str, Any], code: str, detail: str) -> None:
    sent = ping(**changes)
    payload = refused(post(hub, sent), 400, code)
    assert payload["original_message_id"] == sent["message_id"]
    assert detail in json.dumps(payload["details"])


@pytest.mark.req("E-03")
@pytest.mark.req("E-05")
@pytest.mark.req("E-39")
def test_what_is_in_order_is_taken_in_every_spelling(hub: HubProcess) -> None:
    for changes in (
        {"message_id": f"msg-{uuid4()}"},
        {"timestamp": "2024-02-05T15:30:00.123456Z"},
        {"timestamp": "1999-12-31T23:59:59+05:30"},
        {"from_": f"agent-{ONE}"},
        {"unknown": {"member": 1}},
    ):
        assert post(hub, ping(**changes)).status == 200


@pytest.mark.req("E-04")
@pytest.mark.req("E-37")
@pytest.mark.req("E-17")
def test_a_uuid_that_nobody_has_is_an_unknown_agent_and_a_word_that_nobody_has_is_none(
    hub: HubProcess, stub: EnvelopeAgent
) -> None:
    sent = assignment(stub)
    payload = refused(post(hub, {**sent, "to": str(uuid4())}), 404, "AGENT_NOT_FOUND")
    assert payload["original_message_id"] == sent["message_id"]
    refused(post(hub, {**sent, "to": "nobody-here"}), 400, "INVALID_MESSAGE_FORMAT")
    assert post(hub, {**sent, "from": str(uuid4())}).status == 200  # nobody is asked who he is


@pytest.mark.req("E-04")
def test_every_agent_has_a_uuid_and_is_reached_by_each_of_its_names(hub: HubProcess) -> None:
    with agent() as stub:
        name = fresh("analyst")
        uuid = hub.register(stub.card, id=name)["uuid"]
        assert hub.get(f"/v1/agents/{name}").json["uuid"] == uuid
        for known in (name, uuid, f"agent-{uuid}", stub.id, f"agent-{stub.id}"):
            assert post(hub, {**assignment(stub), "to": known}).status == 200, known


@pytest.mark.req("E-38")
def test_a_message_to_the_hub_itself_goes_to_the_best_agent_for_the_task(hub: HubProcess) -> None:
    with agent() as stub:
        kind = fresh("only")
        hub.register({**stub.card, "supported_tasks": [kind]})
        hub_id = hub.get("/agent-card.json").json["id"]
        assert post(hub, {**assignment(stub, task_type=kind), "to": hub_id}).status == 200
        assert stub.arrived.wait(10)
        assert stub.assignments[0]["payload"]["task_type"] == kind


# -- payloads


@pytest.mark.req("E-08")
@pytest.mark.req("E-09")
@pytest.mark.req("E-40")
@pytest.mark.req("E-12")
@pytest.mark.req("E-13")
@pytest.mark.req("E-14")
@pytest.mark.parametrize(
    ("kind", "changes", "path"),
    [
        ("task_assignment", {"extra": 1}, "payload.extra"),
        ("task_assignment", {"task_id": ...}, "payload.task_id"),
        ("task_assignment", {"task_type": 5}, "payload.task_type"),
        ("task_assignment", {"title": ...}, "payload.title"),
        ("task_assignment", {"description": None}, "payload.description"),
        ("task_assignment", {"payload": "text"}, "payload.payload"),
        ("task_assignment", {"priority": "normal"}, "payload.priority"),
        ("task_assignment", {"deadline": "soon"}, "payload.deadline"),
        ("task_assignment", {"metadata": "m"}, "payload.metadata"),
        ("status_update", {"extra": 1}, "payload.extra"),
        ("status_update", {"task_id": ...}, "payload.task_id"),
        ("status_update", {"status": "running"}, "payload.status"),
        ("status_update", {"progress": 1.5}, "payload.progress"),
        ("task_completion", {"extra": 1}, "payload.extra"),
        ("task_completion", {"status": "cancelled"}, "payload.status"),
        ("task_completion", {"result": ...}, "payload.result"),
        ("task_completion", {"execution_time_ms": -1}, "payload.execution_time_ms"),
        ("ping", {"nonce": ...}, "payload.nonce"),
        ("ping", {"extra": 1}, "payload.extra"),
    ],
)
def test_a_wrong_field_of_a_payload_is_named(hub: HubProcess, kind: str, changes: dict[str, Any], path: str) -> None:
    whole = example(f"{kind.replace('_', '-')}.strict")
    payload = {name: value for name, value in {**whole["payload"], **changes}.items() if value is not ...}
    answer = refused(post(hub, {**whole, "payload": payload}), 400, "PAYLOAD_VALIDATION_FAILED")
    assert named(answer) == [path]
    assert answer["original_message_id"] == whole["message_id"]


@pytest.mark.req("E-39")
@pytest.mark.req("E-40")
def test_what_is_free_reaches_the_agent_as_it_was_sent(hub: HubProcess, stub: EnvelopeAgent) -> None:
    given = {"anything": [1, None, {"deep": 2**70}]}
    sent = assignment(stub, payload=given, metadata={"own": given}, priority="high", deadline="2024-02-05T16:00:00Z")
    assert post(hub, sent).status == 200
    assert stub.arrived.wait(10)
    came = stub.assignments[0]["payload"]
    assert (came["payload"], came["metadata"]["own"], came["priority"]) == (given, given, "high")
    assert (came["title"], came["description"]) == ("Say it", "Say it again")


@pytest.mark.req("E-10")
@pytest.mark.req("E-17")
def test_a_task_type_that_the_agent_lacks_is_refused_with_those_it_has(hub: HubProcess, stub: EnvelopeAgent) -> None:
    payload = refused(post(hub, assignment(stub, task_type="research")), 400, "INVALID_TASK_TYPE")
    assert payload["details"]["supported_types"] == ["echo"]
    assert stub.assignments == []


@pytest.mark.req("E-11")
@pytest.mark.req("E-18")
def test_an_assignment_is_acknowledged_before_it_is_done(hub: HubProcess, stub: EnvelopeAgent) -> None:
    sent = assignment(stub, "slow")
    answer = post(hub, sent).json
    assert set(answer) == set(example("ack-task-assignment"))
    assert answer["payload"] == {"task_id": sent["payload"]["task_id"], "status": "assigned"}
    assert (answer["from"], answer["to"], answer["type"]) == (stub.id, ONE, "status_update")
    stub.release.set()


@pytest.mark.req("E-15")
def test_an_error_is_taken_and_never_answered_by_another(hub: HubProcess, stub: EnvelopeAgent) -> None:
    answer = post(hub, example("error.strict")).json
    assert set(answer) == set(example("ack-plain"))
    whole = example("error.strict")
    for member in ("original_message_id", "error_code", "error_message"):
        payload = {name: value for name, value in whole["payload"].items() if name != member}
        reply = post(hub, {**whole, "payload": payload})
        assert (reply.status, reply.json["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
        assert "payload" not in reply.json


@pytest.mark.req("E-17")
@pytest.mark.req("E-18")
def test_a_body_that_is_too_large_is_413(hub: HubProcess) -> None:
    reply = post(hub, json.dumps(ping(unknown="x" * (10 * 1024 * 1024))).encode())
    assert (reply.status, reply.json["error_code"]) == (413, "INVALID_MESSAGE_FORMAT")


@pytest.mark.req("E-16")
@pytest.mark.req("E-44")
def test_every_example_of_a_wrong_message_is_refused_as_it_says(hub: HubProcess) -> None:
    expected = {
        "invalid-version": "INVALID_MESSAGE_FORMAT",
        "invalid-message-id": "INVALID_MESSAGE_FORMAT",
        "invalid-timestamp": "INVALID_MESSAGE_FORMAT",
        "invalid-type": "UNSUPPORTED_MESSAGE_TYPE",
        "invalid-payload-not-object": "INVALID_MESSAGE_FORMAT",
        "invalid-payload-unknown-field": "PAYLOAD_VALIDATION_FAILED",
        "invalid-payload-missing-field": "PAYLOAD_VALIDATION_FAILED",
        "invalid-missing-from": "INVALID_MESSAGE_FORMAT",
    }
    assert {path.stem for path in EXAMPLES.glob("invalid-*.json")} == set(expected)
    for name, code in expected.items():
        refused(post(hub, example(name)), 400, code)
    for path in EXAMPLES.glob("*.short.json"):
        reply = post(hub, json.loads(path.read_text()))
        assert (reply.status, reply.json["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")


# -- cards


@pytest.mark.req("E-50")
@pytest.mark.req("X-11")
@pytest.mark.parametrize("path", ["/agent-card.json", "/a2a/agent-card", "/envelope/agent-card.json"])
def test_the_card_leads_to_where_messages_are_taken(hub: HubProcess, stub: EnvelopeAgent, path: str) -> None:
    card = hub.get(f"/agents/{stub.id}{path}").json
    assert card["id"] == stub.id
    assert card["endpoint"].endswith(f"/agents/{stub.id}")
    assert (card["capabilities"], card["supported_tasks"], card["status"]) == (["analysis"], ["echo"], "active")
    below = card["endpoint"].partition("/agents/")[2]
    for place in (f"/agents/{below}/a2a/messages", f"/agents/{below}/a2a/a2a/messages"):
        assert post(hub, ping(to=card["id"]), place).status == 200
    assert post(hub, assignment(stub), f"/agents/{stub.id}/envelope/a2a/messages").status == 200


@pytest.mark.req("E-50")
@pytest.mark.req("X-07")
def test_the_examples_card_is_taken_and_served_with_every_member(hub: HubProcess) -> None:
    came = {**example("agent-card"), "endpoint": "http://127.0.0.1:45999", "x_own": [1]}
    hub.register(came)
    served = hub.get(f"/agents/{came['id']}/agent-card.json").json
    assert {**served, "endpoint": ""} == {**came, "endpoint": ""}
    found = hub.get("/v1/a2a/discover?skill=analysis").json["agents"]
    assert came["id"] in [each["id"] for each in found]


@pytest.mark.req("E-50")
def test_the_hub_has_a_card_of_its_own(hub: HubProcess, stub: EnvelopeAgent) -> None:
    card = hub.get("/agent-card.json").json
    assert card == hub.get("/a2a/agent-card").json
    assert "echo" in card["supported_tasks"]
    assert not card["endpoint"].endswith("/")


def test_a_lenient_hub_takes_the_documents_own_ids(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data", auth="none").start({"DRAGOMAN_ENVELOPE_IDS": "lenient"})
    try:
        short = example("ping.short")
        hub.register(card_of(short["to"]))
        hub.register(card_of(short["from"]))
        assert post(hub, short).status == 200
        refused(post(hub, {**example("ping.short"), "message_id": ""}), 400, "INVALID_MESSAGE_FORMAT")
    finally:
        hub.stop()
