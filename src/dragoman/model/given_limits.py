"""Limits as people set them, of agents and keys: read with care, for a limit of none would be no limit but an end."""

from typing import Annotated

import msgspec

from dragoman.model.agent import RateLimits
from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject

Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class GivenLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often something may be done; what is not named is not limited."""

    requests_per_minute: Limit | None = None
    requests_per_hour: Limit | None = None
    concurrent_requests: Limit | None = None


def limits_of(given: JsonObject) -> RateLimits:
    """The limits that somebody gave. Raises BadParams."""
    try:
        read = msgspec.convert(given, GivenLimits)
    except msgspec.ValidationError as error:
        raise BadParams(f"rate_limits: {error}", errors=[{"path": "rate_limits", "message": str(error)}]) from None
    return RateLimits(
        requests_per_minute=read.requests_per_minute,
        requests_per_hour=read.requests_per_hour,
        concurrent_requests=read.concurrent_requests,
    )
