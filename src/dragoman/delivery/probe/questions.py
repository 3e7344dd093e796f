"""The questions that start no work, and what an answer to each of them shows.

    1 GetTask   2 tasks/get   3 message/send without params      always, and read together
    4 to 10     one dialect each                                 where a card points there, or nothing else answered

The words are the dialects' own; this is the one file of delivery that names them.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dragoman.dialects.a2a_v03.rest_out import answers_rest_probe as answers_v03_rest
from dragoman.dialects.a2a_v03.rest_out import probe_rest as v03_rest
from dragoman.dialects.a2a_v10.probe import answers_rest_probe as answers_v10_rest
from dragoman.dialects.a2a_v10.probe import probe_rest as v10_rest
from dragoman.dialects.dialect import Dialect
from dragoman.dialects.directory.probe import answers_task_probe, probe_task
from dragoman.dialects.platform.probe import CALL_PATH
from dragoman.dialects.platform.probe import answers_probe as answers_platform
from dragoman.dialects.platform.probe import probe as platform
from dragoman.model.agent import Binding
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object

V10, V03, VAULT, DOTTED = "a2a-1.0", "a2a-0.3", "agentvault", "dotted"
DIRECTORY, ENVELOPE, PLATFORM = "directory", "envelope", "platform"
UNKNOWN_METHOD: Final = -32601
# What dialects, which draw no chance, write in its place.
_FIXED: Final = "dragoman-probe-no-such-task"

_NOTHING: Final = HttpReply(status=0)

_decode = msgspec.json.Decoder().decode


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One safe request: of which dialect, how it is asked, and which answers mean yes."""

    asks: str
    dialect: str
    ask: Callable[[str], HttpRequest]
    yes: Callable[[HttpReply], bool]
    binding: Binding = Binding.JSONRPC
    framed: bool = True  # JSON-RPC: a final slash may matter, and only a frame is an answer
    shows: str = ""  # what a yes is, where a status alone does not say it
    endpoint: Callable[[str], str] = lambda url: url  # where a yes means that the dialect is spoken

    def request(self, url: str, nonce: str) -> HttpRequest:
        """The request, about a task that nobody can have."""
        made = self.ask(url)
        unknown = f"dragoman-probe-{nonce}"
        return msgspec.structs.replace(
            made, url=made.url.replace(_FIXED, unknown), body=made.body.replace(_FIXED.encode(), unknown.encode())
        )


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """What came back to one question."""

    question: Question
    url: str
    reply: HttpReply | None

    @property
    def locked(self) -> bool:
        """Whether the answer is that a credential is wanted."""
        return self.reply is not None and self.reply.status in (401, 403)

    @property
    def yes(self) -> bool:
        """Whether the answer shows that the dialect is spoken."""
        if self.reply is None or self.locked:
            return False
        if self.question.framed and (frame_of(self.reply) is None or self.code == UNKNOWN_METHOD):
            return False
        return self.question.yes(self.reply)

    @property
    def code(self) -> int | None:
        """The code of a JSON-RPC error."""
        return None if self.reply is None else code_of(self.reply)

    @property
    def broken(self) -> bool:
        """Whether the question broke the server: an error of its own, without a frame."""
        return self.reply is not None and self.reply.status >= 500 and frame_of(self.reply) is None

    @property
    def evidence(self) -> str:
        """The question and the answer, for people."""
        said = "no answer" if self.reply is None else self.question.shows if self.yes else ""
        return f"{self.question.asks} → {said or describe(self.reply or _NOTHING)}"


def questions(dialects: Mapping[str, Dialect]) -> Mapping[str, tuple[Question, ...]]:
    """By dialect, the questions that are asked for it alone; those of the first three are in `first_three`."""
    envelope, directory, dotted = _own("ping", dialects[ENVELOPE]), dialects[DIRECTORY], dialects[DOTTED]
    return {
        DOTTED: (_own("task.get", dotted),),
        DIRECTORY: (
            _own("a2a/discover", directory),
            Question(asks="a2a/task", dialect=DIRECTORY, ask=probe_task, yes=answers_task_probe),
        ),
        V10: (_path("GET /tasks", V10, v10_rest, answers_v10_rest),),
        V03: (_path("GET /v1/tasks", V03, v03_rest, answers_v03_rest),),
        ENVELOPE: (msgspec.structs.replace(envelope, framed=False, shows="an echo"),),
        PLATFORM: (
            Question(
                asks="discover",
                dialect=PLATFORM,
                ask=platform,
                yes=answers_platform,
                framed=False,
                shows="agents",
                endpoint=lambda url: url.rstrip("/") + CALL_PATH,
            ),
        ),
    }


def first_three(dialects: Mapping[str, Dialect]) -> tuple[Question, Question, Question]:
    """The questions that are always asked."""
    return (
        _own("GetTask", dialects[V10]),
        _own("tasks/get", dialects[VAULT]),
        _own("message/send", dialects[V03]),
    )


def describe(reply: HttpReply) -> str:
    """An answer in a word or two."""
    frame = frame_of(reply)
    if frame is None:
        return f"HTTP {reply.status}"
    code = _code(frame)
    said = str(code) if code is not None else "an error" if frame.get("error") is not None else "a result"
    return said if reply.status == 200 else f"{said} (HTTP {reply.status})"


def frame_of(reply: HttpReply) -> JsonObject | None:
    """The JSON-RPC answer in a reply, if it is one; some servers refuse with bodies that only look alike."""
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not is_object(body) or "jsonrpc" not in body:
        return None
    return body if "result" in body or "error" in body else None


def code_of(reply: HttpReply) -> int | None:
    """The code of the JSON-RPC error in a reply."""
    frame = frame_of(reply)
    return None if frame is None else _code(frame)


def is_broken_message(reply: HttpReply | None) -> bool:
    """Whether a reply is what python-a2a says to everything but its own paths: a failed message of the agent."""
    if reply is None or reply.status != 500:
        return False
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return is_object(body) and body.get("role") == "agent" and is_array(body.get("parts"))


def _code(frame: JsonObject) -> int | None:
    error: Json = frame.get("error")
    code: Json = error.get("code") if is_object(error) else None
    return code if isinstance(code, int) else None


def _own(asks: str, dialect: Dialect) -> Question:
    if dialect.probe is None or dialect.answers_probe is None:
        raise LookupError(f"{dialect.slug} has nothing that it could be asked")
    return Question(asks=asks, dialect=dialect.slug, ask=dialect.probe, yes=dialect.answers_probe)


def _path(asks: str, dialect: str, ask: Callable[[str], HttpRequest], yes: Callable[[HttpReply], bool]) -> Question:
    return Question(
        asks=asks, dialect=dialect, ask=ask, yes=yes, binding=Binding.HTTP, framed=False, shows="no such task"
    )
