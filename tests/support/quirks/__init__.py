"""Real frameworks' habits on the wire, as small stubs: every server that answers in its own way, by name.

Each is a context manager that serves one agent; its `card` is the card that framework has, its `url` what a user would
register, and its answer is always `hello from <name>`.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from tests.support.quirks.agentvault import agentvault
from tests.support.quirks.hybrid import hybrid
from tests.support.quirks.liar import liar
from tests.support.quirks.mixedstream import mixedstream
from tests.support.quirks.nullpair import nullpair
from tests.support.quirks.only03 import manyparts03, statusonly03, wholetask03
from tests.support.quirks.pathmethod import pathmethod
from tests.support.quirks.rest03 import rest03
from tests.support.quirks.strict10 import historyonly10, statusonly10, strict10
from tests.support.quirks.understated import understated
from tests.support.speaking import StubAgent

STUBS: Final[Mapping[str, Callable[[], AbstractContextManager[StubAgent]]]] = {
    "strict10": strict10,
    "statusonly10": statusonly10,
    "historyonly10": historyonly10,
    "understated": understated,
    "hybrid": hybrid,
    "mixedstream": mixedstream,
    "manyparts03": manyparts03,
    "statusonly03": statusonly03,
    "wholetask03": wholetask03,
    "pathmethod": pathmethod,
    "agentvault": agentvault,
    "nullpair": nullpair,
    "rest03": rest03,
    "liar": liar,
}
