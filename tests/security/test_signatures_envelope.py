"""Who an envelope is from: the authenticated agent alone, signed where it has a key, and within its limits."""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from dragoman.model.secret import Secret
from dragoman.security.envelope_signing import new_sender_key, sign_envelope
from tests.end_to_end.every_dialect import enveloped
from tests.end_to_end.world import eventually, join, skill, tracebacks
from tests.security.signed import Signer, Wire
from tests.support.agents.envelope import EnvelopeAgent, now
from tests.support.agents.envelope import agent as envelope_agent
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent

PATH: Final = "/a2a/messages"


class Giver:
    """An agent that sends envelopes: its registration, and the private half of the key in its card."""

    def __init__(self, hub: HubProcess, *, with_key: bool = True, **more: Any) -> None:
        self.hub = hub
        self.key, public = new_sender_key("k1")
        card = {"id": str(uuid4()), "name": "Giver", "version": "1.0.0", "supported_tasks": ["x"]}
        self.answer = hub.register({**card, **({"keys": [public]} if with_key else {}), **more})
        self.id: str = self.answer["id"]
        self.token: str = self.answer["token"]

    def message(self, to: str, *, task_type: str = "echo", **payload: Any) -> dict[str, Any]:
        """A task for somebody, unsigned."""
        task = {"task_id": str(uuid4()), "task_type": task_type, "title": "t", "description": "d"}
        whole = {**task, "payload": {"text": "hi", "n": 1.5}, **payload}
        return {**enveloped(self.id, to, "task_assignment", whole), "timestamp": now()}

    def post(self, message: dict[str, Any], token: str = "") -> Reply:
        """Send it as this agent, or by another's token."""
        return self.hub.post(PATH, message, token=token or self.token)

    def sign(self, message: dict[str, Any], key: Secret | None = None) -> dict[str, Any]:
        """The message with this agent's signature."""
        return sign_envelope(message, key or self.key)


def _refused(reply: Reply, why: str | None = "signature_invalid") -> None:
    assert (reply.status, reply.json["error_code"]) == (403, "CAPABILITY_MISMATCH"), reply.body
    assert why is None or reply.json["payload"]["details"]["reason"] == why


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("senders") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


# -- E-28


@pytest.mark.req("E-28")
@pytest.mark.parametrize("kind", ["task_assignment", "status_update", "task_completion", "ping", "error"])
def test_a_message_is_from_the_agent_that_authenticated(hub: HubProcess, agent: PlatformAgent, kind: str) -> None:
    name = join(hub, agent)["id"]
    me, other = Giver(hub), Giver(hub)
    payloads: dict[str, dict[str, Any]] = {
        "task_assignment": me.message(name)["payload"],
        "status_update": {"task_id": "t1", "status": "in_progress"},
        "task_completion": {"task_id": "t1", "status": "completed", "result": {}},
        "ping": {"nonce": "n"},
        "error": {"original_message_id": str(uuid4()), "error_code": "TIMEOUT", "error_message": "late"},
    }
    own, foreign = (enveloped(each.id, name, kind, payloads[kind]) for each in (me, other))
    assert me.post(own).status in (200, 404)
    _refused(me.post(foreign), None)
    _refused(me.post({**foreign, "from": f"agent-{other.answer['uuid']}"}), None)
    assert not any("t1" in str(body) for _, _, body in agent.requests)


@pytest.mark.req("E-28")
def test_nobody_speaks_for_an_id_that_nobody_has(hub: HubProcess, agent: PlatformAgent) -> None:
    me, name = Giver(hub), join(hub, agent)["id"]
    for kind in ("task_assignment", "ping"):
        payload = me.message(name)["payload"] if kind == "task_assignment" else {"nonce": "n"}
        _refused(me.post(enveloped(str(uuid4()), name, kind, payload)), None)
    plain = hub.new_key("a2a:call")
    _refused(me.post(me.message(name), token=plain), None)
    assert agent.requests == []


@pytest.mark.req("E-28")
def test_a_jwt_of_an_agent_speaks_for_that_agent_alone(hub: HubProcess, agent: PlatformAgent) -> None:
    name, me, other = join(hub, agent)["id"], Giver(hub), Giver(hub)
    jwt = _jwt(hub, me.token)
    assert me.post(me.message(name), token=jwt).status == 200
    _refused(me.post(other.message(name), token=jwt), None)


@pytest.mark.req("E-28")
def test_a_directory_task_is_from_the_agent_that_authenticated(hub: HubProcess, agent: PlatformAgent) -> None:
    name, me, other = join(hub, agent)["id"], Giver(hub), Giver(hub)
    for sender, status in ((me.id, 200), (other.id, 403)):
        params = {"taskId": str(uuid4()), "action": "echo", "sender": sender, "input": {"text": "hi"}}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "a2a/task", "params": params}
        assert hub.post(f"/agents/{name}/", frame, token=me.token).status == status


def _jwt(hub: HubProcess, key: str) -> str:
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    plain = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""}
    token: str = hub.post("/oauth/token", urlencode(form).encode(), plain).json["access_token"]
    assert token.count(".") == 2
    return token


# -- E-32


