"""The error codes of A2A 0.3; the last two are of 1.0 and fall in the range that 0.3 leaves to servers."""

from typing import Final

from dragoman.dialects.dialect import ErrorTable
from dragoman.dialects.jsonrpc import RPC_ERRORS
from dragoman.model.errors import (
    BadAgentReply,
    ContentRefused,
    ExtensionRequired,
    NoExtendedCard,
    VersionNotSupported,
)

ERRORS: Final[ErrorTable] = {
    **RPC_ERRORS,
    ContentRefused: (-32005, 200),
    BadAgentReply: (-32006, 200),
    NoExtendedCard: (-32007, 200),
    ExtensionRequired: (-32008, 200),
    VersionNotSupported: (-32009, 200),
}
