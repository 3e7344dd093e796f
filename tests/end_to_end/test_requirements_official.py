"""What A2A's own rules say about extensions that an agent demands."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import asked
from tests.end_to_end.world import fresh
from tests.support.agents import a2a_v03, a2a_v10
from tests.support.hub import HubProcess
from tests.support.speaking import StubAgent

VERSION: Final = {"A2A-Version": "1.0"}
NEEDED: Final = "https://example.com/ext/traced/v1"
WELCOME: Final = "https://example.com/ext/optional/v1"
EXTENSIONS: Final = [{"uri": NEEDED, "required": True}, {"uri": WELCOME, "required": False}]


@pytest.fixture(params=["a2a-1.0", "a2a-0.3"])
def demanding(hub: HubProcess, request: pytest.FixtureRequest) -> Iterator[tuple[str, StubAgent]]:
    """An agent whose card says that it cannot be called without one of its extensions."""
    with (a2a_v10 if request.param == "a2a-1.0" else a2a_v03).agent(fresh("demanding")) as stub:
        stub.card["capabilities"] = {**stub.card["capabilities"], "extensions": EXTENSIONS}
        yield hub.register(stub.card, id=fresh())["id"], stub


def _refusal(answer: Any) -> tuple[int, str]:
    error = answer["error"]
    details = error["data"] if "data" in error else error["details"]
    return error["code"], details[0]["reason"]


@pytest.mark.req("O-24")
@pytest.mark.parametrize("brought", ["", WELCOME, f"{WELCOME},https://example.com/other"])
def test_without_a_required_extension_a_call_is_refused(
    hub: HubProcess, demanding: tuple[str, StubAgent], brought: str
) -> None:
    name, stub = demanding
    request = asked("a2a-1.0", name, "hello")
    refused = hub.post(request.path, request.body, {**VERSION, "A2A-Extensions": brought})
    assert refused.status == 200
    assert _refusal(refused.json) == (-32008, "EXTENSION_SUPPORT_REQUIRED")
    assert NEEDED in refused.body.decode()
    rest = hub.post(f"{request.path}message:send", request.body["params"], {**VERSION, "A2A-Extensions": brought})
    assert (rest.status, _refusal(rest.json)) == (400, (400, "EXTENSION_SUPPORT_REQUIRED"))
    assert not stub.arrived.is_set()


@pytest.mark.req("O-24")
def test_with_it_the_call_is_made_and_the_agent_is_told(hub: HubProcess, demanding: tuple[str, StubAgent]) -> None:
    name, stub = demanding
    request = asked("a2a-1.0", name, "hello")
    headers = {**VERSION, "A2A-Extensions": f"{WELCOME}, {NEEDED}"}
    done = hub.post(request.path, request.body, headers).json["result"]["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert hub.post(f"{request.path}message:send", request.body["params"], headers).status == 200
    came = [found for _, _, found, body in stub.requests if body]
    assert came
    for found in came:
        assert NEEDED in (found.get("a2a-extensions") or found["x-a2a-extensions"])
