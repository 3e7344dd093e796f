"""The demo agents' skills, tried without a hub; and their articles."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from dragoman.cli.demo.archive import archive
from dragoman.cli.demo.articles import articles, find
from dragoman.cli.demo.editor import editor, pieces
from dragoman.cli.demo.newsroom import newsroom
from dragoman.cli.demo.served import listen
from dragoman.cli.demo.terminal_bench import document_card, terminal_bench
from dragoman.model.errors import AgentError
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import Message, Text
from dragoman.sdk.errors import HubUnreachable, InputRequired
from dragoman.sdk.work.trying import Tried
from tests.support.hurried_clock import HurriedClock
from tests.support.stub_server import StubHandler, on_free_port

TEXT = "Tides rise. They fall! Why? The moon pulls."
DISK = "Write a bash script to monitor disk usage"
MAIL = "Add email alerting to that script"


def tried(agent: Agent, skill: str | None = None, **more: object) -> Tried:
    return asyncio.run(agent.test.call(skill, **more))  # pyright: ignore[reportArgumentType] - as each test has it


def test_the_articles_are_200_short_texts_with_titles_and_addresses_of_their_own() -> None:
    every = articles()
    assert len(every) == 200
    assert len({article.title for article in every}) == len({article.url for article in every}) == 200
    for article in every:
        assert re.fullmatch(r"https://example\.org/archive/[\w-]+", article.url)
        assert 40 < len(article.text) < 400, article.title
        assert article.text.endswith("."), article.title
        assert "  " not in article.text


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("tides", "Tides"),
        ("TIDE!", "Tides"),
        ("the moon", "The moon"),
        ("longest river in Europe Volga", "The Volga"),
        ("capital of Norway", "Oslo"),
        ("who was a dragoman?", "Dragomans"),
    ],
)
def test_a_search_finds_what_is_meant_first(query: str, first: str) -> None:
    assert find(query, 3)[0].title == first


def test_a_search_without_a_word_that_matters_finds_nothing() -> None:
    assert find("what is the", 10) == find("", 10) == find("zzz", 10) == []


def test_the_archive_gives_as_many_hits_as_are_wanted() -> None:
    results = tried(archive(), "web_search", input={"query": "tides", "max_results": 2}).result["results"]
    assert [result["title"] for result in results] == ["Tides", "Spring tides"]
    assert results[0]["url"] == "https://example.org/archive/tides"


def test_a_slow_search_reports_progress_for_five_seconds() -> None:
    clock = HurriedClock()
    seen = tried(archive(clock), "web_search", input={"query": "tides", "mode": "slow"})
    progress = [event.data["progress"] for event in seen.events if event.name == "progress"]
    assert sum(clock.slept) == 5.0
    assert progress == sorted(progress)
    assert (len(progress), progress[-1]) == (10, 1.0)
    assert seen.result["results"]


def test_a_search_that_is_to_fail_fails_and_may_be_tried_again() -> None:
    with pytest.raises(AgentError) as raised:
        tried(archive(), "web_search", input={"query": "tides", "mode": "fail"})
    assert raised.value.retryable


@pytest.mark.parametrize(
    ("content", "max_length", "summary"),
    [
        (TEXT, 500, TEXT),
        (TEXT, 23, "Tides rise. They fall!"),
        (TEXT, 11, "Tides rise."),
        (TEXT, 10, "Tides…"),
        ("Unbreakable", 5, "Unbr…"),
        ("a\n\n  b  ", 10, "a b"),
        ("", 10, ""),
        ("x", 1, "x"),
        ("xy", 1, "…"),
    ],
)
def test_a_summary_is_the_first_sentences_that_fit(content: str, max_length: int, summary: str) -> None:
    assert "".join(pieces(content, max_length)) == summary
    assert len(summary) <= max_length


def test_the_editor_streams_sentence_by_sentence_and_tells_its_usage() -> None:
    seen = tried(editor(), "summarize", input={"content": TEXT, "max_length": 23})
    assert [event.data["content"] for event in seen.events if event.name == "chunk"] == ["Tides rise.", " They fall!"]
    assert seen.result == {"summary": "Tides rise. They fall!"}
    assert seen.usage == {"input_tokens": 8, "output_tokens": 4}


def test_the_newsroom_asks_back_when_the_topic_is_one_letter() -> None:
    with pytest.raises(InputRequired, match="too short"):
        tried(newsroom(), "brief", input={"topic": "x"})
    # With a topic it goes on, to other agents: of which there are none here.
    with pytest.raises(HubUnreachable):
        tried(newsroom(), "brief", input={"topic": "x"}, answers=["tides"])


@pytest.mark.req("D-13")
def test_the_terminal_agent_answers_what_names_no_skill_by_a_script() -> None:
    seen = tried(terminal_bench({}), message=DISK)
    (artifact,) = seen.artifacts
    assert artifact.name == "terminal_bench_solution"
    assert artifact.text.startswith("#!/usr/bin/env bash\n")
    history = [Message(parts=(Text(DISK),)), Message(role="agent", parts=(Text(artifact.text),))]
    assert "mail -s" in tried(terminal_bench({}), message=MAIL, history=history).text


def test_the_terminal_agent_analyzes_code_and_asks_for_it_where_there_is_none() -> None:
    code = "Find the bug in this loop:\nfor i in range(len(xs)):\n    print(xs[i + 1])"
    assert "beyond the end" in tried(terminal_bench({}), "code_analysis", input={"text": code}).text
    assert "beyond the end" in tried(terminal_bench({}), message=code).text
    asked = tried(terminal_bench({}), "code_analysis", input={"text": "Is it good?"}, answers=[code])
    assert "beyond the end" in asked.text


def test_the_terminal_agent_says_what_it_can_do_where_no_rule_fits() -> None:
    with pytest.raises(AgentError, match="DRAGOMAN_MODEL_URL"):
        tried(terminal_bench({}), message="Sing me a song")


@pytest.mark.req("D-13")
def test_the_terminal_agent_lets_a_model_answer_where_one_is_configured() -> None:
    asked: list[dict[str, object]] = []

    class Chat(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - http.server's name for it
            asked.append(json.loads(self.read_body()))
            answer = {"role": "assistant", "content": "df -h"}
            usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
            if asked[-1].get("stream"):
                self.begin_stream()
                said = json.dumps({"choices": [{"index": 0, "delta": answer}], "usage": usage})
                self.wfile.write(f"data: {said}\n\ndata: [DONE]\n\n".encode())
            else:
                self.say_json(200, {"choices": [{"index": 0, "message": answer}], "usage": usage})

    with on_free_port(Chat) as url:
        agent = terminal_bench({"DRAGOMAN_MODEL_URL": f"{url}/v1", "DRAGOMAN_MODEL_NAME": "tiny"})
        history = [Message(parts=(Text(DISK),)), Message(role="agent", parts=(Text("df"),))]
        seen = tried(agent, message=MAIL, history=history)
    assert [(artifact.name, artifact.text) for artifact in seen.artifacts] == [("terminal_bench_solution", "df -h")]
    assert (seen.usage["input_tokens"], seen.usage["output_tokens"]) == (7, 2)
    assert asked[0]["model"] == "tiny"
    spoken = json.dumps(asked[0]["messages"])
    assert all(text in spoken for text in (DISK, MAIL, '"df"'))


@pytest.mark.req("D-13")
def test_its_card_has_what_the_document_prints() -> None:
    shown = document_card("http://localhost:8001")
    printed = json.loads((Path(__file__).parents[1] / "examples/dotted/agent-card.json").read_text())
    for card in (shown, printed):
        for skill in card["skills"]:
            assert skill.pop("examples")  # the document leaves them out
    assert shown == printed


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    # By one that has only just begun, too: two that start at once never share a port.
    with listen(0) as holder:
        taken: int = holder.getsockname()[1]
        with listen(taken) as other:
            assert other.getsockname()[1] != taken
