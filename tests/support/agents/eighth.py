"""A stub agent of the eighth dialect, the one that is added for a test."""

import contextlib
import itertools
from collections.abc import Generator, Mapping
from typing import Any

from dragoman.model.json import is_object
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving, wish_of


@contextlib.contextmanager
def agent(name: str = "eighth-stub") -> Generator[StubAgent]:
    """An agent that repeats what it is told, within the block."""
    stub = StubAgent("eighth")
    tasks: dict[str, dict[str, Any]] = {}
    numbers = itertools.count(1)

    def send(said: dict[str, Any]) -> dict[str, Any]:
        known = said.get("task") in tasks
        task_id = said["task"] if known else f"theirs-{next(numbers)}"
        shown = {"task": task_id, "context": said.get("context", "ctx")}
        wish = "echo" if known else wish_of(_text_of(said["say"][0]))
        tasks[task_id] = _outcome(wish, shown, said["say"])
        if wish == "slow":
            stub.arrived.set()
            if said["wait"]:
                stub.release.wait(20)
        return tasks[task_id]

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if body["do"] == "send":
            return json_answer(send(body))
        if body["task"] not in tasks:
            return json_answer({"wrong": -32001, "why": "no such task"}, 404)
        if body["do"] == "cancel":
            tasks[body["task"]] = {**tasks[body["task"]], "state": "canceled"}
            stub.cancelled.set()
        return json_answer(tasks[body["task"]])

    with serving(stub, handle):
        stub.card = {"eighth": 1, "id": name, "name": "Eighth", "skills": ["echo"], "at": f"{stub.url}/"}
        yield stub


def _text_of(part: dict[str, Any]) -> str | None:
    """The text of a part; callers of some dialects send it as an object."""
    data = part.get("data")
    text: str | None = data.get("text") if is_object(data) else part.get("text")
    return text


def _outcome(wish: str, shown: dict[str, Any], say: list[Any]) -> dict[str, Any]:
    match wish:
        case "fail":
            return {**shown, "state": "failed", "words": FAILURE}
        case "reject":
            return {**shown, "state": "rejected", "words": "not that"}
        case "ask":
            return {**shown, "state": "input-required", "words": QUESTION}
        case "slow":
            return {**shown, "state": "working"}
        case _:
            return {**shown, "state": "completed", "say": say}
