"""Every framework's client reaches every framework's server through the hub, whatever each of them does on the wire.

The matrix is made of the stubs in `tests/support/quirks`: each server is registered by its URL alone, as a user would,
and each client reads the answer by its own rules. What the matrix does not show has a test of its own below.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.world import tracebacks
from tests.support.agents.a2a_v10 import agent as v10_agent
from tests.support.hub import HubProcess, running_hub
from tests.support.ports import free_port
from tests.support.quirks import STUBS
from tests.support.quirks.clients import CLIENTS, asked, oldcard03
from tests.support.quirks.only03 import manyparts03
from tests.support.quirks.words import T, hello, is_array, is_object
from tests.support.speaking import StubAgent, json_answer, serving

PROBES: tuple[tuple[str, dict[str, str], dict[str, str]], ...] = (
    ("GetTask", {"id": "nobody"}, {"A2A-Version": "1.0"}),
    ("tasks/get", {"id": "nobody"}, {}),
    ("message/send", {}, {}),
)
# What the real servers answered to these three: a JSON-RPC code, or an HTTP status.
MEASURED = {
    "strict10": (-32001, -32601, -32601),
    "statusonly10": (-32001, -32601, -32601),
    "historyonly10": (-32001, -32601, -32601),
    "understated": (-32001, -32001, -32600),
    "hybrid": (-32001, -32001, 500),
    "mixedstream": (-32001, -32001, -32602),
    "manyparts03": (-32601, -32001, -32602),
    "statusonly03": (-32601, -32001, -32602),
    "wholetask03": (-32601, -32001, -32602),
    "agentvault": (-32601, -32001, -32601),
    "pathmethod": (500, 500, 500),
}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub without keys, as on a developer's machine: these clients bring none."""
    with running_hub(tmp_path_factory.mktemp("hub") / "data", auth="none") as hub:
        yield hub
    assert tracebacks(hub) == []


def _registered(hub: HubProcess, url: str) -> str:
    """The id of the agent at that URL, which is all that the hub is told."""
    reply = hub.post("/v1/a2a/registry", {"url": url})
    assert reply.status in (200, 201), reply.body
    agent_id: str = reply.json["id"]
    return agent_id


@pytest.mark.req("X-16")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", STUBS)
def test_every_client_gets_every_servers_answer_exactly_once(hub: HubProcess, server: str, client: str) -> None:
    with STUBS[server]() as stub:
        answer = CLIENTS[client](hub.url, _registered(hub, stub.url), "hi")
    assert answer == hello(server)


# -- the stubs are what was measured


@pytest.mark.parametrize("server", MEASURED)
def test_a_stub_answers_the_three_probes_as_the_real_server_did(server: str) -> None:
    with STUBS[server]() as stub:
        url = f"{stub.url}/a2a/" if server == "agentvault" else stub.url
        assert tuple(_code(url, *probe) for probe in PROBES) == MEASURED[server]


@pytest.mark.parametrize("server", sorted(set(MEASURED) - {"agentvault", "pathmethod"}))
def test_a_stub_streams_its_answer(server: str) -> None:
    with STUBS[server]() as stub:
        old = MEASURED[server][2] == -32602 and server != "mixedstream"
        text = {"text": "hi", **({"kind": "text"} if old else {})}
        message = {"messageId": "m-1", "role": "user" if old else "ROLE_USER", "parts": [text]}
        method = "message/stream" if old else "SendStreamingMessage"
        body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": {"message": message}}
        streamed = asked(
            "POST", stub.url, body, {"Accept": "text/event-stream", "A2A-Version": "0.3" if old else "1.0"}
        )
    lines = [line for line in streamed.body.decode().splitlines() if line.startswith("data: ")]
    events = [json.loads(line.removeprefix("data: "))["result"] for line in lines]
    assert hello(server).replace(" ", "") in "".join(_texts(events)).replace(" ", "")


def _code(url: str, method: str, params: Any, headers: dict[str, str]) -> int:
    accepts = {"Accept": "application/json, text/event-stream", **headers}
    answer = asked("POST", url, {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}, accepts)
    if answer.status != 200:
        return answer.status
    code: int = answer.json["error"]["code"]
    return code


def _texts(value: Any) -> Iterator[str]:
    if is_object(value):
        yield from (value["text"],) if isinstance(value.get("text"), str) else ()
        value = list(value.values())
    if is_array(value):
        for each in value:
            yield from _texts(each)


# -- quirks of agents that the matrix does not show


def test_q01_a_0_3_server_is_never_told_of_1_0(hub: HubProcess) -> None:
    with manyparts03() as stub:
        agent_id = _registered(hub, stub.url)
        before = len(stub.requests)
        oldcard03(hub.url, agent_id, "hi")
        calls = stub.requests[before:]
    assert [(body["method"], headers.get("a2a-version")) for _, _, headers, body in calls] == [("message/send", "0.3")]


