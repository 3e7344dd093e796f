"""Client certificates: shown to the agent they were stored for, on connections that serve no other."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.http import HttpRequest
from dragoman.model.secret import Secret
from dragoman.net import AddressRule, Client, ClientIdentity, NetError, Reach, TlsProfiles
from dragoman.ports.clock import SystemClock
from dragoman.security.certificates import encrypted_key
from tests.end_to_end.world import failing_paths, fresh, refused
from tests.support.hub import HubProcess
from tests.support.locked_agent import Authority, LockedAgent, locked_agent
from tests.support.run import run


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def _all(_: Mapping[str, str]) -> bool:
    return True


@pytest.fixture
def agent(authority: Authority) -> Iterator[LockedAgent]:
    with locked_agent(_all, tls=authority.serving()) as agent:
        yield agent


def given(authority: Authority, name: str) -> dict[str, Any]:
    certificate, key = authority.issue(name)
    return {"type": "mtls", "certificate": certificate, "key": key, "ca": authority.pem}


def test_each_agent_is_shown_its_own_certificate(hub: HubProcess, authority: Authority, agent: LockedAgent) -> None:
    """All of them at one address: no connection of one is used for another."""
    names = {who: fresh("mtls") for who in ("alice", "bob", "carol")}
    for who, name in names.items():
        hub.register(agent.card(), id=name, credentials=given(authority, who))
    bare = hub.register(agent.card(), id=fresh("mtls"))["id"]
    for _ in range(2):
        for who, name in names.items():
            reply = hub.call("talk", {"text": "hi"}, name)
            assert reply.status == 200, reply.body
            assert agent.peers[-1] == who
        assert hub.call("talk", {"text": "hi"}, bare).status == 503
    assert len(agent.peers) == 6
    shown = hub.get(f"/v1/agents/{names['alice']}").json["credential"]
    assert shown == {"set": True, "type": "mtls", "origin": agent.url}


def test_a_renewed_certificate_is_shown_from_then_on(hub: HubProcess, authority: Authority, agent: LockedAgent) -> None:
    name = hub.register(agent.card(), id=fresh("mtls"), credentials=given(authority, "old"))["id"]
    for who in ("old", "new"):
        if who == "new":
            body = {"credentials": given(authority, who)}
            assert hub.request("PATCH", f"/v1/agents/{name}", body).status == 200
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        assert agent.peers[-1] == who


def test_an_agent_behind_mtls_is_registered_by_its_url(
    hub: HubProcess, authority: Authority, agent: LockedAgent
) -> None:
    name = hub.register(None, url=agent.url, id=fresh("mtls"), credentials=given(authority, "alice"))["id"]
    assert hub.call("talk", {"text": "hi"}, name).status == 200
    assert set(agent.peers) == {"alice"}
    assert hub.post(f"/v1/agents/{name}/probe", {}).status == 200


def test_a_certificate_goes_to_no_other_origin(hub: HubProcess, authority: Authority, agent: LockedAgent) -> None:
    name = hub.register(agent.card(), id=fresh("mtls"), credentials=given(authority, "alice"))["id"]
    with locked_agent(_all, tls=authority.serving()) as elsewhere:
        hub.register(elsewhere.card(), id=name)
        refused(hub.call("talk", {"text": "hi"}, name), 503, "AGENT_UNAVAILABLE")
        assert elsewhere.peers == []


def test_an_agent_whose_own_certificate_is_of_another_authority_is_not_called(
    hub: HubProcess, authority: Authority, agent: LockedAgent, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    body = {**given(authority, "alice"), "ca": other.pem}
    name = hub.register(agent.card(), id=fresh("mtls"), credentials=body)["id"]
    assert hub.call("talk", {"text": "hi"}, name).status == 503
    del body["ca"]  # The system's authorities know nothing of this one.
    hub.request("PATCH", f"/v1/agents/{name}", {"credentials": body})
    assert hub.call("talk", {"text": "hi"}, name).status == 503
    assert agent.peers == []


def test_what_is_no_certificate_is_refused_without_being_quoted(
    hub: HubProcess, authority: Authority, agent: LockedAgent
) -> None:
    good, other = given(authority, "alice"), given(authority, "bob")
    rubbish = "secret-rubbish"
    for field, value in (("certificate", rubbish), ("key", rubbish), ("key", other["key"]), ("ca", rubbish)):
        body = {"agent_card": agent.card(), "id": fresh("mtls"), "credentials": {**good, field: value}}
        reply = hub.post("/v1/a2a/registry", body)
        assert reply.status == 400, reply.body
        assert failing_paths(reply.json["error"]) == {f"credentials.{field}"}
        assert rubbish.encode() not in reply.body
        assert b"PRIVATE" not in reply.body


def test_connections_of_one_certificate_serve_nobody_else(authority: Authority, agent: LockedAgent) -> None:
    """Not even where two agents have the very same certificate, and streams and sessions count as well."""
    certificate, key = authority.issue("shared")
    encrypted, password = encrypted_key(Secret(key))

    def identity(name: str) -> ClientIdentity:
        return ClientIdentity(id=name, chain=certificate, key=encrypted, password=password, ca=authority.pem)

    async def scenario() -> None:
        client = Client(clock=SystemClock(), rule=AddressRule.of(["loopback"]))
        request = HttpRequest(method="GET", url=f"{agent.url}/.well-known/agent-card.json")
        try:
            for who in ("a", "b", "a", "b"):
                deadline = SystemClock().monotonic() + 5
                assert (await client.send(request, deadline=deadline, identity=identity(who))).status == 200
                async with client.stream(request, deadline=deadline, identity=identity(who)) as answer:
                    assert answer.status == 200
                    async for _ in answer.chunks:
                        pass
            with pytest.raises(NetError) as failed:
                await client.send(request, deadline=SystemClock().monotonic() + 5)
            assert failed.value.kind in (Reach.TLS, Reach.RESET)
            opened = {name.rpartition(" as ")[2]: one.opened for name, one in client.figures().items()}
            assert (opened["a"], opened["b"]) == (1, 1)
        finally:
            await client.close()

    run(scenario())


def test_no_key_lies_in_a_file_in_clear(tmp_path: Path) -> None:
    """What OpenSSL reads is encrypted, and gone at once."""
    certificate, key = Authority(tmp_path).issue("x")
    encrypted, password = encrypted_key(Secret(key))
    assert "ENCRYPTED" in encrypted.reveal()
    assert key.splitlines()[1] not in encrypted.reveal()
    assert repr((encrypted, password)) == "(***, ***)"
    here = Path(tempfile.gettempdir())
    before = set(here.iterdir())
    identity = ClientIdentity(id="x", chain=certificate, key=encrypted, password=password)
    profiles = TlsProfiles()
    made = profiles.identified("agent.example", 443, identity)
    assert profiles.identified("agent.example", 443, identity) is made
    assert not [file for file in set(here.iterdir()) - before if file.name.startswith("dragoman-")]
