"""A platform agent in a process of its own that answers at once, at every path."""

import asyncio

from tests.support.tiny_http import Connection, Request, listen


def answer(request: Request, connection: Connection) -> None:
    """The input again."""
    connection.say({"status": "completed", "result": request.body.get("input")})


if __name__ == "__main__":
    asyncio.run(listen(answer))
