"""Follows a task of A2A 1.0: SendStreamingMessage, and SubscribeToTask with the last id."""

from contextlib import AbstractContextManager
from typing import Any

from tests.support.callers.a2a_v10 import A2AV10Caller
from tests.support.following import Followed, Piece
from tests.support.following.rpc import RpcFollower, numbers, words_of
from tests.support.sse_client import SseItem


class V10Follower(RpcFollower):
    """Speaks JSON-RPC at the agent's base."""

    slug = "a2a-1.0"

    def __init__(self, hub_url: str, token: str = "") -> None:
        super().__init__(A2AV10Caller(hub_url, token), _piece, hub_url, token, {"A2A-Version": "1.0"})

    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> AbstractContextManager[Followed]:
        """SendStreamingMessage."""
        message = {
            "messageId": f"message-{next(numbers)}",
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            "metadata": {"dragoman": {"timeout_ms": timeout_ms}},
        }
        return self.asked(agent, "SendStreamingMessage", {"message": message})

    def resume(self, agent: str, cut: Followed) -> AbstractContextManager[Followed]:
        """SubscribeToTask."""
        return self.asked(agent, "SubscribeToTask", {"id": cut.task_id}, cut.last_id)


def _piece(item: SseItem) -> Piece:
    assert item.name == ""
    ((member, value),) = item.data["result"].items()
    match member:
        case "task":
            made = "".join(part.get("text", "") for each in value.get("artifacts", ()) for part in each["parts"])
            return Piece(item.id, text=made, state=_state(value["status"]), task_id=value["id"])
        case "statusUpdate":
            said = value["status"].get("message")
            words = "".join(part.get("text", "") for part in said["parts"]) if said else None
            return Piece(item.id, state=_state(value["status"]), message=words, task_id=value["taskId"])
        case "artifactUpdate":
            return Piece(item.id, text="".join(words_of(part) for part in value["artifact"]["parts"]))
        case _:
            raise AssertionError(f"1.0 has no event {member!r}")


def _state(status: dict[str, Any]) -> str:
    state: str = status["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


FOLLOWER = V10Follower
