"""Which of several labels fits a task: what a model is asked, what its answer means, and the words that both share."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.run.models import ModelMessage, ModelRequest

_WORD: Final = re.compile(r"[^\W_]+")
_ENDINGS: Final = ("ing", "ers", "er", "ed", "es", "s", "e")
_SHORTEST: Final = 3  # what is left of a word without its ending


def choice_request(
    task: str, labels: Sequence[str], specialists: Mapping[str, object], deadline: float | None
) -> ModelRequest:
    """The question which label fits."""
    lines = [f"- {label}{_about(specialists.get(label))}" for label in labels]
    schema: JsonObject = {
        "type": "object",
        "properties": {"label": {"type": ["string", "null"], "enum": [*labels, None]}},
        "required": ["label"],
        "additionalProperties": False,
    }
    return ModelRequest(
        instructions='Say which label fits the task best. Answer with JSON alone: {"label": "…"}, or {"label": null}'
        " where none fits. The labels:\n" + "\n".join(lines),
        messages=(ModelMessage(role="user", text=task),),
        output_schema=schema,
        final=True,
        deadline=deadline,
    )


def chosen(answer: str, labels: Sequence[str]) -> str | None:
    """The label that a model's answer names: as asked, as a bare word, or as the only label in what it says."""
    said = _label_in(answer)
    by_name = {label.casefold(): label for label in labels}
    plain = said.strip(" \t\r\n.\"'`").casefold()
    if plain in by_name:
        return by_name[plain]
    words = set(_WORD.findall(said.casefold()))
    named = [label for label in labels if set(_WORD.findall(label.casefold())) <= words]
    return named[0] if len(named) == 1 else None


def by_words(task: str, labels: Sequence[str], specialists: Mapping[str, object]) -> str | None:
    """The label that shares most words with the task, those of its specialist's skills and tags included."""
    wanted = _stems(task)
    shared = [len(wanted & _stems(label, *_known_of(specialists.get(label)))) for label in labels]
    most = max(shared, default=0)
    return labels[shared.index(most)] if most else None


def _label_in(answer: str) -> str:
    plain = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        value: Json = msgspec.json.decode(plain)
    except (msgspec.DecodeError, RecursionError):
        return answer
    if is_object(value):
        value = value.get("label")
    return value if isinstance(value, str) else ""


def _known_of(specialist: object) -> Iterable[str]:
    """The skills and tags of a specialist that is more than an id."""
    skills: Iterable[object] = getattr(specialist, "skills", ())
    tags: Iterable[object] = getattr(specialist, "tags", ())
    return [str(each) for each in (*skills, *tags)]


def _about(specialist: object) -> str:
    known = ", ".join(_known_of(specialist))
    return f" ({known})" if known else ""


def _stems(*texts: str) -> set[str]:
    """The words of texts without their endings, so that `writing` and `write` are one."""
    return {_stem(word) for text in texts for word in _WORD.findall(text.replace("_", " ").casefold())}


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word
