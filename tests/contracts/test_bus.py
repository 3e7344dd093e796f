"""The bus: whoever listens is told, or told that something was missed."""

import asyncio

from dragoman.ports.bus import Bus, Lost, Said
from tests.support.run import run


def test_a_listener_hears_lost_first_then_what_is_said_in_order(bus: Bus) -> None:
    async def scenario() -> None:
        bus.publish("ev.1", b"before")
        async with bus.subscribe("ev.1") as heard:
            assert await anext(heard) is Lost.LOST
            for number in range(3):
                bus.publish("ev.1", b"%d" % number)
                bus.publish("ev.2", b"not for us")
            assert [await anext(heard) for _ in range(3)] == [Said(topic="ev.1", data=b"%d" % n) for n in range(3)]

    run(scenario())


def test_a_prefix_hears_every_topic_below_it(bus: Bus) -> None:
    async def scenario() -> None:
        async with bus.subscribe("ev.*") as heard, bus.subscribe("ev.7") as one:
            assert await anext(heard) is Lost.LOST
            assert await anext(one) is Lost.LOST
            bus.publish("reg.changed", b"")
            bus.publish("ev.1", b"a")
            bus.publish("ev.7", b"b")
            assert await anext(heard) == Said(topic="ev.1", data=b"a")
            assert await anext(heard) == Said(topic="ev.7", data=b"b")
            assert await anext(one) == Said(topic="ev.7", data=b"b")

    run(scenario())


def test_a_listener_that_falls_behind_is_told_that_it_lost_something(bus: Bus) -> None:
    async def scenario() -> None:
        async with bus.subscribe("ev.1") as heard:
            assert await anext(heard) is Lost.LOST
            for number in range(100_000):
                bus.publish("ev.1", b"%d" % number)
            bus.publish("ev.1", b"last")
            items: list[Said | Lost] = []
            while not items or items[-1] != Said(topic="ev.1", data=b"last"):
                items.append(await anext(heard))
            assert Lost.LOST in items
            assert len(items) < 2_000

    run(scenario())


def test_a_listener_that_waits_is_woken(bus: Bus) -> None:
    async def scenario() -> None:
        async with bus.subscribe("ev.1") as heard, asyncio.TaskGroup() as group:
            assert await anext(heard) is Lost.LOST
            asyncio.get_running_loop().call_soon(bus.publish, "ev.1", b"now")
            waiting = group.create_task(asyncio.wait_for(anext(heard), 5))
            assert await waiting == Said(topic="ev.1", data=b"now")

    run(scenario())


def test_nobody_is_wanted_once_the_last_listener_has_gone(bus: Bus) -> None:
    async def scenario() -> None:
        assert not bus.wants("ev.1")
        async with bus.subscribe("ev.1"), bus.subscribe("job.*"):
            assert bus.wants("ev.1")
            assert bus.wants("job.call")
            assert not bus.wants("ev.2")
        assert not bus.wants("ev.1")
        assert not bus.wants("job.call")

    run(scenario())


def test_closing_ends_every_subscription_after_what_was_said(bus: Bus) -> None:
    async def scenario() -> None:
        async with bus.subscribe("ev.1") as heard:
            bus.publish("ev.1", b"last words")
            await bus.close()
            assert [item async for item in heard] == [Lost.LOST, Said(topic="ev.1", data=b"last words")]

    run(scenario())


def test_one_that_is_called_may_listen_to_a_prefix_and_leave_while_it_is_called(bus: Bus) -> None:
    async def scenario() -> None:
        heard: list[Said | Lost] = []

        def hear(said: Said | Lost) -> None:
            heard.append(said)
            if len(heard) == 3:
                leave()

        leave = bus.listen("ev.*", hear)
        assert bus.wants("ev.9")
        for topic in ("ev.1", "reg.changed", "ev.2", "ev.3"):
            bus.publish(topic, b"")
        assert heard == [Lost.LOST, Said(topic="ev.1", data=b""), Said(topic="ev.2", data=b"")]
        assert not bus.wants("ev.9")

    run(scenario())
