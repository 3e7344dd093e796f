"""What the options of `dragoman call` ask for, in one place."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from dragoman.cli.calls.answer import asked
from dragoman.cli.fitting import properties_of
from dragoman.cli.inputs import read_input, with_files
from dragoman.model.json import JsonObject

if TYPE_CHECKING:
    from dragoman.cli.calls.calling import Asked

DEFAULT_TIMEOUT_S: Final = 30.0  # what the hub allows a call that says nothing
STREAM_TIMEOUT_S: Final = 3600.0


class Wanted(NamedTuple):
    """The options, as they were given."""

    names: tuple[str, ...]
    given: tuple[str, ...]
    text: str | None
    files: tuple[str, ...]
    stream: bool
    accepted: bool
    wait: bool
    timeout_s: float | None
    priority: str | None
    conversation: str | None
    continued: str | None
    callback: str | None
    dialect: str | None
    idempotency_key: str | None
    out: Path | None
    explain: bool

    @property
    def seconds(self) -> float:
        """How long the call may take."""
        return self.timeout_s or (STREAM_TIMEOUT_S if self.stream else DEFAULT_TIMEOUT_S)

    def body(self) -> JsonObject:
        """What of it says how the call is to be made."""
        options: JsonObject = {}
        if self.timeout_s is not None or self.stream:
            options["timeout_ms"] = max(1, round(self.seconds * 1000))
        if self.priority is not None:
            options["priority"] = self.priority
        body: JsonObject = {"options": options} if options else {}
        if self.callback is not None:
            body["callback"] = {"url": self.callback}
        return body


def content_of(wanted: Wanted, schema: JsonObject, agent: str) -> JsonObject:
    """What is said to the agent: an input that fits the schema, or a message with files in it. Raises Fault."""
    if wanted.files:
        schema = {**schema, "required": []}  # what is missing may be in them
    value = read_input(wanted.given, wanted.text, schema, advice=f"dragoman agents show {agent}")
    if wanted.files:
        return {"message": with_files(wanted.files, value, wanted.text)}
    if wanted.text is not None and not wanted.given and (wanted.continued is not None or not properties_of(schema)):
        # An answer to a question is no input of the skill; and where its card tells no schema, its agent knows best
        # which of its inputs a text is.
        return {"message": wanted.text}
    return {"input": value}


def asked_back(call: "Asked", call_id: str, question: str) -> "Asked":
    """The call that answers an agent's question. Raises Fault where nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise asked(call_id, question)
    said: str = click.prompt(question, err=True, prompt_suffix=" " if question.endswith("?") else ": ")
    body: JsonObject = {"message": said, "context": {"continue_call_id": call_id}}
    if "options" in call.body:
        body["options"] = call.body["options"]
    return call._replace(body=body, headers={})
