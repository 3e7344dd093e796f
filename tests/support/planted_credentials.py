"""Bugs in where the hub sends the credentials of agents, and in what it seals."""

from dragoman.delivery import credentials
from tests.support.planting import put_in_place


def credential_follows_its_agent(_passing: int) -> None:
    """A credential is sent wherever the agent is now."""

    def moved(*_: object) -> str:
        return ""

    put_in_place(credentials, "_moved", moved)
