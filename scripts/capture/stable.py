"""What differs from run to run, put into words that do not: ids, secrets, times, durations, ports, folders.

Everything keeps its width where columns follow it. The same id is the same word on the whole page, and so is an id that
a table cut in its middle.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

HOME: Final = "/home/ada"
TIME: Final = "2026-01-12T10:00:00.000Z"
_BODY: Final = re.compile(r"(?<![0-9A-Za-z])01[0-9a-z]{8}[0-9A-Za-z]{22}(?![0-9A-Za-z])")
_CUT: Final = re.compile(r"(?<=_)(01?[0-9a-z]{0,8}[0-9A-Za-z]*|0?)…([0-9A-Za-z]+)")
_TRACE: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY: Final = re.compile(r"ap_([0-9A-Za-z]{12})_[0-9A-Za-z]+")
_KEY_ID: Final = re.compile(r"(?m)(^|key |rotate |revoke |old one, )(?=[a-z]*[0-9A-Z])([0-9A-Za-z]{12})(?![0-9A-Za-z])")
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# In this order; what an earlier one wrote, a later one leaves as it is.
_WORDS: Final = (
    (re.compile(r"whsec_[0-9A-Za-z+/=]+"), "whsec_" + "*" * 12),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), TIME),
    (re.compile(r"\d+ (?:s|min) ago"), "just now"),
    (re.compile(r"\bin \d s\b"), "in 5 s"),
    (re.compile(r"(?:\d+ ms|[0-3]\.\d s) \(queued \d+ ms, agent [^)]+\)"), "14 ms (queued 1 ms, agent 13 ms)"),
    (re.compile(r"(answers in|latency|completed  ) \d+(?:\.\d)? ms\b"), r"\1 2 ms"),
    (re.compile(r'("duration_ms": )\d+'), r"\g<1>14"),
    (re.compile(r"span_[0-9a-f]{16}"), "span_00f067aa0ba902b7"),
    (re.compile(r"[+-]0\.\d\d s\b"), "+0.00 s"),
    (re.compile(r"\d+\.\d MB\b"), "0.3 MB"),
    (re.compile(r"\bpid \d+"), "pid 4711"),
    (re.compile(r"(?m)^(calls|seconds|calls per s|p50 ms|p99 ms|hub overhead ms)( {2,})[\d.]+$"), r"\1\2…"),
    (re.compile(r"  \(port \d+ is in use\)"), ""),
)
_EVENT: Final = re.compile(r"(?m)^( +(\d+)) +\+[\d.]+ m?s(?=  )")
_TOOK: Final = re.compile(r"(?m)( +)(\d+)(?=  just now *$)")


class Stable:
    """What was replaced so far, so that the same stays the same."""

    def __init__(self, folder: str, ports: Mapping[int, int]) -> None:
        """`folder` is the user's home; `ports` are the ones shown, each with the one that was really used."""
        self._folder = folder
        self._ports = dict(ports)
        self._ids: dict[str, str] = {}
        self.last: dict[str, str] = {}

    def port(self, shown: int, real: int) -> None:
        """Another port that stands for one."""
        self._ports[shown] = real

    def real(self, line: str) -> str:
        """A line of the list, as it is typed: `{call}` and `{key}` are the last ones that were shown."""
        for name, value in self.last.items():
            line = line.replace(f"{{{name}}}", value)
        return self._swapped(line, {str(shown): str(real) for shown, real in self._ports.items()})

    def words(self, text: str) -> str:
        """What was shown, in words that are the same in every run."""
        self._remember(text)
        text = text.replace(self._folder, HOME)
        text = self._swapped(text, {str(real): str(shown) for shown, real in self._ports.items()})
        text = _BODY.sub(lambda found: self._body(found[0]), text)
        text = _CUT.sub(lambda found: self._cut(found[1], found[2]), text)
        text = _UUID.sub(lambda found: self._hex(found[0]), text)
        text = _TRACE.sub(lambda found: self._hex(found[0]), text)
        text = _KEY.sub(lambda found: f"ap_{self._key(found[1])}_{'*' * 12}", text)
        text = _KEY_ID.sub(lambda found: found[1] + self._key(found[2]), text)
        for pattern, word in _WORDS:
            text = pattern.sub(word, text)
        text = _EVENT.sub(lambda found: f"{found[1]}  {'+' + found[2] + ' ms':>10}", text)
        return _TOOK.sub(lambda found: ("14" if len(found[2]) < 4 else "5014").rjust(len(found[0])), text)

    def _remember(self, text: str) -> None:
        for name, pattern in (("call", rf"a2a_call_{_BODY.pattern}"), ("key", r"\bkey ([0-9A-Za-z]{12}) \(")):
            for found in re.finditer(pattern, text):
                self.last[name] = found[1] if found.re.groups else found[0]

    def _swapped(self, text: str, numbers: Mapping[str, str]) -> str:
        """Port numbers, all at once: one may stand for another that is itself replaced; also where a table cut one."""
        known = {**{f"{old[:2]}…": f"{new[:2]}…" for old, new in numbers.items()}, **numbers}
        pattern = "|".join(map(re.escape, known))
        return re.sub(rf"(?<=[: =])(?:{pattern})(?!\d)", lambda found: known[found[0]], text)

    def _body(self, real: str) -> str:
        if real not in self._ids:
            self._ids[real] = "01k2" + _letters(f"id {len(self._ids)}", 28)
        return self._ids[real]

    def _cut(self, head: str, tail: str) -> str:
        """A cut id: that of the whole one, if it was seen, else of one of its own."""
        whole = next((one for one in self._ids if one.startswith(head) and one.endswith(tail)), None)
        stable = self._body(whole or f"{head}…{tail}")
        return f"{stable[: len(head)]}…{stable[-len(tail) :]}"

    def _hex(self, real: str) -> str:
        stable = iter(hashlib.sha256(self._named(real).encode()).hexdigest())
        return "".join("-" if letter == "-" else next(stable) for letter in real)

    def _key(self, real: str) -> str:
        return _letters(self._named(real), 12)

    def _named(self, real: str) -> str:
        return self._ids.setdefault(real, f"value {len(self._ids)}")


def _letters(seed: str, count: int) -> str:
    return "".join(_BASE62[byte % 62] for byte in hashlib.sha256(seed.encode()).digest()[:count])
