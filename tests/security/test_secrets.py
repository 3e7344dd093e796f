"""Forty planted secrets of all kinds, and nobody finds one again: not in logs, errors, answers, the database, backups.

What is by design the place of a secret is left out: the files of the root key and of the admin token, and the one
answer that shows a new key.
"""

import base64
import json
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.security.asking import line_of, listed, request_for
from tests.support.hub import ADMIN_TOKEN, ROOT, HubProcess
from tests.support.ports import free_port
from tests.support.reach import everything, framed
from tests.support.receiver import callback_receiver
from tests.support.security_figures import Figures
from tests.support.speaking import StubAgent
from tests.support.stranger import ask

WHERE_SECRETS_ARE: Final = ("root.key", "admin-token")
VERSION: Final = {"A2A-Version": "1.0"}


class Planted:
    """The secrets by name, and everything that the hub said meanwhile."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        self.hub = hub
        self.everyone = Everyone(hub, stack)
        self.receiver = stack.enter_context(callback_receiver())
        self.known: dict[str, str] = {"the admin token": ADMIN_TOKEN}
        self.answers: list[bytes] = []

    def secret(self, name: str, value: str | None = None) -> str:
        """A new secret, or one that the hub made, under a name."""
        made = value or f"s3cr3t{secrets.token_hex(12)}"
        self.known[name] = made
        return made

    def ask(self, method: str, path: str, body: Any = None, token: str = "", **headers: str) -> Any:
        """Ask, and keep the answer for later."""
        reply = self.hub.request(method, path, body, {name.replace("_", "-"): v for name, v in headers.items()}, token)
        self.answers.append(reply.body + repr(reply.headers).encode())
        return reply

    def made(self, reply: Any, name: str) -> str:
        """The key and the signing secret of an answer that shows them once: this answer does not count."""
        self.answers.pop()
        self.secret(f"the signing secret of {name}", reply.json["signing_secret"])
        shown: dict[str, str] = reply.json
        return self.secret(f"the key of {name}", shown.get("key") or shown["token"])


def plant(planted: Planted) -> None:
    """Use every kind of secret that there is, rightly and wrongly."""
    hub = planted.hub
    caller = planted.made(
        planted.ask("POST", "/v1/keys", {"name": "c", "scopes": ["a2a:call", "a2a:receive"]}), "a caller"
    )
    other = planted.made(planted.ask("POST", "/v1/keys", {"name": "o", "scopes": ["a2a:register"]}), "an owner")
    _rotate(planted)
    stub = planted.everyone.stub("platform")
    _agents(planted, other, stub)
    target = _register(planted, "a target", planted.everyone.stub("a2a-1.0"))
    _callbacks(planted, caller, target)
    _wrong(planted, target)
    _connected(planted, other, caller)
    _tokens(planted, caller)
    for path in ("/v1/deliveries", "/v1/calls"):
        eventually(lambda path=path: planted.ask("GET", path, token=caller).json["items"], "something was done")
    assert hub.get("/readyz").status == 200


def _rotate(planted: Planted) -> None:
    reply = planted.ask("POST", "/v1/keys", {"name": "r", "scopes": ["a2a:call"]})
    planted.made(reply, "a rotated key")
    planted.made(planted.ask("POST", f"/v1/keys/{reply.json['key_id']}/rotate", {}), "its successor")


def _register(planted: Planted, name: str, stub: StubAgent, token: str = "", **more: Any) -> str:
    reply = planted.ask("POST", "/v1/a2a/registry", {"agent_card": stub.card, "id": fresh("agt"), **more}, token)
    assert reply.status == 201, reply.body
    planted.made(reply, name)
    agent_id: str = reply.json["id"]
    return agent_id


def _agents(planted: Planted, owner: str, stub: StubAgent) -> None:
    """Agents with credentials of every kind, called once each, and one that repeats what it was shown."""
    password = planted.secret("a password")
    planted.secret("a password, encoded", base64.b64encode(f"user:{password}".encode()).decode())
    kinds: dict[str, dict[str, str]] = {
        "a bearer token": {"type": "bearer", "token": planted.secret("a bearer token")},
        "an API key": {"type": "apiKey", "token": planted.secret("an API key"), "header": "X-Agent-Key"},
        "a basic login": {"type": "basic", "username": "user", "password": password},
        "a client's secret": {
            "type": "oauth2",
            "client_id": "client",
            "client_secret": planted.secret("a client's secret"),
            "token_url": f"http://127.0.0.1:{free_port()}/token",
        },
    }
    for name, credentials in kinds.items():
        agent = _register(planted, f"an agent with {name}", stub, owner, credentials=credentials)
        changed = (
            {**credentials, "token": planted.secret(f"{name}, changed")} if "token" in credentials else credentials
        )
        planted.ask("PATCH", f"/v1/agents/{agent}", {"credentials": changed}, owner)
        planted.ask("POST", "/v1/a2a/call", {"target_agent_id": agent, "skill": "echo", "input": {"text": "fail"}})
        planted.ask("GET", f"/v1/agents/{agent}", token=owner)
    wrong = {"type": "bearer", "token": f"{planted.secret('a credential that is refused')}\r\n"}
    planted.ask("POST", "/v1/a2a/registry", {"agent_card": stub.card, "id": fresh("agt"), "credentials": wrong}, owner)
    url = f"http://user:{planted.secret('userinfo of an endpoint')}@127.0.0.1:{free_port()}/"
    planted.ask("POST", "/v1/a2a/registry", {"url": url}, owner)


def _callbacks(planted: Planted, caller: str, target: str) -> None:
    """Whoever wants to be told, with what the hub is to show there: where it arrives, and where nobody listens."""
    for name, url in (("a receiver", planted.receiver.url), ("nobody", f"http://127.0.0.1:{free_port()}/hook")):
        headers = {
            "Authorization": f"Bearer {planted.secret(f'the header for {name}')}",
            "X-Hook-Token": planted.secret(f"the header of its own for {name}"),
        }
        call = {"target_agent_id": target, "skill": "echo", "input": {"text": "x"}, "callback": {"url": url}}
        planted.ask("POST", "/v1/a2a/call/async", {**call, "callback": {"url": url, "headers": headers}}, caller)
        said = {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": "x"}]}
        push = {
            "url": url,
            "token": planted.secret(f"the 1.0 push token for {name}"),
            "authentication": {"scheme": "Bearer", "credentials": planted.secret(f"the 1.0 credentials for {name}")},
        }
        wanted = {"taskPushNotificationConfig": push, "returnImmediately": True}
        body = framed("SendMessage", {"message": said, "configuration": wanted})
        reply = planted.ask("POST", f"/agents/{target}/", body, caller, A2A_Version="1.0")
        task = reply.json["result"]["task"]["id"]
        for method, params in (("ListTaskPushNotificationConfigs", {"taskId": task}), ("GetTask", {"id": task})):
            planted.ask("POST", f"/agents/{target}/", framed(method, params), caller, A2A_Version="1.0")
        for slug, method in (("0.3", "message/send"), ("dotted", "message.send")):
            old = {
                "url": url,
                "token": planted.secret(f"the {slug} push token for {name}"),
                "authentication": {
                    "schemes": ["Bearer"],
                    "credentials": planted.secret(f"the {slug} credentials for {name}"),
                },
            }
            message = {"kind": "message", "messageId": fresh("m"), "role": "user"}
            message |= {"parts": [{"kind": "text", "text": "x"}]}
            params = {"message": message, "configuration": {"pushNotificationConfig": old, "blocking": True}}
            planted.ask("POST", f"/agents/{target}/", framed(method, params), caller)


def _wrong(planted: Planted, target: str) -> None:
    """Credentials that are not good, in every place where one may stand, and in some where none may."""
    call: dict[str, Any] = {"target_agent_id": target, "skill": "echo", "input": {}}
    for name, headers in {
        "a wrong key": {"Authorization": f"Bearer {planted.secret('a wrong key')}"},
        "a wrong API key": {"Authorization": "", "X-Api-Key": planted.secret("a wrong API key")},
        "a wrong login": {"Authorization": f"Basic {planted.secret('a wrong login')}"},
        "a cookie": {"Authorization": "", "Cookie": f"session={planted.secret('a cookie')}"},
        "a key that looks right": {
            "Authorization": f"Bearer ap_aaaaaaaaaaaa_{planted.secret('a key that looks right')}"
        },
        "a token of parts": {"Authorization": f"Bearer eyJhbGciOiJub25lIn0.{planted.secret('a token of parts')}.x"},
    }.items():
        reply = planted.hub.request("POST", "/v1/a2a/call", call, headers)
        planted.answers.append(reply.body + repr(reply.headers).encode())
        assert reply.status == 401, name
    for name in ("token", "access_token", "api_key"):
        planted.ask("GET", f"/v1/calls?{name}={planted.secret(f'{name} in a query')}")
    bad: dict[str, Any] = {
        "callback": {"url": "nowhere", "headers": {"Authorization": planted.secret("a refused header")}}
    }
    planted.ask("POST", "/v1/a2a/call", {**call, **bad})
    planted.ask("POST", "/v1/keys", {"name": "x", "scopes": ["a2a:call"], "password": planted.secret("a stray field")})
    said = ask(planted.hub.port, "GET", f"/v1/keys?secret={planted.secret('a secret in a bad query')}", ("Host: two",))
    planted.answers.append(said.body)


def _tokens(planted: Planted, caller: str) -> None:
    """Tokens for a key, with the right secret and with a wrong one."""
    for name, value in (("right", caller), ("wrong", f"ap_aaaaaaaaaaaa_{planted.secret('a wrong client secret')}")):
        form = f"grant_type=client_credentials&client_id={value.split('_')[1]}&client_secret={value}"
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""}
        reply = planted.hub.request("POST", "/oauth/token", form.encode(), sent)
        if name == "right":
            token = planted.secret("an access token", reply.json["access_token"])
            planted.ask("GET", "/v1/calls", token=token)
        else:
            planted.answers.append(reply.body)


def _connected(planted: Planted, owner: str, caller: str) -> None:
    """An agent that connects, and what it is given for its own calls."""
    skills = [{"name": "echo", "description": "d"}]
    card = {"name": fresh("connected"), "description": "d", "version": "1.0.0", "skills": skills}
    key = planted.made(
        planted.ask("POST", "/v1/keys", {"name": "x", "scopes": ["a2a:register", "a2a:receive"]}), "one that connects"
    )
    reply = planted.ask("POST", "/v1/agents/connect", {"agent_id": card["name"], "card": card}, key)
    planted.answers.pop()
    planted.secret("the token of a connected agent", reply.json["token"])
    for token in (owner, caller):
        planted.ask("GET", f"/v1/agents/connect?session={reply.json['session_id']}", token=token)


def readable(planted: Planted, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Everything that somebody may read later, by name."""
    yield "the log", planted.hub.log.read_bytes()
    yield "answers", b"\n".join(planted.answers)
    for file in sorted(planted.hub.data.rglob("*")):
        if file.is_file() and file.name not in WHERE_SECRETS_ARE:
            yield f"the file {file.name}", file.read_bytes()
    backup = folder / "backup.db"
    command = [sys.executable, "-m", "dragoman", "backup", str(backup), "--data", str(planted.hub.data)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    yield "a backup", backup.read_bytes()
    backup.unlink()


def everything_shown(planted: Planted, folder: Path) -> None:
    """Look at all that there is to look at, as an administrator."""
    call = planted.hub.get("/v1/calls").json["items"][0]
    agent = planted.hub.get("/v1/agents").json["items"][0]
    for each in listed(everything(folder / "same")):
        if each.method != "GET" or line_of(each).ends:
            continue
        named = {"agent": agent["id"], "task": call["id"]}.get(line_of(each).names, "x")
        request = request_for(each, id=named, agent=agent["id"], uuid=agent["uuid"])
        said = ask(planted.hub.port, "GET", request.path, (f"Authorization: Bearer {ADMIN_TOKEN}", *request.lines))
        planted.answers.append(said.body + said.head.encode())


def found(planted: Planted, folder: Path) -> list[str]:
    """Which secret lies where; also in other spellings."""
    places = list(readable(planted, folder))
    lying: list[str] = []
    for name, value in planted.known.items():
        spelled = {value.encode(), base64.b64encode(value.encode()).rstrip(b"="), value.encode().hex().encode()}
        lying += [f"{name} in {where}" for where, text in places if any(each in text for each in spelled)]
    return sorted(lying)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path_factory.mktemp("secrets") / "data").start({"DRAGOMAN_LOG_LEVEL": "debug"})
        stack.callback(hub.stop)
        planted = Planted(hub, stack)
        plant(planted)
        yield planted
        assert tracebacks(hub) == []


