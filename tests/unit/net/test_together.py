"""Requests of one turn of the loop leave at its end in their order, one alone at once; none to who has closed."""

import asyncio

from dragoman.net.together import Together
from tests.unit.net.servers import Run, always, client_of, get, serving, soon


class Recorder(asyncio.Transport):
    """A transport that notes what is written to any of its kind."""

    def __init__(self, name: str, written: list[tuple[str, bytes]]) -> None:
        super().__init__()
        self._name = name
        self._written = written
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written.append((self._name, bytes(data)))


def test_what_is_asked_in_one_turn_leaves_when_it_is_over(run: Run) -> None:
    async def scenario() -> None:
        written: list[tuple[str, bytes]] = []
        together, one, two = Together(), Recorder("one", written), Recorder("two", written)
        together.write(one, b"first")
        together.write(two, b"second")
        assert written == []
        await asyncio.sleep(0)
        assert written == [("one", b"first"), ("two", b"second")]
        together.write(one, b"third")
        assert written[2:] == []
        await asyncio.sleep(0)
        assert written[2:] == [("one", b"third")]

    run(scenario())


def test_after_a_turn_with_one_request_the_first_of_the_next_does_not_wait(run: Run) -> None:
    async def scenario() -> None:
        written: list[tuple[str, bytes]] = []
        together, one, two = Together(), Recorder("one", written), Recorder("two", written)
        for turn in range(3):
            together.write(one, b"alone")
            assert len(written) == turn + (turn > 0)
            await asyncio.sleep(0)
            assert written == [("one", b"alone")] * (turn + 1)
        together.write(one, b"first")
        together.write(two, b"second")
        assert written[3:] == [("one", b"first")]
        await asyncio.sleep(0)
        assert written[4:] == [("two", b"second")]
        # That turn had two, whoever left first: now the first waits for the others again.
        together.write(two, b"third")
        assert written[5:] == []
        await asyncio.sleep(0)
        assert written[5:] == [("two", b"third")]

    run(scenario())


def test_nothing_is_written_to_a_connection_that_was_closed_in_between(run: Run) -> None:
    async def scenario() -> None:
        written: list[tuple[str, bytes]] = []
        together, one, two = Together(), Recorder("one", written), Recorder("two", written)
        together.write(one, b"first")
        together.write(two, b"second")
        one.closed = True
        await asyncio.sleep(0)
        assert written == [("two", b"second")]

    run(scenario())


def test_many_at_once_are_each_answered(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always()) as server, client_of() as client:
            for _ in range(3):
                replies = await asyncio.gather(*(client.send(get(server.url), deadline=soon()) for _ in range(20)))
                assert [reply.body for reply in replies] == [b"ok"] * 20

    run(scenario())
