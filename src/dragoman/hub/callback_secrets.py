"""What a caller gave the hub to prove itself with at a callback: sealed before the task is written, opened to be sent.

Headers, tokens and credentials are in one sealed value, bound to their task. What owners are shown stays in clear: the
address, and the names of the schemes. A callback without secrets is left as it is, and so is one that an earlier
version wrote in clear.
"""

from typing import Final, final

import msgspec

from dragoman.model.callbacks import Callback
from dragoman.model.json import JsonObject
from dragoman.model.task import Task
from dragoman.security.sealed import Sealer

_SHOWN: Final = ("scheme", "schemes")


class _Hidden(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    headers: dict[str, str] | None = None
    token: str | None = None
    auth: JsonObject | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Hidden).decode


@final
class CallbackSecrets:
    """Seals and opens the secrets of callbacks."""

    __slots__ = ("_sealer",)

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def hidden(self, callback: Callback, task: Task) -> Callback:
        """The callback as it is stored with that task."""
        bare = callback.headers is None and callback.token is None and callback.auth is None
        if bare or callback.sealed is not None:
            return callback
        plain = _encode(_Hidden(headers=callback.headers, token=callback.token, auth=callback.auth))
        shown = {name: callback.auth[name] for name in _SHOWN if name in callback.auth} if callback.auth else {}
        return msgspec.structs.replace(
            callback,
            headers=None,
            token=None,
            auth=shown or None,
            sealed=self._sealer.seal(plain, table="task", column="callback", row=task.id, tenant=task.tenant),
        )

    def revealed(self, callback: Callback, task: Task) -> Callback:
        """The callback as its caller gave it. Raises CannotOpen."""
        if callback.sealed is None:
            return callback
        opened = self._sealer.open(callback.sealed, table="task", column="callback", row=task.id, tenant=task.tenant)
        hidden = _decode(opened)
        return msgspec.structs.replace(
            callback, headers=hidden.headers, token=hidden.token, auth=hidden.auth, sealed=None
        )
