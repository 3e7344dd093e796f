"""`registry`: does a hub with a million agents find one as quickly as a hub with a thousand?

Both hubs run at the same time and are asked in turn, one question at a time. Their files are made beforehand
(`crowd.py`) and deleted at the end.
"""

import base64
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from benchmarks import crowd, report
from benchmarks.calls import echo_card
from benchmarks.http import Connection, Reply
from benchmarks.hub import Hub
from benchmarks.place import Void
from benchmarks.processes import rss_mb
from benchmarks.quantiles import Taken
from benchmarks.rounds import Options
from benchmarks.stage import Stage

SMALL: Final = 1000
LARGE: Final = 1_000_000
QUICK_LARGE: Final = 20_000
PER_ROUND: Final = 100  # of each question, of each hub
WARM_UP: Final = 20
GOAL: Final = 3.0
NOISE: Final = 5.0
DEEP: Final = 0.6  # of the registry lies before a page that is deep in it
# Nobody listens where these agents are said to be.
SETTINGS: Final = {"DRAGOMAN_HEALTH_EVERY_S": "0"}

Check = Callable[[Any], bool]


class Question(NamedTuple):
    """What is asked, and whether an answer to it is right."""

    method: str
    path: str
    right: Check
    body: object = None


class Registry:
    """A hub with so many agents, and the questions that are put to it."""

    def __init__(self, hub: Hub, size: int) -> None:
        self.hub = hub
        self.size = size
        self.chance = random.Random(size)
        self.filled_s = crowd.fill(hub.data / "hub.db", size)
        self.file_mb = (hub.data / "hub.db").stat().st_size / 1e6
        self.ready_s = 0.0
        self.newcomers = 0
        self.cursors: dict[str, str] = {}
        hub.data.chmod(0o700)

    def begin(self) -> None:
        """The hub is there: keep a connection, and find where deep pages begin."""
        self._connection = Connection(self.hub.endpoint)
        for name, query in (("all", ""), ("skill", f"skill={crowd.COMMON_SKILL}&")):
            share = DEEP if name == "all" else DEEP / 2
            offset = base64.urlsafe_b64encode(json.dumps({"offset": int(self.size * share)}).encode()).decode()
            page = self._ask(Question("GET", f"/v1/a2a/discover?{query}cursor={offset}", _full_page)).json()
            self.cursors[name] = quote(page["next_cursor"])

    def time(self, question: Question) -> float:
        """The seconds until the answer was there; Void where it is wrong."""
        began = time.perf_counter()
        reply = self._ask(question)
        took = time.perf_counter() - began
        if not question.right(reply.json()):
            raise Void(f"{self.hub.name} answered {question.path} with {reply.body[:500]!r}")
        return took

    def any_number(self) -> int:
        """One of its agents."""
        return self.chance.randrange(self.size)

    def _ask(self, question: Question) -> Reply:
        payload = b"" if question.body is None else json.dumps(question.body).encode()
        headers = {"Authorization": f"Bearer {self.hub.admin_token}"}
        reply = self._connection.exchange(self.hub.endpoint.request(question.method, question.path, headers, payload))
        if reply.status not in (200, 201):
            raise Void(f"{self.hub.name} answered {question.path} with {reply.status}: {reply.body[:500]!r}")
        return reply


Asked = Callable[[Registry], Question]


def _found(total: Callable[[int], bool], has: str | None = None) -> Check:
    def right(page: Any) -> bool:
        ids = [agent["id"] for agent in page["agents"]]
        ratings = [agent["rating"] for agent in page["agents"]]
        return total(page["total"]) and ratings == sorted(ratings, reverse=True) and (has is None or has in ids)

    return right


def _full_page(page: Any) -> bool:
    return len(page["agents"]) == 20 and page["next_cursor"] is not None


def _discover(query: str, right: Check) -> Question:
    return Question("GET", f"/v1/a2a/discover?{query}", right)


def _rare_skill(to: Registry) -> Question:
    number = to.any_number()
    return _discover(f"skill={crowd.rare_skill(number)}", _found(lambda n: n == crowd.RARE, crowd.name_of(number)))


def _rare_word(to: Registry) -> Question:
    number = to.any_number()
    return _discover(f"q={crowd.rare_word(number)}", _found(lambda n: n == crowd.RARE, crowd.name_of(number)))


def _common(to: Registry, query: str, share: float) -> Question:
    expected = min(round(to.size * share), 1000)
    return _discover(query, _found(lambda n: abs(n - expected) <= max(3, to.newcomers)))


def _page_of(name: str, query: str = "") -> Asked:
    return lambda to: _discover(f"{query}cursor={to.cursors[name]}", _full_page)


