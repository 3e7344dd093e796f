"""What one client may take of the server: time, bytes, lines, connections.

Deliberately not here: the size of a body (each route has its own, `body.py`) and rates (the hub's business).
"""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on slow, greedy and hostile clients; the defaults are what a hub runs with."""

    header_s: float = 10.0  # from the connection, or the first byte of a later request, to the complete header
    body_s: float = 30.0  # from the header to the complete body
    idle_s: float = 60.0  # between two requests
    reader_s: float = 30.0  # for a reader that takes nothing
    linger_s: float = 1.0  # for a client that was refused to read why
    sweep_s: float = 1.0  # between two looks at all deadlines, and so their error
    header_lines: int = 100
    header_bytes: int = 32 * 1024
    url_bytes: int = 8 * 1024
    connections: int = 15_000
    connections_per_address: int = 512  # only on a public bind
