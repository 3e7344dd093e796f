"""A card of whatever dialect, told apart by its keys: never by where it came from."""

from collections.abc import Mapping

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.model.agent import AgentCard
from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject


def read_any_card(card: JsonObject, named: str | None = None, dialects: Mapping[str, Dialect] = DIALECTS) -> AgentCard:
    """A card in whatever dialect's shape, told by its keys or named.

    Raises BadParams where no dialect knows it.
    """
    if named is not None:
        if named not in dialects:
            raise BadParams(
                f"dialect: unknown, {named!r}; there are: {', '.join(dialects)}",
                errors=[{"path": "dialect", "message": "unknown"}],
            )
        return dialects[named].read_card(card)
    for dialect in dialects.values():
        if dialect.owns_card(card):
            return dialect.read_card(card)
    raise BadParams(
        "agent_card: no known dialect has this shape; a platform card has an endpoint, an A2A 1.0 card "
        "supportedInterfaces",
        errors=[{"path": "agent_card.endpoint", "message": "required"}],
    )