@pytest.mark.parametrize("server", ["statusonly10", "statusonly03", "wholetask03", "understated"])
@pytest.mark.parametrize("official", [True, False])
def test_q10_the_end_of_a_stream_does_not_say_the_answer_again(hub: HubProcess, server: str, official: bool) -> None:
    message: dict[str, Any] = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    if not official:
        message = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
    method = "SendStreamingMessage" if official else "message/stream"
    body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": {"message": message}}
    with STUBS[server]() as stub:
        base = f"{hub.url}/agents/{_registered(hub, stub.url)}/"
        streamed = asked("POST", base, body, {"A2A-Version": "1.0" if official else "0.3"})
    lines = [line for line in streamed.body.decode().splitlines() if line.startswith("data: ")]
    events = [json.loads(line.removeprefix("data: "))["result"] for line in lines]
    artifacts = [event for event in events if "artifactUpdate" in event or event.get("kind") == "artifact-update"]
    assert "".join(_texts(artifacts)) == hello(server)
    assert list(_texts(events[-1])) == []  # AG2 puts together what the artifacts and the end say.


def test_q05_a_server_that_breaks_on_a_call_is_a_failed_task_and_no_more(hub: HubProcess) -> None:
    stub = StubAgent("breaks")
    with manyparts03() as sane:

        def handle(method: str, path: str, headers: Any, body: Any) -> Any:
            if method == "GET":
                return json_answer({**sane.card, "name": "breaks", "url": f"{stub.url}/"})
            if body["params"]:
                return 500, {"Content-Type": "text/plain"}, b"Internal Server Error"
            return json_answer({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32602, "message": "bad"}})

        with serving(stub, handle):
            task = _sent_03(hub, _registered(hub, stub.url))
    assert task["status"]["state"] == "failed"
    assert "500" in task["status"]["message"]["parts"][0]["text"]


@pytest.mark.parametrize("server", ["manyparts03", "understated", "hybrid", "mixedstream", "wholetask03"])
def test_q12_q26_a_text_in_pieces_or_in_several_places_is_one_text(hub: HubProcess, server: str) -> None:
    with STUBS[server]() as stub:
        reply = hub.call("greet" if server != "hybrid" else "default", {"text": "hi"}, _registered(hub, stub.url))
    assert reply.status == 200, reply.body
    assert reply.json["result"] == {"text": hello(server)}


@pytest.mark.parametrize("server", ["statusonly10", "hybrid", "statusonly03"])
def test_q15_what_a_card_lacks_is_filled_in_where_the_hub_serves_it(hub: HubProcess, server: str) -> None:
    with STUBS[server]() as stub:
        agent_id = _registered(hub, stub.url)
    for headers in ({}, {"A2A-Version": "1.0"}):
        card = asked("GET", f"{hub.url}/agents/{agent_id}/.well-known/agent-card.json", headers=headers).json
        assert card["description"]
        assert card["skills"]
        assert all(each["tags"] and each["description"] for each in card["skills"])


def test_q16_a_redirect_to_the_final_slash_is_followed(hub: HubProcess) -> None:
    with STUBS["agentvault"]() as stub:
        stub.card["url"] = stub.card["url"].removesuffix("/")
        assert CLIENTS["avclient"](hub.url, _registered(hub, stub.url), "hi") == hello("agentvault")
        paths = {path for method, path, _, _ in stub.requests if method == "POST"}
    assert "/a2a/" in paths


def test_q21_a_card_that_needs_a_query_says_so_in_the_refusal(hub: HubProcess) -> None:
    with STUBS["mixedstream"]() as stub:
        origin = stub.url.partition("/a2a/")[0]
        reply = hub.post("/v1/a2a/registry", {"url": origin})
    assert reply.status == 400
    assert b"assistant_id" in reply.body


def test_q29_an_error_with_a_null_beside_it_is_read(hub: HubProcess) -> None:
    stub = StubAgent("nulls")

    def handle(method: str, path: str, headers: Any, body: Any) -> Any:
        if method == "GET":
            return json_answer(card) if path == "/.well-known/agent-card.json" else json_answer({}, 404)
        error = {"code": -32602, "message": "bad" if not body["params"] else "no such thing", "data": None}
        return json_answer({"jsonrpc": "2.0", "id": "unknown", "result": None, "error": error})

    with manyparts03() as sane, serving(stub, handle):
        card = {**sane.card, "name": "nulls", "url": f"{stub.url}/"}
        task = _sent_03(hub, _registered(hub, stub.url))
    assert task["status"]["state"] == "failed"
    assert task["status"]["message"]["parts"][0]["text"] == "no such thing"


