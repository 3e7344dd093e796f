"""FakeAgent: a real little server of each dialect, which a real hub can register and call."""

import asyncio
import json
from collections.abc import Generator
from typing import Any

import pytest

from dragoman.dialects import DIALECTS
from dragoman.model.content import Data, Text
from dragoman.model.errors import InputRefused, RateLimited
from dragoman.model.operations import Wait
from dragoman.sdk.testing.fakes import FakeAgent
from tests.sdk.root_requests import TALKS, Ask
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.sse_client import SseItem, sse

# What has a card at its URL is found there; of the others the card is handed over.
BY_URL = ("a2a-1.0", "a2a-0.3", "dotted", "agentvault", "envelope")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("fakes") / "data", auth="none") as hub:
        yield hub


def _asked(hub: HubProcess, fake: FakeAgent, *calls: Any) -> list[Reply]:
    """Registers the fake and calls it, while its server runs on a loop of its own."""
    answers: list[Reply] = []

    async def scenario() -> None:
        async with fake:
            by_url = fake.dialect in BY_URL
            given = {"url": fake.url, "id": fake.id} if by_url else {"agent_card": fake.card}
            known = await asyncio.to_thread(hub.post, "/v1/a2a/registry", given)
            assert known.status in (200, 201), known.body
            for given in calls:
                answers.append(await asyncio.to_thread(hub.call, "answer", given, known.json["id"]))

    asyncio.run(scenario())
    return answers


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fake_of_each_dialect_gives_its_replies_in_turn(hub: HubProcess, dialect: str) -> None:
    fake = FakeAgent(dialect, ["one", {"n": 2}], id=f"agt_fake_{dialect.replace('.', '_')}")
    first, second, third = _asked(hub, fake, {"text": "a"}, {"text": "b"}, {"text": "c"})
    assert (first.status, first.json["result"]) == (200, {"text": "one"})
    assert second.json["result"] == third.json["result"] == {"n": 2}
    said = [part for asked in fake.asked for part in asked.message.parts]
    assert len(said) == 3 and all(isinstance(part, Text | Data) for part in said)


@pytest.mark.parametrize("dialect", [slug for slug, talks in TALKS.items() if "stream" in talks])
def test_a_fake_streams_where_its_dialect_does(dialect: str) -> None:
    ask = TALKS[dialect]["stream"][0]

    async def scenario() -> None:
        async with FakeAgent(dialect, ["one"]) as fake:
            frames = await asyncio.to_thread(_streamed, fake, ask)
            assert len(frames) >= 2
            assert sum('"one"' in json.dumps(frame.data) for frame in frames) >= 1
            assert fake.asked[0].wait is Wait.STREAM

    asyncio.run(scenario())


def _streamed(fake: FakeAgent, ask: Ask) -> list[SseItem]:
    assert ask.body is not None
    with sse(fake.url + ask.path.lstrip("/"), ask.body({}), headers=ask.headers) as stream:
        assert stream.is_stream, stream.body()
        return list(stream)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fake_that_fails_fails_in_its_dialects_words(hub: HubProcess, dialect: str) -> None:
    fake = FakeAgent(dialect, fail=InputRefused("no ink"), id=f"agt_fails_{dialect.replace('.', '_')}")
    (answer,) = _asked(hub, fake, {"text": "a"})
    assert answer.status >= 400
    assert "no ink" in answer.json["error"]["message"]


def test_a_fake_may_fail_by_a_class_alone(hub: HubProcess) -> None:
    (answer,) = _asked(hub, FakeAgent("a2a-1.0", fail=RateLimited, id="agt_limited"), {"text": "a"})
    assert answer.status >= 400


def test_what_is_no_dialect_and_no_reply_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there are: a2a-0\.3"):
        FakeAgent("esperanto")
    with pytest.raises(ValueError, match="at least one reply"):
        FakeAgent("dotted", [])
