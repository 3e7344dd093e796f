"""What a key may do: the four scopes, and the targets and skills it is limited to.

Which operation needs which scope is the hub's table, not here.
"""

from collections.abc import Collection, Iterable
from typing import Final

CALL: Final = "a2a:call"
RECEIVE: Final = "a2a:receive"
REGISTER: Final = "a2a:register"
ADMIN: Final = "a2a:admin"
ALL_SCOPES: Final = (CALL, RECEIVE, REGISTER, ADMIN)


def missing(have: Collection[str], need: Iterable[str]) -> tuple[str, ...]:
    """The scopes of `need` that `have` lacks, in the order of `need`."""
    return tuple(scope for scope in need if scope not in have)


def allows(patterns: tuple[str, ...], target: str, skill: str | None) -> bool:
    """Whether `target:skill` patterns let a key call this skill; no pattern allows all.

    A call that names no skill needs a pattern whose skill is `*` alone: the agent may choose any.
    """
    return not patterns or any(_fits(pattern, target, skill) for pattern in patterns)


def is_pattern(text: str) -> bool:
    """Whether the text is a usable `target:skill` pattern."""
    target, colon, skill = text.partition(":")
    return bool(target and colon and skill) and len(text) <= 512 and text.isprintable() and " " not in text


def _fits(pattern: str, target: str, skill: str | None) -> bool:
    # At the first colon: an agent's id never holds one, a skill's may.
    wanted_target, _, wanted_skill = pattern.partition(":")
    if not _like(wanted_target, target):
        return False
    return wanted_skill == "*" if skill is None else _like(wanted_skill, skill)


def _like(pattern: str, text: str) -> bool:
    """`*` stands for any run of characters; found left to right, so hostile patterns cost no backtracking."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *middle, last = rest
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
