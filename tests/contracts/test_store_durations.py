"""How long calls took."""

from dragoman.ports.store import Took
from tests.contracts.conftest import Running
from tests.support.run import run


def test_a_history_is_kept_and_replaced_as_a_whole(store: Running) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.put_took(
                [
                    Took(tenant="acme", agent_id="weather", skill="forecast", last_ms=(3, 1, 2**32 - 1)),
                    Took(tenant="acme", agent_id="weather", skill="", last_ms=(7,)),
                    Took(tenant="other", agent_id="weather", skill="forecast", last_ms=(9,)),
                ]
            )
            await running.put_took([Took(tenant="acme", agent_id="weather", skill="", last_ms=(7, 8))])
        async with store() as running:
            assert tuple(await running.took("acme", "weather", "forecast")) == (3, 1, 2**32 - 1)
            assert tuple(await running.took("acme", "weather", "")) == (7, 8)
            assert tuple(await running.took("other", "weather", "forecast")) == (9,)
            assert tuple(await running.took("acme", "weather", "other")) == ()

    run(scenario())
