"""What a key may spend; nothing is limited that is not named."""

import msgspec


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The most that the calls of a key may use up, by their agents' own account."""

    usd_per_day: float | None = None
    tokens_per_day: int | None = None
    usd_per_conversation: float | None = None
    calls_per_conversation: int | None = None
