"""What a skill of an agent is called where models call it as a tool: `agt_archive__web_search`.

Every framework and MCP client has its own grammar of names; these fit all of them: at most 64 letters, digits, `_` and
`-`, a letter or `_` at first. A name says the same pair of agent and skill wherever and whenever it is made: one that
had to be changed or cut to fit carries eight digits of the pair's hash, `my_agent__find_it_480ccb07`, and no pair whose
name is kept as it is looks like that.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

LONGEST: Final = 64
BETWEEN: Final = "__"
MARK: Final = 8  # digits of a hash
SKILL_LETTERS: Final = 32  # of a long skill so many stay, however long its agent's id is

Pair = tuple[str, str]  # an agent's id, and its skill

_WORD: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]", re.ASCII)
_MARKED: Final = re.compile(r"_[0-9a-f]{8}\Z")


def tool_name(agent: str, skill: str, *, identifier: bool = False) -> str:
    """The name of a skill as a tool; with `identifier` one that a program may call a function, too."""
    name = BETWEEN.join(_shown(agent, skill, identifier))
    parted = BETWEEN not in agent and not agent.endswith("_")  # it can be told which part is the agent's
    if name == f"{agent}{BETWEEN}{skill}" and len(name) <= LONGEST and parted and _MARKED.search(name) is None:
        return name
    return _marked(agent, skill, identifier)


def tool_names(pairs: Iterable[Pair], *, identifier: bool = False, folded: bool = False) -> Mapping[Pair, str]:
    """The names of several skills, no two alike; with `folded`, not even by their letters and digits alone.

    Where two would be alike, both carry their hash; where that is alike, too, the later of the two is numbered.
    """
    plain = {pair: tool_name(*pair, identifier=identifier) for pair in sorted(set(pairs))}
    seen = Counter(_letters(name) if folded else name for name in plain.values())
    names: dict[Pair, str] = {}
    taken: set[str] = set()
    for pair, name in plain.items():
        if seen[_letters(name) if folded else name] > 1:
            name = _marked(*pair, identifier)
        whole, number = name, 1
        while (_letters(name) if folded else name) in taken:
            number += 1
            ending = f"_{number}"
            name = whole[: LONGEST - len(ending)] + ending
        taken.add(_letters(name) if folded else name)
        names[pair] = name
    return names


def _shown(agent: str, skill: str, identifier: bool) -> Pair:
    strange = _IDENTIFIER if identifier else _WORD
    shown = strange.sub("_", agent)
    return shown if shown[:1].isalpha() or shown.startswith("_") else f"_{shown}", strange.sub("_", skill)


def _marked(agent: str, skill: str, identifier: bool) -> str:
    mark = "_" + sha256(f"{agent}\0{skill}".encode()).hexdigest()[:MARK]
    shown_agent, shown_skill = _shown(agent, skill, identifier)
    room = LONGEST - len(BETWEEN) - len(mark)
    shown_skill = shown_skill[: max(SKILL_LETTERS, room - len(shown_agent))]
    return f"{shown_agent[: room - len(shown_skill)]}{BETWEEN}{shown_skill}{mark}"


def _letters(name: str) -> str:
    return _NO_LETTER.sub("", name).lower()
