"""Faults in a piece of code: which language it is, and what its rules see. Nothing is run.

question ─▶ the code in it ─▶ its language ─▶ remarks, by line
"""

import re
from typing import Final

from dragoman.cli.demo.terminal.line_rules import C_RULES, JAVASCRIPT_RULES, SHELL_RULES
from dragoman.cli.demo.terminal.remarks import Remark
from dragoman.cli.demo.terminal.review_lines import look_at_lines, unclosed
from dragoman.cli.demo.terminal.review_python import look_at_python

MOST_CODE: Final = 20_000  # characters that are looked at
_FENCED: Final = re.compile(r"```([\w+-]*)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_NAMES: Final = {
    "py": "Python", "python": "Python", "python3": "Python", "bash": "shell", "sh": "shell", "shell": "shell",
    "zsh": "shell", "js": "JavaScript", "javascript": "JavaScript", "ts": "JavaScript", "typescript": "JavaScript",
    "c": "C", "cpp": "C", "c++": "C", "h": "C",
}  # fmt: skip
_C: Final = r"^[ \t]*#include\b|\b(?:int|void|char|float|double)\s+\*?\w+\s*\([^)]*\)\s*\{"
_PYTHON: Final = (
    r"^[ \t]*(?:def|class|async def)[ \t]+\w+.*:[ \t]*$|^[ \t]*(?:from[ \t]+\S+[ \t]+)?import[ \t]+\w|\bprint\("
    r"|^[ \t]*(?:for|while|if|elif|try|with)\b[^{};\n]*:[ \t]*(?:#.*)?$"
)
_JAVASCRIPT: Final = r"\b(?:const|let|var)\s+\w+\s*=|\bfunction\b\s*\w*\(|=>|\bconsole\.log\("
_SHELL: Final = (
    r"^#!.*\b(?:ba|z|da)?sh\b|^[ \t]*(?:fi|done|esac)\b|\$\(|\$\{?\w|;\s*(?:then|do)\b"
    r"|^[ \t]*(?:echo|cd|rm|grep|sudo|export)\s"
)
_SIGNS: Final = tuple(
    (name, re.compile(sign, re.MULTILINE))
    for name, sign in (("C", _C), ("Python", _PYTHON), ("JavaScript", _JAVASCRIPT), ("shell", _SHELL))
)


def review(question: str) -> str | None:
    """What there is to say about the code in a question; None where there is no code in it."""
    found = code_in(question[:MOST_CODE])
    if found is None:
        return None
    language, code = found
    remarks = sorted(_look(language, code))
    if not remarks:
        return f"I looked at {_lines(code)} of {language} and saw no fault that my rules know."
    count = "one thing" if len(remarks) == 1 else f"{len(remarks)} things"
    return "\n".join([f"I looked at {_lines(code)} of {language} and saw {count}:", *map(str, remarks)])


def code_in(question: str) -> tuple[str, str] | None:
    """The language and the code that a question holds: fenced, or all that follows its first line."""
    fenced = _FENCED.search(question)
    if fenced is not None:
        return _NAMES.get(fenced[1].lower()) or _language(fenced[2]) or "code", fenced[2]
    language = _language(question)
    if language is None:
        return None
    head, _, rest = question.partition("\n")
    if rest.strip() and _language(rest) is not None and _language(head) is None:
        return _language(rest) or language, rest
    return language, question


def _language(text: str) -> str | None:
    return next((name for name, sign in _SIGNS if sign.search(text)), None)


def _look(language: str, code: str) -> list[Remark]:
    match language:
        case "Python":
            return look_at_python(code)
        case "shell":
            return look_at_lines(code, SHELL_RULES, comment="#")
        case "JavaScript":
            return [*look_at_lines(code, JAVASCRIPT_RULES, comment="//"), *unclosed(code)]
        case "C":
            return [*look_at_lines(code, C_RULES, comment="//"), *unclosed(code)]
        case _:
            return unclosed(code)


def _lines(code: str) -> str:
    count = len(code.strip().splitlines())
    return "one line" if count == 1 else f"{count} lines"
