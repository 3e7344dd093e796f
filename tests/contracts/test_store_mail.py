"""Mailboxes: numbered as things came, looked at without loss, and emptied one by one or up to a number."""

from dragoman.ports.bus import Bus, mail_topic
from tests.contracts.conftest import Running
from tests.support.run import run


def test_a_box_is_read_one_by_one_and_only_what_arrived_goes(store: Running) -> None:
    async def scenario() -> None:
        async with store() as running:
            for body in (b"one", b"two", b"three"):
                await running.put_mail("t", "box", body)
            await running.put_mail("t", "other", b"not mine")
            await running.put_mail("u", "box", b"not mine either")
            numbers: list[int] = []
            while (found := await running.next_mail("t", "box", numbers[-1] if numbers else 0)) is not None:
                numbers.append(found[0])
            assert numbers == sorted(numbers)
            assert len(numbers) == 3
            await running.drop_mail("t", "box", numbers[1:2])
            await running.drop_mail("t", "other", numbers)  # numbers of another box
        async with store() as running:
            assert await running.read_mail("t", "box", 0, 10) == [(numbers[0], b"one"), (numbers[2], b"three")]
            assert await running.next_mail("t", "box", numbers[0]) == (numbers[2], b"three")
            assert await running.read_mail("t", "box", numbers[0], 10) == [(numbers[2], b"three")]
            assert await running.next_mail("t", "box", numbers[2]) is None
            await running.put_mail("t", "box", b"four")
            found = await running.next_mail("t", "box", numbers[2])
            assert found is not None
            assert found[0] > numbers[2]
            assert [body for _, body in await running.read_mail("t", "other", 0, 10)] == [b"not mine"]

    run(scenario())


def test_whoever_listens_is_told_of_new_mail(store: Running, bus: Bus) -> None:
    async def scenario() -> None:
        async with store() as running, bus.subscribe(mail_topic("t", "box")) as said:
            await anext(said)  # LOST, at the start
            await running.put_mail("t", "box", b"one")
            await anext(said)

    run(scenario())
