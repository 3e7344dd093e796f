"""`agent.serve()` and `agent.app`: the agent listens itself, in every dialect, with its base at `/`.

The server is the hub with exactly one agent (`agent_server.py`), and needs `dragoman[hub]`.
"""

import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.sdk.errors import MissingExtra

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent

PORT: Final = 8001
# What dragoman[hub] brings and the server imports at its top.
PACKAGES: Final = ("uvicorn", "uvloop", "websockets", "jsonschema_rs", "joserfc", "cryptography")


def serve(
    agent: "Agent",
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    data: str | Path | None = None,
    register: str | None = None,
    auth: str | None = None,
) -> None:
    """Listen until SIGTERM or SIGINT, finish what runs within 30 s, and return. Port 0 takes a free one.

    Raises MissingExtra without the server, CannotServe where it cannot start: a wrong setting, or a port in use.
    """
    require_server("agent.serve()")
    # The server and its packages are an extra.
    from dragoman.sdk.serve.agent_server import settings_of, start

    start(agent, settings_of(agent, host=host, port=port, data=data, auth=auth), register=register)


def application(agent: "Agent") -> Callable[..., Awaitable[Any]]:
    """The agent as an ASGI application with a lifespan, for uvicorn or hypercorn.

    Callers need a token unless DRAGOMAN_AUTH is `none`. Cards name DRAGOMAN_PUBLIC_URL, else DRAGOMAN_PORT here.
    Raises MissingExtra without the server.
    """
    require_server("agent.app")
    from dragoman.sdk.serve.agent_app import asgi

    return asgi(agent)


def require_server(what: str) -> None:
    """Return if the server's packages are installed. Raises MissingExtra."""
    if not all(map(_is_installed, PACKAGES)):
        raise MissingExtra(f'{what} needs the server: pip install "dragoman[hub]"')


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False
