"""An agent's definition: out as JSON, in from JSON or YAML, and changed copies of the agent itself.

What has no JSON form is named by where it is imported from, `module:name`, and read back that way. So a definition
names code: load only those that you trust. Secrets are never part of one.
"""

import copy
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from types import MethodType
from typing import Any, Final, TypeVar, cast

import msgspec

from dragoman.dialects.text import id_of_name
from dragoman.model.extras import MissingExtra
from dragoman.model.json import Json, JsonObject
from dragoman.sdk.agent.agent import DEFAULT_CONCURRENCY, Agent, hidden_of
from dragoman.sdk.agent.signature import Function, name_of
from dragoman.sdk.agent.skills import Skill, make_skill
from dragoman.sdk.run.models import chat_completions

MOST_BYTES: Final = 1024 * 1024

AgentT = TypeVar("AgentT", bound=Agent)

_SETTINGS: Final = (
    "name", "instructions", "id", "description", "version", "tools", "model", "max_steps", "hub", "api_key",
    "concurrency", "rate_limits", "scopes_required", "tags", "provider",
)  # fmt: skip
_PLAIN: Final = tuple(name for name in _SETTINGS if name not in ("id", "tools", "model", "api_key"))
_SKILL_FIELDS: Final = ("name", "description", "tags", "examples", "scopes", "idempotent", "timeout_s")


