"""Real clients' habits on the wire, as small functions: each asks an agent at the hub one thing, and reads the answer
as that client reads it. What that client would not take is an assertion.

    oldcard03     the 0.3 SDK (Strands, BeeAI, CrewAI)   refuses a card without `url`; 0.3's own shapes
    only10        AG2                                    refuses a card that names 0.3 first; reads artifacts alone
    hybridclient  fasta2a                                says no kinds, wants its answer wrapped
    rest03py      the 0.3 SDK over HTTP+JSON             refuses any member outside the protobuf
    rest03js      the JavaScript 0.3 SDK over HTTP+JSON  empty bodies, a numeric code in errors
    byurl10       MAF                                    looks at no card
    avclient      agentvault                             refuses nulls, unknown words and other hosts
"""

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.quirks.protos import V03, V10, strange_members

Client = Callable[[str, str, str], str]

PATIENCE_S: Final = 20.0
PAUSE_S: Final = 0.05
ZULU: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
STATES_03: Final = {"submitted", "working", "input-required", "auth-required", "completed", "canceled", "failed"} | {
    "rejected",
    "unknown",
}
CARD_03: Final = ("name", "description", "version", "url", "capabilities", "defaultInputModes", "defaultOutputModes")
STATES_AV: Final = {"SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED"}
PYTHON: Final = {"User-Agent": "python-httpx/0.28.1"}
NODE: Final = {"User-Agent": "node"}
IN_10: Final = {"A2A-Version": "1.0"}


class Answer:
    """What the hub answered."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def asked(method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    """One request; a body is JSON, and one that is empty says nothing but its type."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_S)
    said = {"Content-Type": "application/json"} if body is not None else {}
    raw = b"" if body in (None, "") else json.dumps(body).encode()
    try:
        path = f"{place.path or '/'}?{place.query}" if place.query else place.path or "/"
        connection.request(method, path, body=raw, headers={**said, **(headers or {})})
        reply = connection.getresponse()
        return Answer(reply.status, reply.read())
    finally:
        connection.close()


def oldcard03(hub_url: str, agent_id: str, text: str) -> str:
    """The 0.3 SDK: by the card's url, in 0.3's own shapes."""
    card = _card(hub_url, agent_id)
    assert [name for name in CARD_03 if not card.get(name)] == []
    assert card["preferredTransport"] == "JSONRPC"
    assert card["protocolVersion"].startswith("0.3")
    assert {"url": card["url"], "transport": "JSONRPC"} in card["additionalInterfaces"]
    for each in card["skills"]:
        assert [name for name in ("id", "name", "description", "tags") if not each.get(name)] == []
    message = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": text}]}
    configuration: dict[str, Any] = {"acceptedOutputModes": [], "blocking": True}
    task = _called(card["url"], "message/send", {"message": message, "configuration": configuration})
    check_task_03(task)
    assert "task" not in task, "who says its kinds gets plain 0.3"
    assert task["status"]["state"] == "completed"
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def only10(hub_url: str, agent_id: str, text: str) -> str:
    """AG2: refuses a card whose first interface is not 1.0's, and any answer that is not exactly that."""
    merged = _card(hub_url, agent_id)
    assert merged["supportedInterfaces"][0]["protocolVersion"] == "1.0"
    card = _card(hub_url, agent_id, IN_10)
    assert {each["protocolVersion"] for each in card["supportedInterfaces"]} == {"1.0"}
    assert not {"url", "protocolVersion", "preferredTransport"} & card.keys()
    first = card["supportedInterfaces"][0]
    assert first["protocolBinding"] == "JSONRPC"
    return _sent_10(first["url"], text)


def hybridclient(hub_url: str, agent_id: str, text: str) -> str:
    """fasta2a: no kinds, the answer under `task`, then a look at it with a null for an id."""
    base = f"{hub_url}/agents/{agent_id}/"
    message = {"role": "user", "messageId": "m-1", "parts": [{"text": text}]}
    sent = _called(base, "message/send", {"message": message})["task"]
    looked = _called(base, "tasks/get", {"id": sent["id"]}, request_id=None)
    assert looked["status"]["state"] == sent["status"]["state"] == "completed"
    assert looked["artifacts"] == sent["artifacts"]
    return "".join(part["text"] for artifact in sent["artifacts"] for part in artifact["parts"])


def rest03py(hub_url: str, agent_id: str, text: str) -> str:
    """Python's 0.3 SDK over HTTP+JSON: send, look, cancel; one member too many breaks it."""
    base = _rest_base(hub_url, agent_id)
    message = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]}
    body = {"message": message, "configuration": {"blocking": True}}
    sent = asked("POST", f"{base}/v1/message:send", body, PYTHON)
    assert sent.status == 200, sent.body
    assert strange_members(sent.json, "SendMessageResponse", V03) == []
    task = sent.json["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    looked = asked("GET", f"{base}/v1/tasks/{task['id']}", headers=PYTHON)
    assert strange_members(looked.json, "Task", V03) == []
    assert looked.json["artifacts"] == task["artifacts"]
    late = asked("POST", f"{base}/v1/tasks/{task['id']}:cancel", {"name": f"tasks/{task['id']}"}, PYTHON)
    assert (late.status, late.json["type"]) == (400, "TaskNotCancelableError")
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def rest03js(hub_url: str, agent_id: str, text: str) -> str:
    """JavaScript's 0.3 SDK over HTTP+JSON: empty bodies, a bare push config, and a number as every error's code."""
    base = _rest_base(hub_url, agent_id)
    message: dict[str, Any] = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}], "extensions": []}
    configuration: dict[str, Any] = {"acceptedOutputModes": [], "blocking": True}
    body = {"message": message, "configuration": configuration}
    sent = asked("POST", f"{base}/v1/message:send", body, NODE)
    assert sent.status == 200, sent.body
    task = sent.json["task"]
    name = f"tasks/{task['id']}"
    late = asked("POST", f"{base}/v1/{name}:cancel", "", NODE)
    assert late.json["code"] == -32002
    config = {"id": "c-1", "url": "https://hook.test/", "token": "t"}
    pushed = asked("POST", f"{base}/v1/{name}/pushNotificationConfigs", _bare_push(name, config), NODE)
    assert pushed.status == 200, pushed.body
    lost = asked("GET", f"{base}/v1/tasks/task-nobody-has-this", headers=NODE)
    assert (lost.status, lost.json["code"]) == (404, -32001)
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def byurl10(hub_url: str, agent_id: str, text: str) -> str:
    """MAF: posts 1.0 to the url it was given, with and without its final slash."""
    without, with_slash = [_sent_10(f"{hub_url}/agents/{agent_id}{slash}", text) for slash in ("", "/")]
    assert without == with_slash
    return without


