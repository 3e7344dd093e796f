"""The archive's articles, and how they are found: by the words they share with a query."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

_HEADING: Final = "## "
_ADDRESS: Final = "https://example.org/archive/"
_TITLE_WEIGHT: Final = 3
# Words that say nothing about what an article is about.
_EMPTY: Final = re.compile(
    "a|about|all|an|and|are|as|at|be|by|do|does|for|from|has|have|how|i|in|is|it|its|many|me|much|of|on|or|show|some|"
    "tell|than|that|the|their|there|they|this|to|was|were|what|when|where|which|who|why|will|with|you"
)


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """A short text with its title and address."""

    title: str
    url: str
    text: str


@cache
def articles() -> tuple[Article, ...]:
    """All of them, in the order of the file."""
    text = files("dragoman.cli.demo").joinpath("articles.md").read_text(encoding="utf-8")
    return tuple(_article(block) for block in text.split(_HEADING)[1:])


def find(query: str, most: int, among: Sequence[Article] | None = None) -> list[Article]:
    """The articles that have most of a query's words, best first; of equals the earlier one."""
    wanted = words_of(query)
    scored = [(_score(article, wanted), article) for article in (articles() if among is None else among)]
    best = sorted((each for each in scored if each[0] > 0), key=lambda each: -each[0])
    return [article for _, article in best[:most]]


def words_of(text: str) -> frozenset[str]:
    """The words that matter, in their plainest form."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return frozenset(_plain(word) for word in words if _EMPTY.fullmatch(word) is None)


def _article(block: str) -> Article:
    title, _, text = block.partition("\n")
    slug = "-".join(re.findall(r"[^\W_]+", title.casefold()))
    return Article(title=title, url=_ADDRESS + slug, text=" ".join(text.split()))


def _score(article: Article, wanted: frozenset[str]) -> int:
    title, text = words_of(article.title), words_of(article.text)
    exact = 1 if wanted and wanted == title else 0
    return _TITLE_WEIGHT * len(wanted & title) + len(wanted & text) + exact


def _plain(word: str) -> str:
    """Without the endings that English hangs on: tides and tide, cities and city, tidal."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("al", "e"), ("s", "")):
        if word.endswith(ending) and not word.endswith(("ss", "us", "is")) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + instead
    return word
