"""Steps that follow a call: which are good, and what each one is given.

A step without an input is given the result of the one before it. Anywhere in an input, an object whose only key is
`$from` stands for a result: "0" of the first call, "-" of the step before, or a step's own id; a JSON Pointer after
"#" picks from it. Of steps side by side the result is the list of their results, in their order.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from dragoman.model.content import Data, Part, Text
from dragoman.model.errors import BadParams, TooLarge
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.objects import parts_of_object
from dragoman.model.operations import Step

MOST_STEPS: Final = 50
MOST_REFERENCES: Final = 100  # in the input of one step
FIRST: Final = "0"
PREVIOUS: Final = "-"
FROM: Final = "$from"
RESULTS: Final = "results"  # what a list is called where only an object will do

Then = tuple[Step | tuple[Step, ...], ...]
Stage = tuple[Step, ...]  # what runs at once

_encode = msgspec.json.Encoder().encode


def stages(then: Then) -> tuple[Stage, ...]:
    """The steps, those that run at once together."""
    return tuple((each,) if isinstance(each, Step) else each for each in then)


def check_steps(then: Then, field: str) -> None:
    """Refuse what can be seen to be wrong before anything runs; `field` is where the steps stand in the request.

    Raises BadParams naming the place.
    """
    if sum(map(len, stages(then))) > MOST_STEPS:
        raise _bad(field, f"at most {MOST_STEPS} steps")
    known = {FIRST, PREVIOUS}
    taken = {FIRST, PREVIOUS}
    for number, each in enumerate(then):
        place = f"{field}[{number}]"
        if not isinstance(each, Step) and not each:
            raise _bad(place, "expected at least one step")
        steps = {place: each} if isinstance(each, Step) else {f"{place}[{k}]": step for k, step in enumerate(each)}
        for where, step in steps.items():
            _check_id(step, taken, where)
            _check_references(step, known, f"{where}.input")
        # Those side by side cannot wait for each other.
        known |= {step.id for step in steps.values() if step.id is not None}


def input_of(step: Step, results: Mapping[str, Json], most_bytes: int) -> Json:
    """What a step is given, by the results so far.

    Raises BadParams where a reference finds nothing, TooLarge where all that is referred to is more than `most_bytes`.
    """
    if step.input is None:
        return results[PREVIOUS]
    left = most_bytes

    def filled(value: Json) -> Json:
        nonlocal left
        if is_object(value):
            if value.keys() == {FROM}:
                found = _picked(results, value[FROM])
                # Before it is copied: a small request must not make a big one out of a result it names often.
                left -= refuse_too_large(found, left)
                return found
            return {name: filled(each) for name, each in value.items()}
        return [filled(each) for each in value] if is_array(value) else value

    return filled(step.input)


def refuse_too_large(value: Json, most_bytes: int) -> int:
    """How many bytes a result has. Raises TooLarge where that is more than so many."""
    size = len(_encode(value))
    if size > most_bytes:
        raise TooLarge(f"Together the results are larger than {most_bytes} bytes.", limit_bytes=most_bytes)
    return size


def parts_of_input(value: Json) -> tuple[Part, ...]:
    """A step's input as the parts of a message: text is text, and what else is no object becomes one."""
    if is_object(value):
        return parts_of_object(value)
    if isinstance(value, str):
        return (Text(text=value),)
    return (Data(value=as_object(value)),)


def as_object(result: Json) -> JsonObject:
    """A result where only an object will do."""
    if is_object(result):
        return result
    return {RESULTS: result} if is_array(result) else {"value": result}


def _check_id(step: Step, taken: set[str], place: str) -> None:
    if step.id is None:
        return
    if "#" in step.id or step.id in (FIRST, PREVIOUS):
        raise _bad(f"{place}.id", f'"{FIRST}", "{PREVIOUS}" and what has a # in it have another meaning')
    if step.id in taken:
        raise _bad(f"{place}.id", f"two steps are called {step.id!r}")
    taken.add(step.id)


def _check_references(step: Step, known: set[str], place: str) -> None:
    for count, (where, reference) in enumerate(_references(step.input, place), start=1):
        if count > MOST_REFERENCES:
            raise _bad(place, f"at most {MOST_REFERENCES} references to results")
        if not isinstance(reference, str):
            raise _bad(where, f"{FROM} is text: a step's id, and a JSON Pointer after #")
        name, _, pointer = reference.partition("#")
        if name not in known:
            raise _bad(where, f"no step before this one is called {name[:100]!r}")
        if pointer and not pointer.startswith("/"):
            raise _bad(where, f"{pointer[:100]!r} is not a JSON Pointer: it begins with /")
        if "~" in pointer.replace("~0", "").replace("~1", ""):
            raise _bad(where, f"{pointer[:100]!r} is not a JSON Pointer: ~ is written ~0")


def _references(value: Json, place: str) -> Iterator[tuple[str, Json]]:
    if is_object(value):
        if value.keys() == {FROM}:
            yield place, value[FROM]
            return
        for name, each in value.items():
            yield from _references(each, f"{place}.{name}")
    elif is_array(value):
        for number, each in enumerate(value):
            yield from _references(each, f"{place}[{number}]")


def _picked(results: Mapping[str, Json], reference: str) -> Json:
    name, _, pointer = reference.partition("#")
    found = results[name]
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if is_object(found) and key in found:
            found = found[key]
        elif is_array(found) and _is_index(key) and int(key) < len(found):
            found = found[int(key)]
        else:
            raise BadParams(
                f"The result of {name!r} has nothing at {pointer!r}.",
                errors=[{"path": reference, "message": "not found in the result"}],
            )
    return found


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 9 and (key == "0" or key[0] != "0")


def _bad(path: str, message: str) -> BadParams:
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