def _by_id(to: Registry) -> Question:
    name = crowd.name_of(to.any_number())
    return Question("GET", f"/v1/a2a/agents/{name}/card", lambda card: name in json.dumps(card))


def _one_more(to: Registry) -> Question:
    to.newcomers += 1
    name = f"agt_new_{to.newcomers}"
    card = {**echo_card(crowd.URL), "id": name}
    body = {"agent_card": card, "id": name}
    return Question("POST", "/v1/a2a/registry", lambda said: name in json.dumps(said), body)


QUESTIONS: Final[Mapping[str, Asked]] = {
    "skill of five agents": _rare_skill,
    "skill of half of them": lambda to: _common(to, f"skill={crowd.COMMON_SKILL}", 1 / 2),
    "the same, min_rating": lambda to: _discover(
        f"skill={crowd.COMMON_SKILL}&min_rating=4.5", _found(lambda n: n > 100)
    ),
    "word of five agents": _rare_word,
    "word of half of them": lambda to: _common(to, f"q={crowd.COMMON_WORD}", 1 / 2),
    "that word and a skill": lambda to: _discover(
        f"q={crowd.COMMON_WORD}&skill={crowd.COMMON_SKILL}", _found(lambda n: n > 100)
    ),
    "tag": lambda to: _common(to, f"tag={crowd.tag_of(to.any_number())}", 1 / crowd.TAGS),
    "capability": lambda to: _common(to, f"capability={crowd.COMMON_CAPABILITY}", 1 / 3),
    "page deep in": _page_of("all"),
    "the same, of a skill": _page_of("skill", f"skill={crowd.COMMON_SKILL}&"),
    "one by its id": _by_id,
    "register one more": _one_more,
}


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Fill both, ask both; what is kept of it."""
    sizes = (SMALL, QUICK_LARGE if options.quick else LARGE)
    with Stage(folder, options) as stage:
        registries = [_filled(stage, size) for size in sizes]
        for registry in registries:
            _begun(stage, registry)
        taken = {name: tuple(Taken() for _ in sizes) for name in QUESTIONS}
        for turn in range(-1, options.rounds):
            for name, asked in QUESTIONS.items():
                for _ in range(WARM_UP if turn < 0 else PER_ROUND):
                    for registry, times in zip(registries, taken[name], strict=True):
                        took = registry.time(asked(registry))
                        if turn >= 0:
                            times.add(took)
        memory = [rss_mb(registry.hub.server.pid) for registry in registries]
    return _shown(registries, taken, memory)


def _filled(stage: Stage, size: int) -> Registry:
    registry = Registry(Hub(stage.folder, name=f"hub-{size}", settings=SETTINGS), size)
    print(f"  {size:,} agents: filled in {registry.filled_s:.0f} s, {registry.file_mb:,.0f} MB", flush=True)
    return registry


def _begun(stage: Stage, registry: Registry) -> None:
    stage.callback(registry.hub.server.stop)
    registry.ready_s = registry.hub.start()
    registry.begin()
    print(f"  {registry.size:,} agents: the hub was ready in {registry.ready_s * 1000:.0f} ms", flush=True)


def _shown(
    registries: Sequence[Registry], taken: Mapping[str, Sequence[Taken]], memory: Sequence[float]
) -> dict[str, Any]:
    small, large = (f"{registry.size:,}" for registry in registries)
    rows: list[tuple[object, ...]] = []
    kept: dict[str, Any] = {}
    for name, (few, many) in taken.items():
        ratio = many.p99_ms / few.p99_ms
        kept[name] = {small: few.kept(), large: many.kept(), "p99 ratio": ratio}
        over = "  over" if ratio > GOAL else ""
        rows.append((name, few.text(), many.text(), f"{many.p50_ms / few.p50_ms:.2f}", f"{ratio:.2f}{over}"))
    report.table(("", f"{small}: p50 p99 ms", f"{large}: p50 p99 ms", "p50 ratio", f"p99 ratio (goal {GOAL:g})"), rows)
    print(f"  memory of the hub: {memory[0]:.0f} MB and {memory[1]:.0f} MB")
    noisy = sum(few.p99_ms > NOISE * few.p50_ms for few, _ in taken.values()) > len(taken) / 2
    if noisy:
        print(f"  NOISY: with {small} agents, too, one answer of a hundred took over {NOISE:g} times the usual")
    return {
        "noisy": noisy,
        "questions": kept,
        "memory_mb": dict(zip((small, large), memory, strict=True)),
        "ready_s": [registry.ready_s for registry in registries],
        "file_mb": [registry.file_mb for registry in registries],
    }
