"""What `call` sends: values typed as text, files and stdin, made into one input object.

    --input k=v  k=@file  @file (a whole JSON object)  -  (the same from stdin)     --text T     --file PATH

What a value may be is the schema's business (`fitting.py`); nothing is sent here.
"""

import base64
import json
import mimetypes
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman.cli.fault import Fault, wrong_usage
from dragoman.cli.fitting import (
    NotFitting,
    converted,
    misfits,
    no_constant,
    properties_of,
    quoted,
    schema_line,
    text_name,
)
from dragoman.model.json import JsonObject, is_object


def read_input(given: Sequence[str], text: str | None, schema: JsonObject, *, advice: str) -> JsonObject:
    """The input object. Raises Fault with everything that does not fit; `advice` is the next step then."""
    whole: JsonObject = {}
    single: JsonObject = {}
    problems: dict[str, str] = {}
    properties = properties_of(schema)
    for item in given:
        if item == "-" or (item.startswith("@") and "=" not in item):
            whole.update(_document(item))
            continue
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise wrong_usage(f'--input "{item}" is neither k=v, @file nor -', next="dragoman call --help")
        if name in single:
            problems[name] = "given twice"
            continue
        content = _content(value)
        try:
            single[name] = converted(content, properties.get(name, {}), schema)
        except NotFitting as error:
            single[name] = content
            problems[name] = f"expected {error}, got {quoted(content)}"
    if text is not None:
        single.setdefault(text_name(schema), text)
    merged = whole | single
    problems = misfits(merged, schema, problems)
    if problems:
        raise _refused(problems, schema, advice)
    return merged


def with_files(names: Sequence[str], value: JsonObject, text: str | None) -> list[JsonObject]:
    """What was typed and the files, as parts of a message. Raises Fault for a file that cannot be read."""
    parts: list[JsonObject] = []
    if text is not None and text in value.values() and len(value) == 1:
        parts.append({"kind": "text", "text": text})
    elif value:
        parts.append({"kind": "data", "data": value})
    for name in names:
        try:
            raw = Path(name).read_bytes()
        except OSError as error:
            raise wrong_usage(f'"{name}" cannot be read: {error.strerror}', next="check the file's name") from error
        file: JsonObject = {"name": Path(name).name, "bytes": base64.b64encode(raw).decode()}
        kind = mimetypes.guess_type(name)[0]
        parts.append({"kind": "file", "file": {**file, **({"mimeType": kind} if kind else {})}})
    return parts


def _refused(problems: dict[str, str], schema: JsonObject, advice: str) -> Fault:
    properties = properties_of(schema)
    return wrong_usage(
        "; ".join(f"{name}: {problem}" for name, problem in problems.items()),
        next=advice,
        lines=[schema_line(name, properties[name], schema) for name in problems if name in properties],
        details={"input": problems},
    )


def _document(item: str) -> JsonObject:
    """The whole input from a file or stdin."""
    source = "stdin" if item == "-" else item[1:]
    text = sys.stdin.read() if item == "-" else _file(item[1:])
    try:
        value = json.loads(text, parse_constant=no_constant)
    except ValueError as error:
        raise wrong_usage(f"{source} is not JSON: {error}", next="check it, or give --input k=v") from error
    if not is_object(value):
        raise wrong_usage(f"{source} holds no JSON object", next='write it as {"name": value}')
    return value


def _content(value: str) -> str:
    """The text of a value: of a file for @file; @@ stands for one @."""
    if value.startswith("@@"):
        return value[1:]
    return _file(value[1:]) if value.startswith("@") else value


def _file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise wrong_usage(f'"{name}" cannot be read: {reason}', next="check the file's name") from error
