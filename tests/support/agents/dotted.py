"""A stub agent of dotted, by its document or as the published server is.

The published one knows only 0.3's names, refuses ids that are no strings, sends `result` and `error` both, its times
have no zone, and its turns are called history.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any

from dragoman.model.json import is_object
from tests.support.kind_tasks import AT, KindTasks, Said, error
from tests.support.speaking import StubAgent, json_answer, serving

CARDS = ("/.well-known/agent-card", "/agent-card")
DOCUMENT = {"message.send": "send", "task.get": "get", "task.cancel": "cancel"}
PUBLISHED = {"message/send": "send", "tasks/get": "get", "tasks/cancel": "cancel"}


@contextlib.contextmanager
def agent(name: str = "dotted-stub", *, published: bool = False) -> Generator[StubAgent]:
    """An agent that repeats what it is told, within the block."""
    stub = StubAgent("dotted")
    tasks = KindTasks(stub, words=_words, at="2026-01-12T10:00:00.123456" if published else AT)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET":
            return json_answer(stub.card) if path in CARDS else json_answer({"detail": "Not Found"}, 404)
        if path != "/" or not is_object(body):
            return json_answer({"jsonrpc": "2.0", "id": "unknown", **error(-32603, "Internal error")})
        said = _said(tasks, body, PUBLISHED if published else DOCUMENT)
        return json_answer({"jsonrpc": "2.0", "id": body["id"], **_dressed(said, published=published)})

    with serving(stub, handle):
        stub.card = _card(name, stub.url, published=published)
        yield stub


def _card(name: str, url: str, *, published: bool) -> Said:
    skill: Said = {
        "id": "echo",
        "name": "Echo",
        "description": "Repeats",
        "inputModes": ["text", "file", "data"],
        "outputModes": ["text", "file", "data"],
        "tags": ["test"],
        "examples": ["hello"],
    }
    return {
        "name": name,
        "description": "Repeats what it is told",
        "url": url,
        "version": "1.0.0",
        "provider": {"organization": "Stubs"} if published else "Stubs",
        "skills": [skill],
        "capabilities": {"streaming": False, "pushNotifications": False, "longRunningTasks": True},
        "metadata": {"a2a_version": "1.0"},
    }


def _said(tasks: KindTasks, body: Said, names: Mapping[str, str]) -> Said:
    params: Said = body.get("params") or {}
    if not isinstance(body.get("id"), str):
        return error(-32600, "Invalid request: id")
    match names.get(body["method"]):
        case "send" if params.get("message"):
            return tasks.send(params)
        case "get" if _task_id(params, names):
            return tasks.get(_task_id(params, names))
        case "cancel" if _task_id(params, names):
            return tasks.cancel(_task_id(params, names))
        case None:
            return error(-32601, "Method not found")
        case _:
            return error(-32602, "Invalid params")


def _task_id(params: Said, names: Mapping[str, str]) -> str:
    return params.get("id" if names is PUBLISHED else "taskId") or ""


def _dressed(said: Said, *, published: bool) -> Said:
    """The answer as the server writes it."""
    if published:
        return {"result": None, "error": None, **said}
    if "error" in said:
        return said
    task = {name: value for name, value in said["result"].items() if name != "history"}
    return {"result": {**task, "messages": said["result"]["history"], "createdAt": AT, "updatedAt": AT}}


def _words(text: str, task: Said) -> str:
    return text
