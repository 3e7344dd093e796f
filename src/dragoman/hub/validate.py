"""A skill's schemas: compiled once per card version, then used to check input and answer.

Schemas are strangers' data: no reference leaves the schema, and patterns run in linear time.
"""

from collections.abc import Callable, Sequence
from typing import Final

import jsonschema_rs
import msgspec

from dragoman.model.agent import Agent, AgentCard, Skill
from dragoman.model.compiled import Compiled
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_deeper, is_object
from dragoman.model.usage import pricing_of

MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_SCHEMA_DEPTH: Final = 32
MAX_SHOWN: Final = 20
MAX_COMPILED: Final = 10_000


class Schemas:
    """The compiled skills of agents that were called lately."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[object, ...], Compiled] = {}

    def of(self, agent: Agent, skill: Skill | None) -> Compiled:
        """The compiled form of a skill; of none in particular only what is the agent's own."""
        # The version too: a caller may pin an older card of the same agent.
        key = (agent.uuid, agent.updated_at, agent.card.version, None if skill is None else skill.id)
        compiled = self._compiled.get(key)
        if compiled is None:
            if len(self._compiled) >= MAX_COMPILED:
                self._compiled.clear()
            compiled = self._compiled[key] = compile_skill(agent.card, skill) if skill else _unnamed(agent.card)
        return compiled


def compile_skill(card: AgentCard, skill: Skill) -> Compiled:
    """Compile a skill's schemas. Raises BadParams naming the one that is wrong."""
    modes = skill.input_modes or card.input_modes
    return Compiled(
        input=None if skill.input_schema is None else _checker(skill.input_schema, skill, "input_schema"),
        output=None if skill.output_schema is None else _checker(skill.output_schema, skill, "output_schema"),
        defaults=_defaults(skill.input_schema) if skill.input_schema else {},
        text_only=bool(modes) and all(mode.startswith("text") for mode in modes),
        output_schema=skill.output_schema,
        pricing=pricing_of(card),
    )


def _unnamed(card: AgentCard) -> Compiled:
    return Compiled(pricing=pricing_of(card))


def filled(value: JsonObject, defaults: JsonObject) -> JsonObject:
    """The input with what it leaves out filled in; the caller's own object stays as it is."""
    if not defaults:
        return value
    full = dict(value)
    for name, default in defaults.items():
        if isinstance(default, _Nested):
            inner = full.get(name)
            if is_object(inner):
                full[name] = filled(inner, default.defaults)
        else:
            full.setdefault(name, default)
    return full


def _checker(schema: JsonObject, skill: Skill, field: str) -> Callable[[Json], list[JsonObject]]:
    path = f"agent_card.skills.{skill.id}.{field}"
    if len(msgspec.json.encode(schema)) > MAX_SCHEMA_BYTES:
        raise _bad(path, "larger than 64 KiB")
    if is_deeper(schema, MAX_SCHEMA_DEPTH):
        raise _bad(path, "nested deeper than 32 levels")
    try:
        validator = jsonschema_rs.validator_for(
            schema, retriever=_no_retrieval, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise _bad(path, f"not a JSON Schema this hub can use: {str(error)[:200]}") from None
    is_valid, iter_errors = validator.is_valid, validator.iter_errors

    def check(value: Json) -> list[JsonObject]:
        if is_valid(value):
            return []
        shown: list[JsonObject] = []
        for error in iter_errors(value):
            shown.append({"path": _path(error.instance_path, error.message), "message": error.message[:300]})
            if len(shown) == MAX_SHOWN:
                break
        return shown

    return check


def _path(steps: Sequence[str | int], message: str) -> str:
    """Where it fails; a missing property is named itself, not only the object it is missing from."""
    names = [str(step) for step in steps]
    if message.endswith(" is a required property"):
        names.append(message.partition(" is a required")[0].strip('"'))
    return ".".join(names) or "input"


def _no_retrieval(uri: str) -> Json:
    raise ValueError(f"a schema may not refer to {uri[:100]}")


class _Nested:
    """Defaults of an object inside the input."""

    __slots__ = ("defaults",)

    def __init__(self, defaults: JsonObject) -> None:
        self.defaults = defaults


def _defaults(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    found: JsonObject = {}
    for name, kind in properties.items() if is_object(properties) else ():
        if not is_object(kind):
            continue
        if "default" in kind:
            found[name] = kind["default"]
        elif inner := _defaults(kind):
            found[name] = _Nested(inner)
    return found


def _bad(path: str, message: str) -> BadParams:
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
