"""Answers to what a handler asked: a caller's words or data as the type that was asked for."""

from typing import Final

import msgspec

from dragoman.model.json import Json, is_object
from dragoman.sdk.agent.schema import converted, expectation
from dragoman.sdk.content import Message

_YES_NO: Final = {"yes": True, "y": True, "no": False, "n": False}


def answer_as(message: Message, kind: object) -> Json:
    """An answer as that type; without one, its words. Raises msgspec.ValidationError saying what was expected.

    Words may be the value itself, its JSON, or what people write for it: `5`, `yes`.
    """
    if kind is None:
        return words_of(message)
    data = message.data
    # A form with one field is the value in it, unless the form itself was asked for.
    tried = [data, *(data.values() if is_object(data) and len(data) == 1 else ())] if data is not None else []
    failed: msgspec.ValidationError | None = None
    for value in tried:
        try:
            return _of_words(value, kind) if isinstance(value, str) else converted(value, kind)
        except msgspec.ValidationError as error:
            failed = failed or error
    if failed is not None and not message.text:
        raise failed
    return _of_words(message.text, kind)


def words_of(message: Message) -> str:
    """What a message says in words: its text, the text of its only field, else its JSON."""
    data = message.data
    if message.text or data is None:
        return message.text
    if is_object(data) and len(data) == 1 and isinstance(only := next(iter(data.values())), str):
        return only
    return data if isinstance(data, str) else msgspec.json.encode(data).decode()


def asked_again(prompt: str, error: msgspec.ValidationError) -> str:
    """The question once more, with what was expected."""
    path, expected = expectation(error)
    return f"{prompt} (The answer does not fit: {f'{path}: ' if path else ''}{expected}.)"


def _of_words(text: str, kind: object) -> Json:
    """A text as that type: as it is, as the JSON it may be, or as people write numbers and truth."""
    try:
        return converted(text, kind)
    except msgspec.ValidationError as error:
        failed = error
    tidy = text.strip()
    try:
        return converted(msgspec.json.decode(tidy), kind)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return converted(_YES_NO.get(tidy.lower(), tidy), kind, strict=False)
    except msgspec.ValidationError:
        raise failed from None