@pytest.mark.parametrize("python", [True, False])
def test_q30_a_file_arrives_as_it_was_however_often_its_caller_encodes_it(hub: HubProcess, python: bool) -> None:
    once, twice = "AP9i", "QVA5aQ=="
    sent = twice if python else once
    with v10_agent() as stub:
        agent_id = hub.register(stub.card)["id"]
        content = [{"file": {"fileWithBytes": sent, "mimeType": "application/octet-stream"}}]
        body = {
            "message": {"messageId": "m-1", "role": "ROLE_USER", "content": content},
            "configuration": {"blocking": True},
        }
        headers = {"User-Agent": "python-httpx/0.28.1" if python else "node"}
        answer = asked("POST", f"{hub.url}/agents/{agent_id}/v1/message:send", body, headers)
    arrived = stub.requests[-1][3]["params"]["message"]["parts"]
    assert [part["raw"] for part in arrived] == [once]
    assert answer.status == 200, answer.body
    files = [part["file"] for part in answer.json["task"]["artifacts"][0]["parts"] if "file" in part]
    assert [file["fileWithBytes"] for file in files] == [sent]


def test_q34_a_card_that_names_no_real_host_is_tried_where_it_was_found(hub: HubProcess) -> None:
    with STUBS["manyparts03"]() as stub:
        stub.card["url"] = stub.url.replace("127.0.0.1", "0.0.0.0") + "/"
        assert oldcard03(hub.url, _registered(hub, stub.url), "hi") == hello("manyparts03")


# -- quirks of clients that the matrix does not show


def test_k04_only_who_says_no_kinds_gets_its_answer_twice(hub: HubProcess) -> None:
    with STUBS["strict10"]() as stub:
        agent_id = _registered(hub, stub.url)
        plain = _sent_03(hub, agent_id)
        hybrid = _sent_03(hub, agent_id, kinds=False)
    assert "task" not in plain
    assert hybrid["task"] == {name: value for name, value in hybrid.items() if name != "task"}


def test_k12_an_agent_that_is_gone_is_a_failed_task_and_no_http_error(hub: HubProcess) -> None:
    with STUBS["strict10"]() as stub:
        interface = {**stub.card["supportedInterfaces"][0], "url": f"http://127.0.0.1:{free_port()}/"}
        agent_id = hub.register({**stub.card, "name": "gone", "supportedInterfaces": [interface]})["id"]
    task = _sent_03(hub, agent_id)
    assert task["status"]["state"] == "failed"
    assert task["status"]["message"]["parts"][0]["text"]


def test_k13_a_base_has_its_final_slash_and_what_lacks_it_is_told_so(hub: HubProcess) -> None:
    with STUBS["strict10"]() as stub:
        agent_id = _registered(hub, stub.url)
    card = hub.get(f"/agents/{agent_id}/.well-known/agent-card.json").json
    urls = [card["url"], *(each["url"] for each in card["supportedInterfaces"] + card["additionalInterfaces"])]
    assert all(url.endswith("/") for url in urls), urls
    lost = hub.get("/agents/.well-known/agent-card.json")
    assert lost.status == 404
    assert b"slash" in lost.body


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("version", ["1.0", "0.3", ""])
def test_k14_a_card_names_the_origin_that_it_came_from(hub: HubProcess, name: str, version: str) -> None:
    with STUBS["strict10"]() as stub:
        agent_id = _registered(hub, stub.url)
    origin = f"http://{name}:{hub.port}"
    path = f"{origin}/agents/{agent_id}/{'a2a-0.3/' if version == '0.3' else ''}.well-known/agent-card.json"
    card = asked("GET", path, headers={"A2A-Version": version} if version else {}).json
    members = ("supportedInterfaces", "additionalInterfaces")
    urls = [card.get("url", origin), *(each["url"] for member in members for each in card.get(member, []))]
    assert len(urls) > 1
    assert [url for url in urls if not url.startswith(origin)] == []  # google-adk takes no other.


def _sent_03(hub: HubProcess, agent_id: str, *, kinds: bool = True) -> dict[str, Any]:
    part: dict[str, Any] = {"text": "hi", **({"kind": "text"} if kinds else {})}
    message = {"messageId": "m-1", "role": "user", "parts": [part], **({"kind": "message"} if kinds else {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    answer = asked("POST", f"{hub.url}/agents/{agent_id}", body)
    assert answer.status == 200, answer.body
    result: dict[str, Any] = answer.json["result"]
    return result


def test_the_agents_own_ids_never_reach_a_caller(hub: HubProcess) -> None:
    with STUBS["strict10"]() as stub:
        task = _sent_03(hub, _registered(hub, stub.url))
    assert task["id"] != T
    assert task["id"].startswith("task-")
