"""Signed requests: what is right counts once, what is wrong, old or copied never."""

import http.client
import itertools
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import SLUGS, asked
from tests.end_to_end.world import fresh, join, skill, tracebacks
from tests.security.signed import Sent, Signer, Wire, ago, ahead, new_signer, reason
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.security_figures import Figures

REPLAYS: Final = 1000
FORMS: Final = ("webhook", "first_form")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("signed") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


def _call(agent_id: str, text: str = "hi") -> dict[str, Any]:
    return {"target_agent_id": agent_id, "skill": "echo", "input": {"text": text}}


def _signed(signer: Signer, form: str, path: str, body: object, **more: Any) -> Sent:
    return getattr(signer, form)(path, body, **more)


def _post(hub: HubProcess, sent: Sent, **changed: str) -> Reply:
    with closing(Wire(hub)) as wire:
        return wire.send(sent, **changed)


@pytest.mark.req("P-29")
@pytest.mark.parametrize("form", FORMS)
def test_a_right_signature_counts_once_and_a_wrong_one_never(hub: HubProcess, agent: PlatformAgent, form: str) -> None:
    signer, name = new_signer(hub), join(hub, agent)["id"]
    good = _signed(signer, form, "/v1/a2a/call", _call(name))
    assert _post(hub, good).status == 200
    refusals = {
        "replayed": good,
        "signature_invalid": Sent(good.path, _signed(signer, form, "/", b"{}").headers, good.body),
        "timestamp_out_of_range": _signed(signer, form, "/v1/a2a/call", _call(name), at=ago(400)),
    }
    for why, sent in refusals.items():
        reply = _post(hub, sent)
        assert (reply.status, reason(reply)) == (401, why)
        assert reply.json["error"]["code"] == "AUTHORIZATION_ERROR"
    assert len(agent.requests) == 1


@pytest.mark.req("P-29")
@pytest.mark.parametrize("slug", SLUGS)
def test_every_dialect_is_signed_and_refused_alike(hub: HubProcess, agent: PlatformAgent, slug: str) -> None:
    name = join(hub, agent)["id"]
    own = join(hub, agent)
    signer = Signer(hub, own)
    request = asked(slug, name, "hello", sender=own["uuid"])
    good = signer.webhook(request.path, request.body, headers=request.headers)
    first = _post(hub, good)
    assert first.status == 200 and not first.json.get("error"), first.body
    for why, reply in (
        ("replayed", _post(hub, good)),
        ("signature_invalid", _post(hub, Sent(good.path, {**good.headers, "webhook-id": "other"}, good.body))),
        ("timestamp_out_of_range", _post(hub, signer.webhook(request.path, request.body, at=ago(301) - 1))),
    ):
        assert (reply.status, reason(reply)) == (401, why), reply.body


@pytest.mark.req("P-29")
@pytest.mark.parametrize("form", FORMS)
def test_a_signature_counts_for_300_seconds_either_way(hub: HubProcess, agent: PlatformAgent, form: str) -> None:
    signer, name = new_signer(hub), join(hub, agent)["id"]
    for at, status in ((ago(299), 200), (ahead(299), 200), (ago(302), 401), (ahead(302), 401)):
        sent = _signed(signer, form, "/v1/a2a/call", _call(name, str(at)), at=at)
        reply = _post(hub, sent)
        assert reply.status == status, (at, reply.body)
        assert status == 200 or reason(reply) == "timestamp_out_of_range"


@pytest.mark.req("P-29")
def test_a_signature_is_anybodys_but_the_callers_own_is_checked(hub: HubProcess, agent: PlatformAgent) -> None:
    one, other, name = new_signer(hub), new_signer(hub), join(hub, agent)["id"]
    by_other = one.webhook("/v1/a2a/call", _call(name), secret=other.secret)
    assert reason(_post(hub, by_other)) == "signature_invalid"
    # The administrator has no secret, and an anonymous caller none either: their signatures cannot be right.
    by_admin = one.webhook("/v1/a2a/call", _call(name), headers={"Authorization": f"Bearer {hub.token}"})
    assert reason(_post(hub, by_admin)) == "signature_invalid"
    assert _post(hub, one.webhook("/v1/a2a/call", _call(name)), Authorization="").status == 401
    # Under one id each caller has its own.
    for signer in (one, other):
        assert _post(hub, signer.webhook("/v1/a2a/call", _call(name), id="msg_same")).status == 200


