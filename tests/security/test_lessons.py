"""What published vulnerabilities of such programs teach, where no other test here has it already."""

import re
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from dragoman.config import load
from dragoman.security.private_files import SecretRefused
from dragoman.server.app import load_secrets
from tests.end_to_end.world import join, tracebacks
from tests.security.payloads import ATOMS
from tests.security.test_foreign import SHARED, World
from tests.support.hub import ROOT, HubProcess
from tests.support.platform_agent import platform_agent
from tests.support.reach import framed
from tests.support.security_figures import Figures
from tests.support.stranger import ask

KEY: Final = re.compile(r"ap_[A-Za-z0-9]{12}_[A-Za-z0-9]{49}")
_LISTED: Final = """
admin password secret token changeme change-me dragoman letmein 12345678901234567890123456789012
00000000000000000000000000000000 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa changemechangemechangemechangeme
your-admin-token-of-at-least-32-characters passwordpasswordpasswordpassword
"""
WORDS: Final = tuple(_LISTED.split())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("lessons") / "data").start()
    try:
        yield hub
        assert tracebacks(hub) == []
    finally:
        hub.stop()


def test_a_credential_is_never_part_of_a_statement(hub: HubProcess) -> None:
    """CVE-2026-42208: a key was written into SQL, on the way of an error."""
    key = hub.new_key("a2a:call")
    keyid = key.split("_")[1]
    quoted = [atom for atom in ATOMS if atom.isascii() and atom.isprintable()]
    for text in (*quoted, f"{key}'", f"ap_{keyid}' OR '1'='1_x", f"ap_{keyid}%", f"ap_{keyid[:-1]}__{key[-49:]}"):
        for line in (f"Authorization: Bearer {text}", f"X-Api-Key: {text}", f"Authorization: {text}"):
            said = ask(hub.port, "GET", "/v1/calls", (line,))
            assert said.status in (400, 401), (line, said.body)
            assert b"sqlite" not in said.body.lower()
    assert hub.get("/v1/calls", token=key).status == 200
    assert keyid in hub.get("/v1/keys").body.decode()


def _shown_values() -> list[str]:
    """Whatever a page or an example gives as the value of a secret of the hub's."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))]
    named = re.compile(r"DRAGOMAN_ADMIN_TOKEN=[\"']?([^\s\"'`$)]+)")
    return sorted({value for page in pages for value in named.findall(page.read_text())})


@pytest.mark.parametrize("value", [*WORDS, *_shown_values()])
def test_no_example_value_is_taken_for_the_admin_token(tmp_path: Path, value: str) -> None:
    """GHSA-g53w-w6mj-hrpp: a literal key of the documentation opened hubs."""
    settings = {"data": str(tmp_path / "data"), "public_url": "https://hub.example"}
    with pytest.raises(SecretRefused):
        load_secrets(load(settings, {"DRAGOMAN_ADMIN_TOKEN": value}, None))


def test_no_page_and_no_example_has_a_key_that_could_be_one() -> None:
    for page in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.py")),
    ):
        assert KEY.search(page.read_text()) is None, page


def test_a_long_range_header_costs_nothing(hub: HubProcess) -> None:
    """CVE-2025-62727: merging ranges took quadratic time."""
    with platform_agent() as agent:
        agent_id = join(hub, agent)["id"]
        part = {"kind": "file", "file": {"bytes": "aGVsbG8=", "name": "a.txt", "mimeType": "text/plain"}}
        message = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
        task = hub.post(f"/agents/{agent_id}/", framed("message/send", {"message": message})).json["result"]["id"]
        found = re.search(r"(/files/[^\"]+)", hub.get(f"/v1/calls/{task}").body.decode())
    assert found is not None
    ranges = "Range: bytes=" + ",".join(f"{number}-" for number in range(4000))
    began = time.perf_counter()
    said = ask(hub.port, "GET", found[1].replace("\\u0026", "&"), (ranges[: 30 * 1024],))
    taken_s = time.perf_counter() - began
    assert (said.status, said.body) == (200, b"hello")
    assert taken_s < 0.5, f"{taken_s * 1000:.0f} ms"  # 50 ms on a quiet machine


def test_a_good_call_follows_everything_that_broke_others(hub: HubProcess) -> None:
    """CVE-2025-53366, CVE-2025-53365: one bad request, or one that was left early, ended the server."""
    with platform_agent() as agent:
        agent_id = join(hub, agent)["id"]
        for path in ("/v1/a2a/call", f"/agents/{agent_id}/", "/a2a", "/a2a/messages", "/v1/agents/connect"):
            for body in (b"[]", b"null", b'{"jsonrpc":"2.0","method":"x"}', b'{"jsonrpc":"2.0","id":{},"method":[]}'):
                ask(hub.port, "POST", path, (f"Authorization: Bearer {hub.token}",), body)
            assert hub.call("echo", {"text": "x"}, agent_id).status == 200


@pytest.mark.full
@pytest.mark.serial
def test_what_is_foreign_takes_as_long_as_what_is_unknown(tmp_path: Path, figures: Figures) -> None:
    """Two hundred pairs by turns: time tells no more than the words do."""
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data").start()
        stack.callback(hub.stop)
        world = World(hub, stack)
        thing = world.task("a2a-1.0")
        foreign: list[float] = []
        unknown: list[float] = []
        pair = [(thing.id, foreign), (thing.unknown.id, unknown)]
        for _ in range(200):
            pair.reverse()
            for name, times in pair:
                began = time.perf_counter()
                assert (
                    hub.get(f"/agents/{SHARED}/tasks/{name}", {"A2A-Version": "1.0"}, world.colleague.key).status == 404
                )
                times.append(time.perf_counter() - began)
        ratio = statistics.median(foreign) / statistics.median(unknown)
        figures("S2", foreign_to_unknown_time=round(ratio, 3))
        assert 0.9 < ratio < 1.1
