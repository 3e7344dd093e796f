"""Which path means what: one flat table, made at start from the dialects' own routes and the hub's pages.

A path without variables is one dictionary lookup; one with `{name}` or `{name}:verb` segments is found by its shape,
the one with the most fixed segments first. Every path answers with and without a final slash, never by a redirect.
A path may stand for values that it does not name: at the root of an agent's own server, for that agent.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

import msgspec

from dragoman.model.http import NO_PARAMS

Target = TypeVar("Target")
NOTHING_IMPLIED: Final[Mapping[str, Mapping[str, str]]] = {}


class Found(msgspec.Struct, Generic[Target], frozen=True, gc=False):
    """What serves a path, and the values of its `{name}` segments."""

    target: Target
    params: Mapping[str, str]


class RouteTable(Generic[Target]):
    """Paths and what serves them; `implied` are values that a path stands for without naming them."""

    def __init__(
        self, routes: Iterable[tuple[str, str, Target]], implied: Mapping[str, Mapping[str, str]] = NOTHING_IMPLIED
    ) -> None:
        self._exact: dict[tuple[str, str], Found[Target]] = {}
        self._shaped: dict[tuple[str, int], list[tuple[list[str], Found[Target]]]] = {}
        for method, path, target in routes:
            found = Found(target, implied.get(path, NO_PARAMS))
            if "{" not in path:
                self._exact[method, path] = found
            else:
                segments = path.split("/")
                self._shaped.setdefault((method, len(segments)), []).append((segments, found))
        for shaped in self._shaped.values():
            shaped.sort(key=_looseness)

    def find(self, method: str, path: str, raw_path: bytes) -> Found[Target] | None:
        """What serves a request, if anything does; HEAD asks for what GET would get."""
        found = self._exact.get((method, path))
        if found is not None:
            return found
        if method == "HEAD":
            return self.find("GET", path, raw_path)
        if path.endswith("/") and path != "/":
            return self.find(method, path.rstrip("/") or "/", raw_path.rstrip(b"/"))
        # Split before decoding: an escaped slash belongs to its segment.
        segments = raw_path.split(b"/")
        for pattern, found in self._shaped.get((method, len(segments)), ()):
            params = _matched(pattern, segments, found.params)
            if params is not None:
                return Found(found.target, params)
        return None

    def allowed(self, path: str, raw_path: bytes) -> list[str]:
        """The methods with which a path is served."""
        return [method for method in METHODS if self.find(method, path, raw_path) is not None]


METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def _looseness(shaped: tuple[list[str], object]) -> tuple[int, list[bool]]:
    """Fixed segments first, then those with a verb, then the free ones; of equals the one fixed earlier."""
    pattern = shaped[0]
    free = [segment.startswith("{") for segment in pattern]
    return sum(2 if segment.endswith("}") else 1 for segment in pattern if segment.startswith("{")), free


def _matched(pattern: list[str], segments: list[bytes], implied: Mapping[str, str]) -> Mapping[str, str] | None:
    params = dict(implied)
    for expected, raw in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            name, _, verb = expected[1:].partition("}")
            if not raw.endswith(verb.encode()):
                return None
            value = unquote(raw[: len(raw) - len(verb)].decode("ascii", "replace"), errors="replace")
            if not value:
                return None
            params[name] = value
        elif expected.encode() != raw:
            return None
    return params
