"""A skill as calls are checked by it: its schemas compiled, what they fill in, and what its agent takes for it."""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonObject
from dragoman.model.usage import Pricing


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to check calls of one skill; `text_only`: the agent takes no JSON."""

    input: Callable[[Json], list[JsonObject]] | None = None
    output: Callable[[Json], list[JsonObject]] | None = None
    defaults: JsonObject = {}
    text_only: bool = False
    output_schema: JsonObject | None = None
    pricing: Pricing | None = None


NO_SCHEMA: Final = Compiled()
