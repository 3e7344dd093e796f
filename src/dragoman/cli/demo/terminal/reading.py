"""What a question says in passing: a size, a folder, a number, a word in quotes. Each quoted for the shell."""

import re
import shlex
from typing import Final

_SIZE: Final = re.compile(r"(\d{1,9})\s*([kmgt])i?b?\b", re.IGNORECASE)
_FOLDER: Final = re.compile(r"(?<![\w/])(~(?:/[\w.\-/]*)?|\.{0,2}/[\w.\-/]*)")
_FOLDER_WORDS: Final = (
    (re.compile(r"\bcurrent (?:directory|folder)\b"), "."),
    (re.compile(r"\bhome (?:directory|folder)\b|\bmy home\b"), "~"),
    (re.compile(r"\b(?:whole|entire) (?:system|disk|server|machine)\b"), "/"),
)
_COUNT: Final = re.compile(
    r"\b(?:top|last|first|latest|newest|keep(?: the)?(?: last| newest)?)\s+(\d{1,4})\b"
    r"|\b(\d{1,4})\s+(?:largest|biggest|most|newest|oldest|busiest|process|folder)"
)
_PERCENT: Final = re.compile(r"\b(\d{1,3})\s*(?:%|percent|per cent)")
_SPAN: Final = re.compile(r"\b(\d{1,4})\s*(second|minute|hour|day|week|month|year)s?\b")
_PORT: Final = re.compile(r"\bport\s+(?:number\s+)?(\d{1,5})\b")
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`|“([^”\n]{1,200})”")
_ADDRESS: Final = re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9.-]{1,200}[A-Za-z0-9]")
_URL: Final = re.compile(r"https?://[^\s\"'`<>]{1,500}")
_LOG: Final = re.compile(r"(?<![\w/])(?:\.{0,2}/|~/)?[\w.\-/]*\w\.(?:log|txt|csv|tsv|json|conf)\b")
_ENDING: Final = re.compile(
    r"(?<!\w)\*?\.(py|js|ts|sh|go|rs|java|c|cpp|h|rb|php|html|css|md|txt|log|json|ya?ml|csv|jpe?g|png)\b"
)
_LANGUAGES: Final = {
    "python": "py", "javascript": "js", "typescript": "ts", "golang": "go", "rust": "rs",
    "java": "java", "ruby": "rb", "php": "php", "markdown": "md", "html": "html", "css": "css",
}  # fmt: skip
_SECONDS: Final = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_592_000, "year": 31_536_000,
}  # fmt: skip


def size(question: str) -> str | None:
    """A size as `find -size` takes it: 100M."""
    found = _SIZE.search(question)
    if found is None:
        return None
    number, unit = int(found[1]), found[2].upper()
    # find has no unit above G.
    return f"{number * 1024}G" if unit == "T" else f"{number}{'k' if unit == 'K' else unit}"


def folder(question: str, default: str = ".") -> str:
    """A folder that is named, for use inside double quotes: with $HOME for ~."""
    found = _FOLDER.search(_URL.sub(" ", question))
    if found is not None:
        named = found[1].rstrip(".,") if found[1] not in (".", "..") else found[1]
        return "$HOME" + named[1:] if named.startswith("~") else named or "/"
    lower = question.lower()
    for pattern, meant in _FOLDER_WORDS:
        if pattern.search(lower):
            return "$HOME" if meant == "~" else meant
    return default


def count(question: str, default: int = 10) -> int:
    """How many."""
    found = _COUNT.search(question.lower())
    return int(found[1] or found[2]) if found is not None else default


def percent(question: str, default: int) -> int:
    """A share of a hundred."""
    found = _PERCENT.search(question.lower())
    return min(100, int(found[1])) if found is not None else default


def seconds(question: str) -> int | None:
    """A span of time."""
    found = _SPAN.search(question.lower())
    return int(found[1]) * _SECONDS[found[2]] if found is not None else None


def days(question: str, default: int) -> int:
    """A span in whole days."""
    span = seconds(question)
    return max(1, span // 86_400) if span is not None else default


def port(question: str) -> int | None:
    """A TCP port."""
    found = _PORT.search(question.lower())
    return int(found[1]) if found is not None and 0 < int(found[1]) < 65_536 else None


def quoted(question: str) -> list[str]:
    """What stands in quotation marks, quoted for the shell."""
    return [shlex.quote(next(filter(None, groups))) for groups in _QUOTED.findall(question)]


def address(question: str) -> str | None:
    """An e-mail address."""
    found = _ADDRESS.search(question)
    return found[0] if found is not None else None


def url(question: str) -> str | None:
    """An http address, quoted for the shell."""
    found = _URL.search(question)
    return shlex.quote(found[0].rstrip(".,;)?!")) if found is not None else None


def file(question: str, default: str) -> str:
    """A file that is named, for use inside double quotes."""
    found = _LOG.search(question)
    if found is None:
        return default
    return "$HOME" + found[0][1:] if found[0].startswith("~") else found[0]


def ending(question: str) -> str | None:
    """The ending of the files that are meant, without its dot."""
    found = _ENDING.search(question.lower())
    if found is not None:
        return found[1]
    words = set(re.findall(r"[a-z]+", question.lower()))
    return next((suffix for language, suffix in _LANGUAGES.items() if language in words), None)
