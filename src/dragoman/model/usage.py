"""What calls use up: read from an agent's own account, priced by its card, and summed without loss.

An account is a claim. What in it is no sane number is left out, and named, so that somebody can be told.
Money is summed in whole nano-dollars; a float stands only where one call tells or is told what it cost.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Final

import msgspec

from dragoman.model.agent import AgentCard
from dragoman.model.events import Usage
from dragoman.model.json import Json, JsonObject, is_object

MAX_COUNT: Final = 10**9  # tokens, milliseconds, requests of one call
MAX_COST_USD: Final = 10**4  # of one call
MAX_MODEL: Final = 128
NANO: Final = 10**9

_COUNTS: Final = ("tokens", "input_tokens", "output_tokens", "requests", "execution_ms")
_KNOWN: Final = frozenset({*_COUNTS, "cost_usd", "model", "estimated", "other", "refused"})


class Pricing(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's card says that its calls cost, in US dollars."""

    usd_per_call: float = 0.0
    usd_per_1k_input: float = 0.0
    usd_per_1k_output: float = 0.0


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """What some calls used up together; `estimated_nano` is the part of the cost that no agent told."""

    calls: int = 0
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nano: int = 0
    estimated_nano: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_nano=self.cost_nano + other.cost_nano,
            estimated_nano=self.estimated_nano + other.estimated_nano,
        )


NOTHING: Final = Sums()
ONE_CALL: Final = Sums(calls=1)
_NO_ACCOUNT: Final = Usage()


def read_usage(value: Json) -> Usage | None:
    """An agent's account of what it used; `refused` names the claims that make no sense."""
    if not is_object(value) or not value:
        return None
    refused: list[str] = []
    counts = {name: _count(value[name], name, refused) for name in _COUNTS if value.get(name) is not None}
    told: Json = value.get("other")  # as another hub says it
    other = {name: item for name, item in value.items() if name not in _KNOWN} | (told if is_object(told) else {})
    cost_usd = _cost(value.get("cost_usd"), refused)
    return Usage(
        **counts,
        cost_usd=cost_usd,
        estimated=cost_usd is not None and value.get("estimated") is True,
        model=_model(value.get("model"), refused),
        other=other or None,
        refused=tuple(refused),
    )


def told_usage(usage: Usage) -> JsonObject:
    """An account as it is told on."""
    shown: JsonObject = msgspec.to_builtins(usage)
    shown.pop("refused", None)
    return shown


def sane(usage: Usage) -> Usage | None:
    """An account without what it claimed in vain; None if that was all."""
    kept = msgspec.structs.replace(usage, refused=())
    return None if kept == _NO_ACCOUNT else kept


def pricing_of(card: AgentCard) -> Pricing | None:
    """What the calls of an agent cost by its card; None where it names no sane price."""
    named: Json = card.pricing or (card.metadata or {}).get("pricing")
    if not is_object(named):
        return None
    prices = {name: price for name in Pricing.__struct_fields__ if (price := _price(named.get(name))) is not None}
    return Pricing(**prices) if prices else None


def priced(usage: Usage | None, pricing: Pricing | None, *, completed: bool) -> Usage | None:
    """What a call used, with its cost estimated where its agent told none.

    A call that came to nothing costs only the tokens that its agent says it took.
    """
    if pricing is None or (usage is not None and usage.cost_usd is not None):
        return usage
    used = usage or Usage()
    inputs, outputs = used.input_tokens or 0, used.output_tokens or 0
    if not inputs and not outputs:
        inputs = used.tokens or 0
    if not completed and not inputs and not outputs:
        return usage
    cost = inputs / 1000 * pricing.usd_per_1k_input + outputs / 1000 * pricing.usd_per_1k_output
    cost += pricing.usd_per_call if completed else 0.0
    return msgspec.structs.replace(used, cost_usd=min(round(cost, 9), float(MAX_COST_USD)), estimated=True)


def sums_of(usage: Usage | None) -> Sums:
    """One call's share of the sums."""
    if usage is None:
        return ONE_CALL
    cost = nano(usage.cost_usd or 0.0)
    return Sums(
        calls=1,
        tokens=tokens_of(usage),
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cost_nano=cost,
        estimated_nano=cost if usage.estimated else 0,
    )


def tokens_of(usage: Usage) -> int:
    """All tokens of a call, whichever way its agent counts them."""
    return usage.tokens if usage.tokens is not None else (usage.input_tokens or 0) + (usage.output_tokens or 0)


def nano(usd: float) -> int:
    """Dollars as whole nano-dollars."""
    return round(usd * NANO)


def decimal_usd(nano_usd: int) -> str:
    """Nano-dollars as dollars in decimal digits, none of them lost."""
    whole, part = divmod(nano_usd, NANO)
    digits = f"{part:09d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def total_of(usages: Iterable[Usage | None]) -> JsonObject:
    """What several calls used together, as one account; `estimated` where a part of the cost is."""
    summed = NOTHING
    for usage in usages:
        summed += sums_of(usage)
    shown: JsonObject = {"calls": summed.calls, "tokens": summed.tokens}
    if summed.input_tokens or summed.output_tokens:
        shown |= {"input_tokens": summed.input_tokens, "output_tokens": summed.output_tokens}
    shown["cost_usd"] = summed.cost_nano / NANO
    if summed.estimated_nano:
        shown["estimated"] = True
    return shown


def _count(value: Json, name: str, refused: list[str]) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        refused.append(name)
        return None
    return int(value)


def _cost(value: Json, refused: list[str]) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COST_USD:
        refused.append("cost_usd")
        return None
    return float(value)


def _model(value: Json, refused: list[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= MAX_MODEL or not value.isprintable():
        refused.append("model")
        return None
    return value


def _price(value: Json) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and isfinite(value) and 0 <= value <= MAX_COST_USD else None
