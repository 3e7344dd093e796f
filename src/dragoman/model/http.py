"""One HTTP request and one reply, as plain data: the only form in which dialects see the wire.

Header names are lower-case bytes. A request that arrives carries its path and query in `url`; one that leaves
carries an absolute URL. The server stamps `id`, `at`, `route`, `params` and `hub` (its public address);
on outgoing requests they stay empty.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, final

import msgspec

Headers = Mapping[bytes, bytes]

NO_HEADERS: Final[Headers] = {}
NO_PARAMS: Final[Mapping[str, str]] = {}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
JSON_TYPE: Final = b"application/json"


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request, arriving or leaving."""

    method: str
    url: str
    headers: Headers = NO_HEADERS
    body: bytes = b""
    id: str = ""
    at: datetime = EPOCH
    route: str = ""
    params: Mapping[str, str] = NO_PARAMS
    hub: str = ""


@final
class HttpReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One complete reply."""

    status: int
    headers: Headers = NO_HEADERS
    body: bytes = b""
