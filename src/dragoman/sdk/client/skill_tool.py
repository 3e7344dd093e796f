"""One skill of one agent, as a tool: what a model has to know of it, and calling it.

What a handler passes on passes on here, too: each call of a tool is `client.call`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

import msgspec

from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject
from dragoman.sdk.client.asking import CallOptions
from dragoman.sdk.client.sync import BACKGROUND
from dragoman.sdk.client.tool_schema import Takes
from dragoman.sdk.client.tool_words import value_of, words_of, words_of_error

if TYPE_CHECKING:
    from dragoman.sdk.client.client import A2AClient

MOST_DESCRIPTION: Final = 1024  # the strictest interface of a model takes no more

Arguments = Mapping[str, Json] | str | None  # an object, or its JSON as models write it


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as its agent's card shows it."""

    agent_id: str
    skill: str
    description: str = ""
    takes: Takes


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of calling a tool: its value, or in words for a model why there is none."""

    value: Json
    failed: bool = False

    @property
    def text(self) -> str:
        """The same as text."""
        return words_of(self.value)


@final
class SkillTool:
    """A skill that a model may call."""

    def __init__(
        self, offered: Offered, name: str, client: "A2AClient", options: CallOptions, *, raise_errors: bool
    ) -> None:
        self.name = name
        self.description = offered.description
        self.agent_id = offered.agent_id
        self.skill = offered.skill
        self._takes = offered.takes
        self._client = client
        self._options = options
        self._raise_errors = raise_errors

    def __repr__(self) -> str:
        return f"<SkillTool {self.name}>"

    @property
    def input_schema(self) -> JsonObject:
        """What it takes, always an object."""
        return self._takes.schema

    def inside(self) -> "SkillTool":
        """The same with all its arguments in one field, where a framework cannot take their names."""
        offered = Offered(
            agent_id=self.agent_id, skill=self.skill, description=self.description, takes=self._takes.inside()
        )
        return SkillTool(offered, self.name, self._client, self._options, raise_errors=self._raise_errors)

    async def outcome(self, arguments: Arguments) -> Outcome:
        """Call the skill. Raises what the call failed with, where that was asked for."""
        try:
            given, said = self._takes.content(self._takes.given(arguments))
            options: CallOptions = {**self._options, "message": said}
            return Outcome(value=value_of(await self._client.call(self.agent_id, self.skill, given, **options)))
        except DragomanError as error:
            if self._raise_errors:
                raise
            return Outcome(value=words_of_error(error), failed=True)

    def blocking(self, arguments: Arguments) -> Outcome:
        """The same for code that cannot await."""
        return BACKGROUND.run(lambda: self.outcome(arguments), instead="the async form of this tool")


def described(skill: str, agent: str) -> str:
    """What a model reads of a skill: what it does, and whose it is."""
    shown = "\n".join(part for part in (skill.strip(), agent.strip()) if part)
    return shown if len(shown) <= MOST_DESCRIPTION else f"{shown[: MOST_DESCRIPTION - 1]}…"
