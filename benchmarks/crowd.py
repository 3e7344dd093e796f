"""A registry full of agents, made without asking a hub for each: the store's own registration, thousands per commit.

What an agent has depends on its number alone. Some of it is common at any size (half of the agents), some rare at any
size (five agents), some grows with the crowd (one agent of a hundred).
"""

import random
import sqlite3
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.place import Void
from dragoman.backends.sqlite import agents, schema
from dragoman.model.agent import Agent, AgentCard, AgentFigures, Endpoint, Skill

TENANT: Final = "default"
OWNER: Final = "admin"
COMMON_SKILL: Final = "translate"  # every second
COMMON_WORD: Final = "report"  # every second, of the others as well
COMMON_CAPABILITY: Final = "streaming"  # every third
RARE: Final = 5  # agents that share a rare skill, and a rare word
GROUPS: Final = 100
TAGS: Final = 20
PER_COMMIT: Final = 5000
MOST_S: Final = 3600.0  # a disk that takes longer is no disk to measure on
CACHE_KIB: Final = 512 * 1024
_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
URL: Final = "http://127.0.0.1:39999/"  # nobody has to listen there
_VOCABULARY: Final = [f"{first}{last}" for first in ("ar", "be", "co", "du") for last in map(str, range(500))]


def name_of(number: int) -> str:
    """The id of an agent."""
    return f"agt_{number:07}"


def rare_skill(number: int) -> str:
    """A skill that five agents have."""
    return f"rare-{number // RARE}"


def rare_word(number: int) -> str:
    """A word that five agents have."""
    return f"unique{number // RARE}"


def group_word(number: int) -> str:
    """A word that one agent of a hundred has."""
    return f"topic{number % GROUPS}"


def tag_of(number: int) -> str:
    """The tag of an agent; every twentieth has the same."""
    return f"tag-{number % TAGS}"


def card_of(number: int) -> AgentCard:
    """What the agent of that number says of itself."""
    chosen = random.Random(number)  # the same words for the same number
    said = chosen.choices(_VOCABULARY, k=12)
    if number // 2 % 2:
        said.append(COMMON_WORD)
    skills = [rare_skill(number), f"skill-{number % GROUPS}"]
    if number % 2 == 0:
        skills.append(COMMON_SKILL)
    return AgentCard(
        id=name_of(number),
        name=f"Agent {number}",
        description=" ".join((*said, rare_word(number), group_word(number))),
        skills=tuple(Skill(id=skill, name=skill, description=f"What {skill} is for.") for skill in skills),
        endpoints=(Endpoint(dialect="a2a-1.0", url=URL),),
        streaming=number % 3 == 0,
        tags=(tag_of(number),),
    )


def agent_of(number: int) -> Agent:
    """The agent of that number: most have the rating of a fresh one, as in any registry."""
    chosen = random.Random(-number - 1)  # the same figures for the same number
    rating = 4.5 if chosen.random() < 0.7 else round(chosen.uniform(1.0, 5.0), 2)
    return Agent(
        card=card_of(number),
        uuid=str(uuid.UUID(int=chosen.getrandbits(128), version=4)),
        tenant=TENANT,
        owner_id=OWNER,
        registered_at=_BEGAN,
        updated_at=_BEGAN,
        figures=AgentFigures(rating=rating, p95_ms=chosen.randrange(10, 5000), availability=chosen.uniform(0.9, 1.0)),
    )


def fill(path: Path, count: int, first: int = 0) -> float:
    """Put agents into a hub's file, which is made where it is missing; the seconds that took. Void beyond an hour."""
    began = time.perf_counter()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # Nothing here has to survive a power cut, and a log of this size would be copied for nothing.
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIB}"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        schema.migrate(connection, schema.migrations(), 0)
        for batch in _batches(first, first + count):
            if time.perf_counter() - began > MOST_S:
                raise Void(f"the registry was not filled within {MOST_S:.0f} s")
            connection.execute("BEGIN")
            for number in batch:
                agents.register(connection, agent_of(number))
            connection.execute("COMMIT")
    finally:
        connection.close()
    path.chmod(0o600)
    return time.perf_counter() - began


def _batches(first: int, end: int) -> Iterator[range]:
    for start in range(first, end, PER_COMMIT):
        yield range(start, min(start + PER_COMMIT, end))