def test_no_planted_secret_is_found_again(planted: Planted, tmp_path: Path, figures: Figures) -> None:
    everything_shown(planted, tmp_path)
    lying = found(planted, tmp_path)
    figures("S6", secrets_planted=len(planted.known), places_searched=4, secrets_found=len(lying))
    assert len(planted.known) >= 40
    assert lying == [], "\n".join(lying)


def test_the_secrets_did_reach_where_they_were_meant_for(planted: Planted) -> None:
    """Were they dropped on the way in, nobody would find them either."""
    eventually(lambda: len(planted.receiver.got) >= 4, "the receiver was told")
    told = json.dumps([dict(each.headers) for each in planted.receiver.got])
    for name in ("the header for a receiver", "the 1.0 push token for a receiver", "the 0.3 push token for a receiver"):
        assert planted.known[name] in told, name


def test_the_root_key_is_in_its_file_alone(planted: Planted, tmp_path: Path) -> None:
    raw = (planted.hub.data / "root.key").read_bytes().strip()
    spelled = {raw}
    if re.fullmatch(rb"[0-9a-f]{64}", raw):
        spelled |= {bytes.fromhex(raw.decode()), base64.b64encode(bytes.fromhex(raw.decode()))}
    for where, text in readable(planted, tmp_path):
        assert not any(each in text for each in spelled), where
