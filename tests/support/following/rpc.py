"""What the followers of A2A and of dotted share: JSON-RPC at the agent's base, each frame one more answer."""

import contextlib
import itertools
from collections.abc import Callable, Generator, Mapping
from typing import Any
from urllib.parse import quote

from tests.support.following import Followed, Piece, followed
from tests.support.speaking import Caller, Seen
from tests.support.sse_client import SseItem, sse

numbers = itertools.count(1)


class RpcFollower:
    """Asks for streams, whose events `read` understands, and cancels; how to open and resume is each dialect's own."""

    def __init__(
        self,
        caller: Caller,
        read: Callable[[SseItem], Piece],
        hub_url: str,
        token: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._caller = caller
        self._read = read
        self._hub = hub_url
        self._headers = dict(headers or {}) | ({"Authorization": f"Bearer {token}"} if token else {})

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None

    @contextlib.contextmanager
    def asked(
        self, agent: str, method: str, params: Any, last_id: str = "", headers: Mapping[str, str] | None = None
    ) -> Generator[Followed]:
        """The stream that a method answers with, after the last id if there is one."""
        frame = {"jsonrpc": "2.0", "id": f"req-{next(numbers)}", "method": method, "params": params}
        sent = {**self._headers, **(headers or {})} | ({"Last-Event-ID": last_id} if last_id else {})

        def read(item: SseItem) -> Piece:
            assert item.data["id"] == frame["id"]
            return self._read(item)

        with sse(f"{self._hub}/agents/{quote(agent, safe='')}/", frame, headers=sent) as stream:
            yield followed(stream, read)


def words_of(part: dict[str, Any]) -> str:
    """The words of a part: a text, or an object that holds nothing else."""
    data = part.get("data")
    return part.get("text") or (data["text"] if data and set(data) == {"text"} else "")
