"""Agents of the A2A family that are asked for a task again and again: what it has made is seen before its end."""

import json
from typing import Any

import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.content import Text
from dragoman.model.events import ArtifactChunk, Remote, StatusChanged
from dragoman.model.http import HttpReply
from dragoman.model.states import TaskState
from tests.dialects.goldens import AT, LATER, task_of

WORKING: dict[str, Any] = {
    "kind": "task",
    "id": "T",
    "contextId": "C",
    "status": {"state": "working"},
    "artifacts": [{"artifactId": "A", "parts": [{"kind": "text", "text": "one "}]}],
}


def _asked(slug: str) -> Heard:
    task = task_of({"remote": {"task_id": "T", "context_id": "C"}})
    endpoint = Endpoint(dialect=slug, binding=Binding.JSONRPC, url="http://agent.test/")
    outgoing = Outgoing(verb=Verb.GET, task=task, asked=task.asked, endpoint=endpoint, at=AT)
    body = json.dumps({"jsonrpc": "2.0", "id": "1", "result": WORKING}).encode()
    return DIALECTS[slug].hear(outgoing, HttpReply(status=200, headers={}, body=body), LATER)


@pytest.mark.parametrize("slug", ["a2a-1.0", "a2a-0.3", "dotted"])
def test_what_a_task_has_made_so_far_is_seen_by_who_asks_for_it(slug: str) -> None:
    heard = _asked(slug)
    made, moved = heard.events
    assert isinstance(made, ArtifactChunk) and isinstance(moved, StatusChanged)
    assert (made.artifact.id, made.artifact.parts) == ("A", (Text(text="one "),))
    assert (moved.state, heard.settled, heard.remote) == (
        TaskState.WORKING,
        False,
        Remote(task_id="T", context_id="C"),
    )