def avclient(hub_url: str, agent_id: str, text: str) -> str:
    """agentvault: sends, then looks until it is done; refuses every word it does not know."""
    card = asked("GET", f"{hub_url}/agents/{agent_id}/agentvault/agent-card.json").json
    assert card["url"].startswith(("https://", "http://localhost")), card["url"]
    assert [name for name in ("schemaVersion", "humanReadableId", "agentVersion", "provider") if name not in card] == []
    assert card["authSchemes"] == [{"scheme": "none"}]
    message = {"role": "user", "parts": [{"type": "text", "content": text}]}
    sent = _called(card["url"], "tasks/send", {"message": message}, request_id="req-init-1")
    until = time.monotonic() + PATIENCE_S
    while True:
        task = _called(card["url"], "tasks/get", {"id": sent["id"]}, request_id="req-get-1")
        assert task["state"] in STATES_AV
        if task["state"] == "COMPLETED":
            return _said_av(task)
        assert task["state"] in ("SUBMITTED", "WORKING"), task
        assert time.monotonic() < until, "the task does not end"
        time.sleep(PAUSE_S)  # as this client does: it has no other way but to look again


CLIENTS: Final[Mapping[str, Client]] = {
    "oldcard03": oldcard03,
    "only10": only10,
    "hybridclient": hybridclient,
    "rest03py": rest03py,
    "rest03js": rest03js,
    "byurl10": byurl10,
    "avclient": avclient,
}


def check_task_03(task: Any) -> None:
    """What the models of 0.3 demand of a task."""
    assert task["kind"] == "task"
    assert task["id"]
    assert task["contextId"]
    assert task["status"]["state"] in STATES_03
    for holder in (*task["artifacts"], *task["history"]):
        for part in holder["parts"]:
            assert part["kind"] in part, part
    assert all(artifact["artifactId"] for artifact in task["artifacts"])
    for turn in task["history"]:
        assert (turn["kind"], bool(turn["messageId"])) == ("message", True)
        assert turn["role"] in ("user", "agent")


def _card(hub_url: str, agent_id: str, headers: Mapping[str, str] | None = None) -> Any:
    """The card as SDKs look for it: their path appended to the agent's base."""
    return asked("GET", f"{hub_url}/agents/{agent_id}/.well-known/agent-card.json", headers=headers).json


def _called(
    url: str, method: str, params: Any, *, request_id: str | None = "1", headers: Mapping[str, str] | None = None
) -> Any:
    """The result of one JSON-RPC call; an error beside it, a null included, is none."""
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    answer = asked("POST", url, body, {"Accept": "application/json", **(headers or {})})
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"jsonrpc", "id", "result"}, answer.body
    assert answer.json["id"] == request_id
    return answer.json["result"]


def _sent_10(url: str, text: str) -> str:
    """The answer of a strict 1.0 server, as a protobuf client takes it: from the artifacts."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}
    response = _called(url, "SendMessage", {"message": message}, headers=IN_10)
    assert list(response) == ["task"]
    assert strange_members(response, "SendMessageResponse", V10) == []
    task = response["task"]
    assert ZULU.fullmatch(task["status"]["timestamp"])
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def _rest_base(hub_url: str, agent_id: str) -> str:
    """Where the card says that HTTP+JSON is spoken; SDKs drop the final slash."""
    found = [each for each in _card(hub_url, agent_id)["additionalInterfaces"] if each["transport"] == "HTTP+JSON"]
    url: str = found[0]["url"]
    return url.removesuffix("/")


def _bare_push(name: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"{name}/pushNotificationConfigs/{config['id']}", "pushNotificationConfig": config}


def _said_av(task: Any) -> str:
    """The answer: what it made, else the last thing the assistant said."""
    assert [name for name in ("id", "createdAt", "updatedAt", "messages", "artifacts") if name not in task] == []
    for message in task["messages"]:
        assert message["role"] in ("user", "assistant", "system", "tool")
        assert all(part["type"] in ("text", "file", "data") for part in message["parts"])
    assert all(artifact["id"] and artifact["type"] for artifact in task["artifacts"])
    if task["artifacts"]:
        return "".join(_text_av(artifact["content"]) for artifact in task["artifacts"])
    said = [message for message in task["messages"] if message["role"] == "assistant"]
    return "".join(part["content"] for part in said[-1]["parts"])


def _text_av(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["content"] for part in content)
