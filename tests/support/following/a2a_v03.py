"""Follows a task of A2A 0.3: message/stream, and tasks/resubscribe with the last id."""

from contextlib import AbstractContextManager

from tests.support.callers.a2a_v03 import A2aV03Caller
from tests.support.following import Followed
from tests.support.following.kinds import event_piece, message
from tests.support.following.rpc import RpcFollower


class V03Follower(RpcFollower):
    """Speaks JSON-RPC at the agent's base."""

    slug = "a2a-0.3"

    def __init__(self, hub_url: str, token: str = "") -> None:
        super().__init__(A2aV03Caller(hub_url, token), event_piece, hub_url, token)

    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> AbstractContextManager[Followed]:
        """message/stream."""
        return self.asked(agent, "message/stream", {"message": message(text, timeout_ms)})

    def resume(self, agent: str, cut: Followed) -> AbstractContextManager[Followed]:
        """tasks/resubscribe."""
        return self.asked(agent, "tasks/resubscribe", {"id": cut.task_id}, cut.last_id)


FOLLOWER = V03Follower
