"""The published SDKs' own clients as followers of their calls: what they are shown, event by event, as it comes."""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any, Self

from tests.support.following import Followed, Piece, kinds
from tests.support.sdk_caller import SdkCaller, SdkClient
from tests.support.speaking import Content


class SdkFollowed(Followed):
    """An open stream, and at its end all that the client's program tells of it."""

    def __init__(self, told: Iterator[dict[str, Any]], words: str) -> None:
        super().__init__(self._read(told, words))
        self.answer: dict[str, Any] = {}

    def _read(self, told: Iterator[dict[str, Any]], words: str) -> Iterator[Piece]:
        for line in told:
            if "event" not in line:
                assert "raised" not in line, line
                self.answer = line
                return
            yield piece_v10(line["event"]) if words == "1.0" else kinds.piece("", line["event"])


class SdkFollower:
    """A published client that asks for streams; `caller` is the same client, for all that is no stream."""

    def __init__(self, client: SdkClient, hub_url: str, token: str = "") -> None:
        self.caller = SdkCaller(client, hub_url, token)
        self._words = client.words
        self._watch = "watch" if client.words == "1.0" else "subscribe"

    @contextlib.contextmanager
    def open(self, agent: str, text: str) -> Generator[SdkFollowed]:
        """Make a call and follow it from its beginning. To leave before its end is to end the client's process."""
        with contextlib.closing(
            self.caller.live(agent, "stream", message=self.caller.message(Content(text=text)))
        ) as told:
            yield SdkFollowed(told, self._words)

    @contextlib.contextmanager
    def watch(self, agent: str, task_id: str) -> Generator[SdkFollowed]:
        """Follow a task that was made before."""
        with contextlib.closing(self.caller.live(agent, self._watch, id=task_id)) as told:
            yield SdkFollowed(told, self._words)

    def refused(self, agent: str, task_id: str) -> dict[str, Any]:
        """What the client raises where a task cannot be followed."""
        said = self.caller.say(agent, self._watch, id=task_id)
        assert "raised" in said, said
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.caller.close()


def piece_v10(event: dict[str, Any]) -> Piece:
    """One StreamResponse of A2A 1.0, as the SDK shows it."""
    match event:
        case {"task": value}:
            words = "".join(_text(artifact) for artifact in value.get("artifacts", ()))
            return Piece("", text=words, state=_state(value), task_id=value["id"])
        case {"statusUpdate": value}:
            return Piece("", state=_state(value), message=_said(value), task_id=value["taskId"])
        case {"artifactUpdate": value}:
            return Piece("", text=_text(value["artifact"]))
        case _:
            raise AssertionError(f"1.0 has no such event: {event}")


def _text(value: dict[str, Any]) -> str:
    """The words of an artifact or a message, be they texts or the `text` of objects."""
    return "".join(part.get("text") or part.get("data", {}).get("text", "") for part in value["parts"])


def _state(value: dict[str, Any]) -> str:
    state: str = value["status"]["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


def _said(value: dict[str, Any]) -> str | None:
    message = value["status"].get("message")
    return _text(message) if message else None
