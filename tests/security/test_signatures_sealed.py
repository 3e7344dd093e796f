"""Payloads that only their target can read: the hub carries them, and nothing of what they say is ever in its hands."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest

from dragoman.model.content import Data, Message, Role
from dragoman.model.fit import Feature
from dragoman.model.operations import SendTask
from dragoman.model.secret import Secret
from dragoman.security.envelope_signing import new_sender_key, sign_envelope
from dragoman.security.jwe import NotDecrypted, decrypt_payload, encrypt_payload, new_sealing_key
from dragoman.server.app import DATABASE
from tests.dialects.loops import EVERY_WIRE, Wire, arriving, outgoing_of
from tests.end_to_end.every_dialect import enveloped
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.agents.envelope import EnvelopeAgent, now
from tests.support.agents.envelope import agent as envelope_agent
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent

PATH: Final = "/a2a/messages"
PLAIN: Final = "the-plaintext-7e2a91"


class Correspondent:
    """An agent with a key of its own to read with, and one to sign with."""

    def __init__(self, hub: HubProcess, stub: EnvelopeAgent) -> None:
        self.hub, self.stub = hub, stub
        self.reads_with, self.public = new_sealing_key(f"seal-{stub.id[:8]}")
        self.signs_with, signing = new_sender_key("sign")
        stub.silent = True
        answer = hub.register({**stub.card, "keys": [signing, self.public]})
        stub.token = answer["token"]
        self.id: str = answer["id"]

    def message(self, to: str, kind: str, payload: dict[str, Any], key: dict[str, Any]) -> dict[str, Any]:
        """A message whose payload only the owner of that key can read."""
        whole = {**enveloped(self.id, to, kind, {}), "timestamp": now()}
        sealed = encrypt_payload(payload, key, sender=self.id, to=to, message_id=whole["message_id"])
        return {**whole, "payload": sealed}

    def post(self, message: dict[str, Any]) -> Reply:
        """Send it to the hub."""
        return self.hub.post(PATH, message, token=self.stub.token)

    def read(self, message: dict[str, Any]) -> dict[str, Any]:
        """What a message says to this agent."""
        return _opened(message, self.reads_with)


def _opened(message: dict[str, Any], key: Secret) -> dict[str, Any]:
    bound = {"sender": message["from"], "to": message["to"], "message_id": message["message_id"]}
    return decrypt_payload(message["payload"], key, **bound)


def _task(text: str = PLAIN) -> dict[str, Any]:
    task = {"task_id": str(uuid4()), "task_type": "echo", "title": text, "description": text}
    return {**task, "payload": {"text": text}, "priority": "high", "deadline": "2030-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("sealed") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def pair(hub: HubProcess) -> Iterator[tuple[Correspondent, Correspondent]]:
    with envelope_agent("giver") as one, envelope_agent("worker") as other:
        yield Correspondent(hub, one), Correspondent(hub, other)


@pytest.mark.req("E-29")
def test_a_task_and_its_result_travel_so_that_only_the_other_end_reads_them(
    hub: HubProcess, pair: tuple[Correspondent, Correspondent]
) -> None:
    giver, worker = pair
    task = _task()
    published = hub.get(f"/agents/{worker.id}/agent-card.json", token=giver.stub.token).json["keys"]
    key = next(jwk for jwk in published if jwk["use"] == "enc")
    sent = sign_envelope(giver.message(worker.id, "task_assignment", task, key), giver.signs_with)
    acknowledged = giver.post(sent)
    assert acknowledged.status == 200, acknowledged.body
    assert acknowledged.json["payload"] == {"task_id": task["task_id"], "status": "assigned"}

    (came,) = eventually(lambda: worker.stub.assignments, "the task came")
    assert worker.read(came) == task
    assert {name: came["payload"][name] for name in ("task_type", "priority", "deadline")} == {
        name: task[name] for name in ("task_type", "priority", "deadline")
    }
    with pytest.raises(NotDecrypted):
        giver.read(came)

    told = {"task_id": task["task_id"], "status": "in_progress", "progress": 0.5, "message": PLAIN}
    assert worker.post(worker.message(giver.id, "status_update", told, giver.public)).status == 200
    done = {"task_id": task["task_id"], "status": "completed", "result": {"text": PLAIN}}
    assert worker.post(worker.message(giver.id, "task_completion", done, giver.public)).status == 200

    def reports() -> list[dict[str, Any]]:
        bodies = [body for _, _, _, body in giver.stub.requests if body and "jwe" in body["payload"]]
        return bodies if any(body["type"] == "task_completion" for body in bodies) else []

    opened = [giver.read(report) for report in eventually(reports, "the end is told")]
    assert opened == [told, done]
    _nowhere_in(hub)


def _nowhere_in(hub: HubProcess) -> None:
    """The plaintext is in no table of the store, in none of its files, and in no line of the log."""
    with closing(sqlite3.connect(hub.data / DATABASE)) as store:
        assert store.execute("SELECT count(*) FROM task").fetchone()[0] > 0
    for file in [*hub.data.iterdir(), hub.log]:
        if file.is_file():
            assert PLAIN.encode() not in file.read_bytes(), file.name


@pytest.mark.req("E-29")
def test_a_failure_and_a_cancel_of_an_encrypted_task(
    hub: HubProcess, pair: tuple[Correspondent, Correspondent]
) -> None:
    giver, worker = pair
    task, other = _task(), _task()
    for each in (task, other):
        assert giver.post(giver.message(worker.id, "task_assignment", each, worker.public)).status == 200
    eventually(lambda: len(worker.stub.assignments) == 2, "both came")
    failed = {"task_id": task["task_id"], "status": "failed", "result": {"error": PLAIN}}
    assert worker.post(worker.message(giver.id, "task_completion", failed, giver.public)).status == 200
    stop = {**enveloped(giver.id, worker.id, "status_update", {"task_id": other["task_id"], "status": "cancelled"})}
    assert giver.post(stop).status == 200
    assert worker.stub.cancelled.wait(10)
    told = [body["payload"] for _, _, _, body in worker.stub.requests if body and body["type"] == "status_update"]
    assert [each["task_id"] for each in told] == [other["task_id"]]

    def end() -> dict[str, Any] | None:
        ends = [body for _, _, _, body in giver.stub.requests if body and body["type"] == "task_completion"]
        return next((body for body in ends if "jwe" in body["payload"]), None)

    assert giver.read(eventually(end, "the failure is told")) == failed


@pytest.mark.req("E-29")
def test_a_target_without_that_key_is_not_sent_what_it_cannot_read(
    hub: HubProcess, pair: tuple[Correspondent, Correspondent]
) -> None:
    giver, worker = pair
    with platform_agent() as keyless:
        name = hub.register(keyless.card(id=fresh()))["id"]
        for to, key, why in ((name, worker.public, "no_key"), (worker.id, giver.public, "unknown_key")):
            reply = giver.post(giver.message(to, "task_assignment", _task(), key))
            assert (reply.status, reply.json["error_code"]) == (400, "CAPABILITY_MISMATCH")
            assert reply.json["payload"]["details"]["reason"] == why
        assert keyless.requests == []


@pytest.mark.req("E-29")
@pytest.mark.parametrize(
    "edit",
    [
        {"title": "in clear"},
        {"payload": {}},
        {"metadata": {}},
        {"status": "assigned"},
        {"jwe": "a.b.c"},
        {"jwe": 7},
        {"task_id": None},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_what_is_not_encrypted_as_it_should_be_is_refused(
    pair: tuple[Correspondent, Correspondent], edit: dict[str, Any]
) -> None:
    giver, worker = pair
    message = giver.message(worker.id, "task_assignment", _task(), worker.public)
    reply = giver.post({**message, "payload": {**message["payload"], **edit}})
    assert (reply.status, reply.json["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")


@pytest.mark.req("E-29")
def test_a_ciphertext_that_was_moved_to_another_message_is_refused(
    pair: tuple[Correspondent, Correspondent],
) -> None:
    giver, worker = pair
    message = giver.message(worker.id, "task_assignment", _task(), worker.public)
    reply = giver.post({**message, "message_id": str(uuid4())})
    assert (reply.status, reply.json["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
    assert "another message" in reply.json["error"]


@pytest.mark.req("E-29")
@EVERY_WIRE
def test_towards_other_dialects_it_is_one_data_part(wire: Wire) -> None:
    _, public = new_sealing_key("seal-1")
    sealed = encrypt_payload(_task(), public, sender="giver", to="worker", message_id="m1")
    part = Data(value={"jwe": sealed["jwe"]}, media_type="application/jose")
    message = Message(id="m1", role=Role.USER, parts=(part,))
    outgoing = msgspec.structs.replace(outgoing_of(wire, SendTask(message=message, skill="echo")), message=message)
    request = wire.dialect.ask(outgoing)
    assert request is not None
    heard = arriving(wire, request).operation
    assert isinstance(heard, SendTask)
    (came,) = heard.message.parts
    assert isinstance(came, Data) and came.value == part.value
    assert came.media_type == (part.media_type if Feature.PARTS in wire.features else None)


def test_a_card_publishes_no_private_key(hub: HubProcess, agent: PlatformAgent) -> None:
    private, public = new_sealing_key("seal-1")
    for keys in ([msgspec.json.decode(private.reveal())], [public] * 17):
        reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=fresh(), keys=keys)})
        assert (reply.status, reply.json["error"]["details"]["errors"][0]["path"]) == (400, "agent_card.keys")


@pytest.mark.req("E-29")
def test_a_platform_agent_is_given_the_ciphertext_as_its_input(
    hub: HubProcess, pair: tuple[Correspondent, Correspondent], agent: PlatformAgent
) -> None:
    giver, _ = pair
    private, public = new_sealing_key("seal-1")
    schema = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
    skills = [{"name": "echo", "description": "e", "input_schema": schema, "output_schema": schema}]
    name = hub.register(agent.card(id=fresh(), keys=[public], skills=skills))["id"]
    task = _task()
    message = giver.message(name, "task_assignment", task, public)
    assert giver.post(message).status == 200
    eventually(lambda: agent.requests, "the task came")
    given = agent.requests[0][2]["input"]
    assert given == {"jwe": message["payload"]["jwe"]}
    assert _opened({**message, "payload": given}, private) == task


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent
