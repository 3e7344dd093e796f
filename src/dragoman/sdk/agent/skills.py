"""What an agent publishes: functions as skills, a handler of free text as `chat`, the model or `handle_task` as
`handle`; and how a call becomes the arguments of each.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.objects import input_object
from dragoman.sdk.agent.signature import Bound, Function, Handed, Signature, description_of, name_of
from dragoman.sdk.content import Message, message_of_input, to_model
from dragoman.sdk.work.context import Context

CHAT: Final = "chat"
HANDLE: Final = "handle"
MAX_NAME: Final = 128

# Nothing is required, so that files and lists of parts are taken as well as words.
CHAT_INPUT: Final[JsonObject] = {"type": "object", "properties": {"text": {"type": "string"}}}
HANDLE_INPUT: Final[JsonObject] = {
    "type": "object",
    "properties": {"task": {"type": "string"}},
    "required": ["task"],
}


class Takes(StrEnum):
    """What a handler is given: an input object by its fields, the message itself, or the task in words."""

    INPUT = "input"
    MESSAGE = "message"
    TASK = "task"


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an agent can do, and the function that does it."""

    name: str
    function: Function
    description: str = ""
    takes: Takes = Takes.INPUT
    signature: Signature
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Json, ...] = ()
    scopes: tuple[str, ...] = ()
    idempotent: bool = False
    timeout_s: float | None = None

    def bind(self, given: Json, message: Message, context: Context) -> Bound:
        """What its function is called with. Raises InputRefused, BadParams."""
        handed: dict[Handed, object] = {Handed.CONTEXT: context, Handed.MESSAGE: message}
        match self.takes:
            case Takes.INPUT:
                return self.signature.bind(self.input_of(given, message), handed)
            case Takes.MESSAGE:
                return _with_message(self.signature, message, context)
            case Takes.TASK:
                return _with_task(self.signature, _task_of(given, message), handed)

    def input_of(self, given: Json, message: Message) -> JsonObject:
        """The input object: what was given, else what the message's parts make of this skill's schema."""
        if is_object(given):
            return given
        return input_object(to_model(message.parts), self.input_schema)


def make_skill(
    function: Function,
    *,
    name: str | None = None,
    description: str | None = None,
    tags: Iterable[str] = (),
    examples: Iterable[Json] = (),
    idempotent: bool = False,
    timeout_s: float | None = None,
    strict: bool = False,
    scopes: Iterable[str] = (),
    input_schema: JsonObject | None = None,
    output_schema: JsonObject | None = None,
) -> Skill:
    """A function as a skill. Raises TypeError naming the parameter that cannot be published."""
    shown = _named(name or getattr(function, "name", None) or name_of(function))
    signature = Signature(function, name=shown, strict=strict)
    return Skill(
        name=shown,
        function=function,
        description=_told(function) if description is None else description,
        signature=signature,
        input_schema=signature.input_schema if input_schema is None else input_schema,
        output_schema=signature.output_schema if output_schema is None else output_schema,
        tags=tuple(tags),
        examples=tuple(examples),
        scopes=tuple(scopes),
        idempotent=idempotent,
        timeout_s=timeout_s,
    )


def make_chat(function: Function) -> Skill:
    """A handler of free text as the skill `chat`. Raises TypeError for a parameter that nothing is handed in for."""
    signature = Signature(function)
    parameters = list(_kinds(signature).values())
    if len(set(parameters)) != len(parameters):
        raise TypeError(f"{name_of(function)}: a message handler takes a message and a Context, each at most once")
    return Skill(
        name=CHAT,
        function=function,
        description=_told(function) or "Answers messages",
        takes=Takes.MESSAGE,
        signature=signature,
        input_schema=CHAT_INPUT,
    )


def make_handle(function: Function, description: str) -> Skill:
    """Whatever works on a task in words as the skill `handle`."""
    return Skill(
        name=HANDLE,
        function=function,
        description=description,
        takes=Takes.TASK,
        signature=Signature(function),
        input_schema=HANDLE_INPUT,
    )


class _Words(StrEnum):
    TEXT = "text"


def _kinds(signature: Signature) -> Mapping[str, Handed | _Words]:
    """What each parameter of a message handler is given: by its type, else by its name."""
    found: dict[str, Handed | _Words] = {}
    for each in signature.parameters:
        if each.handed is not None:
            found[each.name] = each.handed
        elif each.kind is str:
            found[each.name] = _Words.TEXT
        else:
            found[each.name] = Handed.CONTEXT if each.name in ("ctx", "context") else Handed.MESSAGE
    return found


def _with_message(signature: Signature, message: Message, context: Context) -> Bound:
    values: dict[Handed | _Words, object] = {
        Handed.CONTEXT: context,
        Handed.MESSAGE: message,
        _Words.TEXT: message.text,
    }
    return Bound((), {name: values[kind] for name, kind in _kinds(signature).items()})


def _with_task(signature: Signature, task: str, handed: Mapping[Handed, object]) -> Bound:
    """The task goes to the first parameter that nothing is handed in for."""
    kwargs: dict[str, object] = {}
    waiting = True
    for each in signature.parameters:
        if each.handed is not None:
            kwargs[each.name] = handed[each.handed]
        elif waiting:
            kwargs[each.name], waiting = task, False
    return Bound((), kwargs)


def _task_of(given: Json, message: Message) -> str:
    """The task in words: the field of that name, else what the message says. Raises BadParams."""
    for value in (given, message.data):
        if is_object(value) and isinstance(task := value.get("task"), str):
            return task
    words = message.text or (message_of_input(given).text if given else "")
    if not words:
        raise BadParams("task: required, a text", errors=[{"path": "task", "message": "required"}])
    return words


def _told(function: Function) -> str:
    said = getattr(function, "description", None)
    return said if isinstance(said, str) else description_of(function)


def _named(name: object) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise ValueError(f"A skill's name is 1 to {MAX_NAME} printable characters; this is {name!r}. Pass name=…")
    return name