@pytest.mark.req("P-29")
def test_every_operation_is_checked_and_no_copy_serves_another_one(hub: HubProcess, agent: PlatformAgent) -> None:
    signer, name = new_signer(hub), join(hub, agent)["id"]
    call_id = _post(hub, signer.webhook("/v1/a2a/call", _call(name))).json["id"]
    cancel = signer.webhook(f"/v1/a2a/call/{call_id}/cancel", {})
    wrong = Sent(cancel.path, {**cancel.headers, "webhook-timestamp": "1"}, cancel.body)
    assert reason(_post(hub, wrong)) == "signature_invalid"
    assert _post(hub, cancel).status == 409  # it has ended: but it was asked
    elsewhere = Sent(f"/v1/a2a/call/{call_id}/rating", cancel.headers, cancel.body)
    assert reason(_post(hub, elsewhere)) == "replayed"
    two = Sent("/v1/a2a/call", signer.webhook("/", b"[]").headers, b"[]")
    assert _post(hub, two).status == 400 and reason(_post(hub, two)) == "replayed"


@pytest.mark.req("P-29")
def test_both_secrets_count_while_a_key_is_rotated_and_the_old_one_not_after(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    name = join(hub, agent)["id"]
    made = hub.post("/v1/keys", {"name": "turns", "scopes": ["a2a:call"]}).json
    old = Signer(hub, made)
    new = Signer(hub, hub.post(f"/v1/keys/{made['key_id']}/rotate", {"overlap_s": 3600}).json)
    for signer, secret in itertools.product((old, new), (old.secret, new.secret)):
        sent = signer.webhook("/v1/a2a/call", _call(name), secret=secret)
        assert _post(hub, sent).status == 200
        assert reason(_post(hub, sent)) == "replayed"
        # Nor by the other of the two keys: it is the same caller.
        other = new if signer is old else old
        assert reason(_post(hub, sent, Authorization=f"Bearer {other.key}")) == "replayed"
    hub.request("DELETE", f"/v1/keys/{made['key_id']}")
    newest = Signer(hub, hub.post(f"/v1/keys/{_key_id(new)}/rotate", {"overlap_s": 0}).json)
    assert reason(_post(hub, newest.webhook("/v1/a2a/call", _call(name), secret=new.secret))) == "signature_invalid"
    assert _post(hub, newest.webhook("/v1/a2a/call", _call(name))).status == 200


def _key_id(signer: Signer) -> str:
    return signer.key.split("_")[1]


@pytest.mark.req("P-29")
def test_a_card_or_a_skill_can_require_a_signature_that_covers_the_time(hub: HubProcess, agent: PlatformAgent) -> None:
    signer = new_signer(hub)
    whole = join(hub, agent, authentication={"type": "bearer", "signing": "required"})["id"]
    skills = [skill("echo", signing="required"), skill("open")]
    partly = join(hub, agent, skills=skills)["id"]
    for name in (whole, partly):
        unsigned = Sent(
            "/v1/a2a/call", {"Authorization": f"Bearer {signer.key}", "Content-Type": "application/json"}, b""
        )
        for sent in (
            Sent(unsigned.path, unsigned.headers, signer.webhook("/", _call(name)).body),
            signer.first_form("/v1/a2a/call", _call(name)),
        ):
            reply = _post(hub, sent)
            assert (reply.status, reason(reply)) == (401, "signature_missing")
        assert _post(hub, signer.webhook("/v1/a2a/call", _call(name))).status == 200
    assert hub.call("open", {}, partly, token=signer.key).status == 200
    for slug in SLUGS:
        if slug in ("platform", "envelope"):
            continue
        request = asked(slug, whole, "hello")
        reply = request.post(hub, signer.key)
        assert (reply.status, reason(reply)) == (401, "signature_missing"), slug
        assert _post(hub, signer.webhook(request.path, request.body, headers=request.headers)).status == 200


@pytest.mark.req("P-29")
def test_the_steps_of_a_signed_workflow_are_signed_with_it(hub: HubProcess, agent: PlatformAgent) -> None:
    signer = new_signer(hub)
    word = fresh("word")
    name = join(hub, agent, skills=[skill("echo"), skill(word, signing="required")])["id"]
    body = {**_call(name), "then": [{"skill": word, "agent": name}]}
    unsigned = hub.post("/v1/a2a/call", body, token=signer.key)
    assert unsigned.json["status"] == "failed", unsigned.body
    assert _post(hub, signer.webhook("/v1/a2a/call", body)).json["status"] == "completed"


@pytest.mark.req("P-29")
def test_settings_refuse_the_first_form_or_every_unsigned_call(tmp_path: Path, agent: PlatformAgent) -> None:
    hub = HubProcess(tmp_path / "data").start({"DRAGOMAN_SIGNING_STRICT": "true", "DRAGOMAN_SIGNING_REQUIRED": "true"})
    try:
        signer, name = new_signer(hub), join(hub, agent)["id"]
        assert _post(hub, signer.webhook("/v1/a2a/call", _call(name))).status == 200
        for sent in (
            signer.first_form("/v1/a2a/call", _call(name)),
            signer.first_form("/v1/a2a/call/a2a_call_1/cancel", {}),
        ):
            assert reason(_post(hub, sent)) == "signature_missing"
        unsigned = hub.call("echo", {}, name, token=signer.key)
        assert (unsigned.status, reason(unsigned)) == (401, "signature_missing")
        assert hub.get("/v1/a2a/discover", token=signer.key).status == 200  # no call
    finally:
        hub.stop()


def test_wrong_signatures_do_not_lock_a_caller_out(hub: HubProcess, agent: PlatformAgent) -> None:
    signer, name = new_signer(hub), join(hub, agent)["id"]
    bad = signer.webhook("/v1/a2a/call", _call(name), id="msg_x")
    for _ in range(30):
        assert _post(hub, bad, webhook_id="msg_y").status == 401
    assert _post(hub, new_signer(hub).webhook("/v1/a2a/call", _call(name))).status == 200


def test_a_header_of_a_signature_comes_once(hub: HubProcess, agent: PlatformAgent) -> None:
    signer, name = new_signer(hub), join(hub, agent)["id"]
    sent = signer.webhook("/v1/a2a/call", _call(name))
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30)
    with closing(connection):
        connection.putrequest("POST", sent.path)
        for each in [*sent.headers.items(), ("Content-Length", str(len(sent.body))), ("webhook-id", "msg_other")]:
            connection.putheader(*each)
        connection.endheaders(sent.body)
        assert connection.getresponse().status == 400