@pytest.mark.req("E-32")
def test_the_signature_of_a_sender_with_a_key_is_verified(hub: HubProcess, agent: PlatformAgent) -> None:
    me, name = Giver(hub), join(hub, agent)["id"]
    good = me.sign(me.message(name, metadata={"ü": "\u20ac", "a": [1, 2.0, -0.0, 1e21, None, True]}))
    assert me.post(good).status == 200
    assert me.post(good).status == 200  # the same message again is the same task: its id is the replay guard
    assert me.post(me.message(name)).status == 200  # nobody demands one
    assert me.post({**me.message(name), "signature": None}).status == 200
    eventually(lambda: len(agent.requests) == 3, "the three tasks came")
    edits: list[dict[str, Any]] = [
        {"to": Giver(hub).id},
        {"message_id": str(uuid4())},
        {"timestamp": "2026-01-01T00:00:00Z"},
        {"extra": 1},
        {"signature": good["signature"][:-4] + "AAA="},
        {"signature": "no base64!"},
        {"signature": "AAAA"},
    ]
    for edit in edits:
        _refused(me.post({**good, **edit}))
    inner = copy.deepcopy(good)
    inner["payload"]["payload"]["text"] = "ho"
    _refused(me.post(inner))
    stranger, _ = new_sender_key("k1")
    _refused(me.post(me.sign(me.message(name), stranger)))
    assert me.post({**me.message(name), "signature": 7}).status == 400
    assert len(agent.requests) == 3


@pytest.mark.req("E-32")
def test_a_signature_that_nobody_can_check_is_let_be(hub: HubProcess, agent: PlatformAgent) -> None:
    me, name = Giver(hub, with_key=False), join(hub, agent)["id"]
    assert me.post({**me.message(name), "signature": "base64-encoded-signature"}).status == 200


@pytest.mark.req("E-32")
def test_a_number_without_a_canonical_form_cannot_be_signed(hub: HubProcess, agent: PlatformAgent) -> None:
    me, name = Giver(hub), join(hub, agent)["id"]
    signed = me.sign(me.message(name))
    _refused(me.post({**signed, "payload": {**signed["payload"], "metadata": {"n": 2**60}}}))


@pytest.mark.req("E-32")
def test_a_target_can_require_a_signature(hub: HubProcess) -> None:
    with ExitStack() as stack:
        target: EnvelopeAgent = stack.enter_context(envelope_agent())
        name = hub.register({**target.card, "signing": "required"})["id"]
        me, keyless = Giver(hub), Giver(hub, with_key=False)
        _refused(me.post(me.message(name)))
        _refused(keyless.post({**keyless.message(name), "signature": "AAAA"}))
        old = {**me.message(name), "timestamp": "2020-01-01T00:00:00Z"}
        _refused(me.post(me.sign(old)))  # so old that the hub would no longer know it by its id
        assert me.post(me.sign(me.message(name))).status == 200
        signer = Signer(hub, keyless.answer)
        with closing(Wire(hub)) as wire:
            assert wire.send(signer.webhook(PATH, keyless.message(name))).status == 200
        eventually(lambda: len(target.assignments) == 2, "both came")
        assert hub.get(f"/agents/{name}/agent-card.json").json["signing"] == "required"


# -- E-31


@pytest.mark.req("E-31")
def test_an_agent_may_be_limited_to_given_task_types_of_given_targets(hub: HubProcess, agent: PlatformAgent) -> None:
    skills = [skill("echo"), skill("echo-loud"), skill("erase")]
    one, two = (join(hub, agent, skills=skills)["id"] for _ in range(2))
    me = Giver(hub)
    allow = [f"{one}:echo*", f"{two}:erase"]
    made = hub.post("/v1/keys", {"name": "limited", "scopes": ["a2a:call"], "agent_id": me.id, "allow": allow}).json
    for target, task_type, status in (
        (one, "echo", 200),
        (one, "echo-loud", 200),
        (one, "erase", 403),
        (two, "erase", 200),
        (two, "echo", 403),
    ):
        reply = me.post(me.message(target, task_type=task_type), token=made["key"])
        assert reply.status == status, (target, task_type, reply.body)
        if status == 403:
            _refused(reply, None)
            assert reply.json["payload"]["details"]["allowed"] == allow
    _refused(me.post(me.message(one, task_type="erase"), token=_jwt(hub, made["key"])), None)
    # By whatever dialect, and by a call that leaves the choice to the agent.
    assert hub.call("erase", {}, one, token=made["key"]).status == 403
    frame = {"jsonrpc": "2.0", "id": 1, "method": "message.send", "params": {"message": _said()}}
    assert hub.post(f"/agents/{two}/", frame, token=made["key"]).status == 403
    assert hub.post(f"/agents/{two}/", frame).status == 200
    (listed,) = [each for each in hub.get("/v1/keys").json["items"] if each["key_id"] == made["key_id"]]
    assert listed["allow"] == allow
    rotated = hub.post(f"/v1/keys/{made['key_id']}/rotate", {"overlap_s": 0}).json
    assert rotated["allow"] == allow
    _refused(me.post(me.message(one, task_type="erase"), token=rotated["key"]), None)


def _said() -> dict[str, Any]:
    return {"messageId": str(uuid4()), "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