class _Defined(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


class ChatModel(_Defined, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A model at a server; its key, if it needs one, is no part of a definition."""

    url: str
    name: str


class ModelPlace(_Defined, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A model that is more than a name: at a server, or to be imported."""

    chat_completions: ChatModel | None = None
    imported: str | None = msgspec.field(name="import", default=None)


class SkillDefinition(_Defined, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A published function: where it is imported from, and what was said of it beyond its own words."""

    function: str
    name: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Json, ...] = ()
    scopes: tuple[str, ...] = ()
    idempotent: bool = False
    timeout_s: float | None = None
    strict: bool = False
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None


class Definition(_Defined, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All that an agent is made of; what is as ever is left out."""

    name: str
    instructions: str | None = None
    id: str | None = None
    description: str | None = None
    version: str = "1.0.0"
    tools: tuple[str, ...] = ()
    model: str | ModelPlace | None = None
    max_steps: int = 8
    hub: str | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    rate_limits: dict[str, int] | None = None
    scopes_required: tuple[str, ...] = ("a2a:call",)
    tags: tuple[str, ...] = ()
    provider: str | dict[str, str] | None = None
    card: JsonObject | None = None
    skills: tuple[SkillDefinition, ...] = ()
    on_message: str | None = None


def clone(agent: AgentT, changes: Mapping[str, Any]) -> AgentT:
    """A copy with other settings: of the same class, with its skills and whatever attributes it was given.

    Raises TypeError for a setting that there is none of, ValueError for one that makes no sense.
    """
    settings: dict[str, Any] = {name: getattr(agent, name) for name in _SETTINGS}
    if agent.id == id_of_name(agent.name):
        settings["id"] = None  # made from its name, as that of the copy will be
    settings["card"] = copy.deepcopy(hidden_of(agent).card)
    made = Agent(**(settings | dict(changes)))
    copied = object.__new__(type(agent))
    for name, value in {**vars(agent), **vars(made)}.items():
        setattr(copied, name, copy.copy(value) if isinstance(value, dict | list | set) else value)  # pyright: ignore[reportUnknownArgumentType] - of whatever
    copied.tools = tuple(_moved(tool, agent, copied) for tool in made.tools)
    hidden, before = hidden_of(copied), hidden_of(agent)
    hidden.skills = {name: _moved_skill(skill, agent, copied) for name, skill in before.skills.items()}
    hidden.chat = None if before.chat is None else _moved_skill(before.chat, agent, copied)
    return copied


def to_dict(agent: Agent) -> JsonObject:
    """The definition as JSON. Raises ValueError for a function or model that cannot be imported by a name."""
    hidden = hidden_of(agent)
    plain: dict[str, Any] = {name: getattr(agent, name) for name in _PLAIN}
    if isinstance(provider := plain["provider"], Mapping):
        plain["provider"] = dict(cast("Mapping[str, str]", provider))
    definition = Definition(
        **plain,
        id=None if agent.id == id_of_name(agent.name) else agent.id,
        tools=tuple(_path_of(tool, "tool") for tool in agent.tools),
        model=_model_of(agent),
        card=hidden.card,
        skills=tuple(_skill_of(skill) for skill in hidden.skills.values()),
        on_message=None if hidden.chat is None else _path_of(hidden.chat.function, "message handler"),
    )
    usual = Definition(name=agent.name)
    shown: JsonObject = msgspec.json.decode(msgspec.json.encode(definition))
    return {name: value for name, value in shown.items() if name == "name" or not _same(name, definition, usual)}


def from_dict(cls: type[AgentT], definition: JsonObject) -> AgentT:
    """The agent that a definition says. Raises ValueError naming what is wrong in it."""
    try:
        read = msgspec.convert(definition, Definition)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no definition of an agent: {error}") from None
    settings: dict[str, Any] = {name: getattr(read, name) for name in (*_PLAIN, "id", "card") if name in definition}
    if read.tools:
        settings["tools"] = [_function_at(path) for path in read.tools]
    if read.model is not None:
        settings["model"] = _model_at(read.model)
    agent = cls(**settings)
    for skill in read.skills:
        options: dict[str, Any] = {name: getattr(skill, name) for name in _SKILL_FIELDS if getattr(skill, name)}
        options |= {name: given for name in ("input_schema", "output_schema") if (given := getattr(skill, name))}
        agent.skill(strict=skill.strict, **options)(_function_at(skill.function))
    if read.on_message is not None:
        agent.on_message(_function_at(read.on_message))
    return agent


def from_yaml(cls: type[AgentT], path: str | Path) -> AgentT:
    """The agent that a YAML file says. Raises MissingExtra, ValueError, OSError."""
    try:
        # PyYAML is nobody's but the user's: few agents are written down this way.
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        raise MissingExtra("Agent.from_yaml needs PyYAML", next="Install it: pip install PyYAML") from None
    with Path(path).open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"{path} is larger than 1 MiB: that is no definition of an agent.")
    try:
        definition: Json = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from None
    try:
        return from_dict(cls, definition)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _same(name: str, one: Definition, other: Definition) -> bool:
    return getattr(one, name) == getattr(other, name)


def _path_of(function: Function, what: str) -> str:
    """Where a function is imported from, tried out. Raises ValueError."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    path = f"{module}:{name}"
    try:
        found = _at(path) if module and name else None
    except ValueError:
        found = None
    if found is not function:
        raise ValueError(
            f"The {what} {name_of(function)!r} cannot be written down: importing {path} does not give it. "
            "Define it at the top level of a module."
        )
    return path


def _at(path: str) -> object:
    """What is imported by `module:name`. Raises ValueError."""
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"{path!r} names nothing to import: write module:name.")
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise ValueError(f"{path!r} cannot be imported: {error}") from None
    except AttributeError:
        raise ValueError(f"{path!r} cannot be imported: {module} has no {name}.") from None
    return found


def _function_at(path: str) -> Function:
    found = _at(path)
    if not callable(found):
        raise ValueError(f"{path!r} is no function.")
    return found


def _model_of(agent: Agent) -> str | ModelPlace | None:
    model: object = agent.model
    if model is None or isinstance(model, str):
        return model
    # Brings the HTTP client: only where there is a model to be written down.
    from dragoman.sdk.run.chat import ChatCompletions

    if not isinstance(model, ChatCompletions):
        return ModelPlace(imported=_path_of(cast("Function", model), "model"))
    if model.api_key is not None:
        raise ValueError(
            f"The model {model.name!r} has a key, which is no part of a definition: name the model alone "
            f"(model={model.name!r}) and set DRAGOMAN_MODEL_URL and DRAGOMAN_MODEL_KEY."
        )
    return ModelPlace(chat_completions=ChatModel(url=model.url, name=model.name))


def _model_at(model: str | ModelPlace) -> object:
    if isinstance(model, str):
        return model
    if (model.chat_completions is None) == (model.imported is None):
        raise ValueError("model: a name, chat_completions, or import; exactly one of them.")
    if model.chat_completions is not None:
        return chat_completions(model.chat_completions.url, model.chat_completions.name)
    return _function_at(model.imported or "")


def _skill_of(skill: Skill) -> SkillDefinition:
    strict = skill.signature.input_schema.get("additionalProperties") is False
    usual = make_skill(skill.function, strict=strict)
    fields = (*_SKILL_FIELDS, "input_schema", "output_schema")
    said = {name: value for name in fields if (value := getattr(skill, name)) != getattr(usual, name)}
    return SkillDefinition(function=_path_of(skill.function, "skill"), strict=strict, **said)


def _moved(function: Function, before: Agent, after: Agent) -> Function:
    """A method of the one agent as that of the other."""
    if inspect.ismethod(function) and function.__self__ is before:
        return MethodType(function.__func__, after)
    return function


def _moved_skill(skill: Skill, before: Agent, after: Agent) -> Skill:
    return msgspec.structs.replace(skill, function=_moved(skill.function, before, after))
