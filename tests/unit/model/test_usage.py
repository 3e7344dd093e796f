"""What calls use up: an agent's claims, the prices of its card, and sums that lose nothing."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.agent import AgentCard
from dragoman.model.events import Usage
from dragoman.model.usage import (
    MAX_COST_USD,
    NOTHING,
    Pricing,
    decimal_usd,
    nano,
    priced,
    pricing_of,
    read_usage,
    sane,
    sums_of,
    told_usage,
    total_of,
)

PRICES = Pricing(usd_per_call=0.01, usd_per_1k_input=0.5, usd_per_1k_output=2.0)


@pytest.mark.parametrize(
    ("claimed", "refused"),
    [
        ({"tokens": -1}, ("tokens",)),
        ({"tokens": 10**9 + 1}, ("tokens",)),
        ({"input_tokens": True}, ("input_tokens",)),
        ({"output_tokens": "many"}, ("output_tokens",)),
        ({"cost_usd": -0.5}, ("cost_usd",)),
        ({"cost_usd": float("inf")}, ("cost_usd",)),
        ({"cost_usd": float("nan")}, ("cost_usd",)),
        ({"cost_usd": 10_000.5}, ("cost_usd",)),
        ({"model": "m" * 129}, ("model",)),
        ({"model": "a\nb"}, ("model",)),
        ({"requests": -2, "tokens": 3, "cost_usd": "free"}, ("requests", "cost_usd")),
    ],
)
def test_claims_that_make_no_sense_are_left_out_and_named(claimed: dict[str, Any], refused: tuple[str, ...]) -> None:
    usage = read_usage(claimed)
    assert usage is not None
    assert usage.refused == refused
    kept = sane(usage)
    assert kept == (Usage(tokens=3) if "tokens" in claimed and claimed["tokens"] == 3 else None)
    assert "refused" not in told_usage(usage)


def test_a_whole_account_is_read_with_whatever_else_the_agent_tells() -> None:
    told = {"tokens": 7.0, "input_tokens": 3, "cost_usd": 1, "model": "m", "requests": 2, "images": 4}
    usage = read_usage(told)
    assert usage == Usage(tokens=7, input_tokens=3, cost_usd=1.0, model="m", requests=2, other={"images": 4})
    assert usage is not None
    assert read_usage(told_usage(usage)) == usage
    nothings: list[Any] = [None, {}, [], "7", 7]
    assert [read_usage(nothing) for nothing in nothings] == [None] * 5


def test_what_is_not_told_is_estimated_by_the_card_and_marked() -> None:
    used = Usage(input_tokens=1000, output_tokens=500)
    assert priced(used, PRICES, completed=True) == msgspec.structs.replace(used, cost_usd=1.51, estimated=True)
    assert priced(None, PRICES, completed=True) == Usage(cost_usd=0.01, estimated=True)
    told = Usage(cost_usd=0.0)
    assert priced(told, PRICES, completed=True) is told
    assert priced(None, None, completed=True) is None
    assert priced(None, PRICES, completed=False) is None
    assert priced(Usage(tokens=2000), PRICES, completed=False) == Usage(tokens=2000, cost_usd=1.0, estimated=True)


def test_prices_stand_on_a_card_or_in_its_metadata_and_are_sane() -> None:
    def card(**more: Any) -> AgentCard:
        return AgentCard(id="a", name="a", **more)

    assert pricing_of(card(pricing={"usd_per_call": 1, "usd_per_1k_input": "x"})) == Pricing(usd_per_call=1.0)
    assert pricing_of(card(metadata={"pricing": {"usd_per_1k_output": 0.5}})) == Pricing(usd_per_1k_output=0.5)
    for none in ({}, {"usd_per_call": -1}, {"usd_per_call": True}, {"usd_per_call": MAX_COST_USD + 1}):
        assert pricing_of(card(pricing=none)) is None


@given(st.lists(st.integers(0, 10**13).map(lambda n: n / 10**9), max_size=50))
def test_money_is_summed_without_loss(costs: list[float]) -> None:
    summed = NOTHING
    for cost in costs:
        summed += sums_of(Usage(cost_usd=cost))
    exact = sum((Decimal(nano(cost)) for cost in costs), Decimal(0)) / 10**9
    assert Decimal(decimal_usd(summed.cost_nano)) == exact
    assert summed.calls == len(costs)


def test_a_total_says_where_a_part_is_an_estimate() -> None:
    assert total_of([None, Usage(tokens=3, cost_usd=0.1), Usage(input_tokens=2, output_tokens=5, cost_usd=0.2)]) == {
        "calls": 3, "tokens": 10, "input_tokens": 2, "output_tokens": 5, "cost_usd": 0.3,
    }  # fmt: skip
    assert total_of([Usage(cost_usd=1.0, estimated=True)])["estimated"] is True
