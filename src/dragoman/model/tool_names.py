"""What a skill of an agent is called where models call it as a tool: `agt_archive__web_search`.

Every framework and MCP client has its own grammar of names; these fit all of them: at most 64 letters, digits, `_` and
`-`, a letter or `_` at first. A name says the same pair of agent and skill wherever and whenever it is made: one that
had to be changed or cut to fit carries eight digits of the pair's hash, `my_agent__find_it_480ccb07`, and no pair whose
name is kept as it is looks like that.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

LONGEST: Final = 64
BETWEEN: Final = "__"
SKILL_LETTERS: Final = 32  # of a long skill so many stay, however long its agent's id is

Pair = tuple[str, str]  # an agent's id, and its skill

_WORD: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_MARKED: Final = re.compile(r"_[0-9a-f]{8}\Z")


def tool_name(agent: str, skill: str, *, identifier: bool = False) -> str:
    """The name of a skill as a tool; with `identifier` one that a program may call a function, too."""
    strange = _IDENTIFIER if identifier else _WORD
    shown_agent, shown_skill = strange.sub("_", agent), strange.sub("_", skill)
    if not shown_agent[:1].isalpha() and not shown_agent.startswith("_"):
        shown_agent = f"_{shown_agent}"
    name = f"{shown_agent}{BETWEEN}{shown_skill}"
    kept = (shown_agent, shown_skill) == (agent, skill) and len(name) <= LONGEST
    # Where it can be told from the name which part is the agent's.
    if kept and BETWEEN not in agent and not agent.endswith("_") and _MARKED.search(name) is None:
        return name
    mark = "_" + sha256(f"{agent}\0{skill}".encode()).hexdigest()[:8]
    room = LONGEST - len(BETWEEN) - len(mark)
    shown_skill = shown_skill[: max(SKILL_LETTERS, room - len(shown_agent))]
    return f"{shown_agent[: room - len(shown_skill)]}{BETWEEN}{shown_skill}{mark}"


def tool_names(pairs: Iterable[Pair], *, identifier: bool = False) -> Mapping[Pair, str]:
    """The names of several skills, no two alike: where two hashes are, the later of the two pairs is numbered."""
    names: dict[Pair, str] = {}
    taken: set[str] = set()
    for pair in sorted(set(pairs)):
        name = plain = tool_name(*pair, identifier=identifier)
        number = 1
        while name in taken:
            number += 1
            ending = f"_{number}"
            name = plain[: LONGEST - len(ending)] + ending
        taken.add(name)
        names[pair] = name
    return names
