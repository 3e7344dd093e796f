"""The page: a marker names a command, and the block below it shows the command and what it says.

<!-- capture: dragoman agents ls -->
```console
$ dragoman agents ls
…
```
"""

import re
from collections.abc import Mapping
from typing import Final

_PLACE: Final = re.compile(r"^<!-- capture: (?P<line>.+?) -->\n(?:```console\n.*?^```$\n?)?", re.MULTILINE | re.DOTALL)


class Unfit(Exception):
    """The page and the list do not name the same commands."""


def filled(page: str, shown: Mapping[str, str]) -> str:
    """The page with what each of its commands shows. Raises Unfit."""
    wanted = [found["line"] for found in _PLACE.finditer(page)]
    unknown = [line for line in wanted if line not in shown]
    unused = [line for line in shown if line not in wanted]
    if unknown or unused or len(set(wanted)) < len(wanted):
        raise Unfit(f"only on the page: {unknown}; only in the list: {unused}; or one stands there twice")
    return _PLACE.sub(lambda found: _block(found["line"], shown[found["line"]]), page)


def _block(line: str, text: str) -> str:
    return f"<!-- capture: {line} -->\n```console\n{text}\n```\n"