# -- S5: copies


class Copies:
    """Requests that were sent and taken once, and all the ways in which somebody may send them again."""

    def __init__(self, signer: Signer, agent_id: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self.taken: list[Sent] = []
        for number in range(20):
            body = _call(agent_id, f"n{number}")
            self.taken.append(signer.webhook("/v1/a2a/call", body))
            self.taken.append(signer.first_form("/v1/a2a/call", body))
            self.taken.append(signer.webhook("/v1/a2a/call/async", {**body, "input": {"n": number}}))

    def some(self, count: int) -> Iterator[tuple[Sent, dict[str, str]]]:
        """Copies, each with what was changed in it."""
        for _ in range(count):
            sent = self._chance.choice(self.taken)
            changes: list[dict[str, str]] = [{}, {"x_request_id": f"req-{self._chance.random()}"}]
            if "webhook-id" in sent.headers:
                at = int(sent.headers["webhook-timestamp"])
                changes += [
                    {"webhook_id": f"msg_{self._chance.random()}"},
                    {"webhook_timestamp": str(at + self._chance.choice((1, 30, 301, -301)))},
                    {"webhook_signature": sent.headers["webhook-signature"] + " v1,AAAA"},
                    {"idempotency_key": f"k{self._chance.random()}"},
                ]
            else:
                changes += [{"X_Timestamp": str(int(sent.headers["X-Timestamp"]) - 400)}]
            yield sent, self._chance.choice(changes)


def _accepted(data: Path, replays: int, planted: str = "") -> int:
    """How many of these copies a hub takes: some in its first life, the rest after it was killed."""
    hub = HubProcess(data, planted=planted).start()
    taken = 0
    try:
        with platform_agent() as agent:
            signer, name = new_signer(hub), join(hub, agent)["id"]
            copies = Copies(signer, name, seed=7)
            with closing(Wire(hub)) as wire:
                for sent in copies.taken:
                    assert wire.send(sent).status in (200, 202)
                taken += sum(wire.send(sent, **changed).status < 400 for sent, changed in copies.some(replays // 2))
            hub.kill()
            hub.start()
            with closing(Wire(hub)) as wire:
                taken += sum(wire.send(sent, **changed).status < 400 for sent, changed in copies.some(replays // 2))
    finally:
        hub.stop()
    return taken


@pytest.mark.req("P-29")
def test_none_of_a_thousand_copies_is_taken_before_or_after_a_restart(tmp_path: Path, figures: Figures) -> None:
    accepted = _accepted(tmp_path / "data", REPLAYS)
    figures("S5", replays=REPLAYS, accepted=accepted)
    assert accepted == 0


@pytest.mark.planted
def test_a_hub_that_keeps_in_memory_what_it_saw_is_found(tmp_path: Path) -> None:
    assert _accepted(tmp_path / "data", REPLAYS, planted="seen_in_memory_only") > 0
