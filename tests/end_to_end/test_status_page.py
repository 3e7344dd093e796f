"""The hub's pages for people: what they show, to whom, and that nothing on them is taken for markup."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.hub import HubProcess, Reply, running_hub

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
EVIL = "<script>alert('x')</script> \" & <b>"


class Page(HTMLParser):
    """What a browser would make of a page: its tags, its links, its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words += data


def looked_at(hub: HubProcess, path: str, **headers: str) -> tuple[Reply, Page]:
    reply = hub.get(path, headers={"Accept": BROWSER, **headers})
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return reply, Page(reply.body.decode())


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("open") / "data", auth="none") as hub:
        yield hub


def register(hub: HubProcess, agent_id: str, **more: object) -> None:
    card = {
        "id": agent_id,
        "name": f"Agent {EVIL}",
        "description": f"Does {EVIL}",
        "version": "1.0.0",
        "skills": [{"name": f"skill{number}{EVIL}", "description": EVIL} for number in range(15)],
        "endpoint": "http://localhost:8999/a2a",
    }
    reply = hub.post("/v1/a2a/registry", {"agent_card": card, **more})
    assert reply.status in (200, 201), reply.body


@pytest.mark.req("D-15")
def test_a_browser_gets_a_page_and_everybody_else_the_status_as_json(open_hub: HubProcess) -> None:
    _, page = looked_at(open_hub, "/")
    assert "Dragoman" in page.words
    assert "running" in page.words
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5", ""):
        reply = open_hub.get("/", headers={"Accept": accept})
        assert (reply.headers["content-type"], reply.json["status"]) == ("application/json", "running")
        assert reply.headers["vary"] == "accept"


def test_agents_are_shown_and_nothing_of_them_is_markup(open_hub: HubProcess) -> None:
    register(open_hub, "agt_evil")
    reply, page = looked_at(open_hub, "/")
    assert "agt_evil" in page.words
    assert f"Does {EVIL}" in page.words
    assert f"skill0{EVIL}" in page.words
    assert "and 3 more" in page.words
    assert not {"script", "b", "img", "iframe"} & set(page.tags)
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "script-src" not in reply.headers["content-security-policy"]
    for link in page.links:
        assert open_hub.get(link, headers={"Accept": BROWSER}).status == 200, link


def test_agents_are_shown_only_to_those_who_may_see_them(hub: HubProcess) -> None:
    register(hub, "agt_hidden")
    _, stranger = looked_at(hub, "/", Authorization="")
    assert "agt_hidden" not in stranger.words
    assert "with a token" in stranger.words
    _, known = looked_at(hub, "/")
    assert "agt_hidden" in known.words
    register(hub, "agt_open", open=True)
    _, stranger = looked_at(hub, "/", Authorization="")
    assert "agt_open" in stranger.words
    assert "agt_hidden" not in stranger.words


def test_the_api_is_described_for_people_and_for_language_models(hub: HubProcess) -> None:
    paths = hub.get("/openapi.json").json["paths"]
    _, page = looked_at(hub, "/docs", Authorization="")
    plain = hub.get("/llms.txt", headers={"Authorization": ""})
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    for path, methods in paths.items():
        for method in methods:
            assert f"{method.upper()} {path}" in page.words
            assert f"- {method.upper()} {path}: " in plain.body.decode()
    assert "script" not in page.tags


def test_no_page_speaks_of_what_is_not_there(open_hub: HubProcess, tmp_path: Path) -> None:
    for path in ("/", "/docs", "/llms.txt"):
        assert b"console" not in open_hub.get(path, headers={"Accept": BROWSER}).body.lower()
