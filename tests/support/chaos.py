"""A network that misbehaves: a proxy between two parties, with a switch for each way in which networks fail.

    with chaos(port) as wire:        # a proxy to 127.0.0.1:port
        … talk to wire.port …
        wire.to_server.freeze()      # what follows is not taken: the sender's buffers fill up
        wire.to_client.delay_s = 0.1

Each direction has its own switches; they count for open and for new connections. `cut`, `refuse` and `accept` are the
proxy's own. Runs in a thread of the test's process, on a loop of its own.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Generator
from typing import Final

CHUNK: Final = 65_536
RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER, no time: closing means RST
START_S: Final = 5.0
STEP_S: Final = 0.01


class Direction:
    """What is done to the bytes that go one way."""

    def __init__(self, chance: random.Random) -> None:
        self.delay_s = 0.0  # before each piece
        self.jitter_s = 0.0  # at most so much more
        self.bytes_per_s: float | None = None
        self.splits = False  # into writes of 1 to 7 bytes
        self.discards = False  # taken, and gone
        self.drops_after: int | None = None  # so many bytes the connection ends
        self.carried = 0
        self.frozen = False
        self._chance = chance

    def freeze(self) -> None:
        """Take nothing more."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on."""
        self.frozen = False

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Carry bytes until an end is reached."""
        carried = 0
        while True:
            data = await source.read(CHUNK)
            while self.frozen:  # noqa: ASYNC110 - thawed from the test's thread
                await asyncio.sleep(STEP_S)
            if not data:
                with contextlib.suppress(OSError):
                    sink.write_eof()
                return
            await asyncio.sleep(self.delay_s + self._chance.uniform(0, self.jitter_s))
            if self.bytes_per_s:
                await asyncio.sleep(len(data) / self.bytes_per_s)
            if self.discards:
                continue
            most = None if self.drops_after is None else max(0, self.drops_after - carried)
            for piece in self._pieces(data[:most]):
                sink.write(piece)
                await sink.drain()
            carried += len(data[:most])
            self.carried += len(data[:most])
            if most is not None and len(data) >= most:
                raise ConnectionResetError

    def _pieces(self, data: bytes) -> list[bytes]:
        if not self.splits:
            return [data]
        pieces: list[bytes] = []
        while data:
            size = self._chance.randint(1, 7)
            pieces.append(data[:size])
            data = data[size:]
        return pieces


class ChaosProxy:
    """A proxy on a free port; made by `chaos`."""

    def __init__(self, target: int, seed: int) -> None:
        chance = random.Random(seed)
        self.to_server = Direction(chance)
        self.to_client = Direction(chance)
        self.port = 0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def connections(self) -> int:
        """How many are open, on both sides."""
        return len(self._writers) // 2

    def cut(self) -> None:
        """Break every open connection off, with a reset on both sides."""
        self._ask(self._cut)

    def refuse(self) -> None:
        """Take no new connection: nobody listens."""
        self._ask(self._stop_listening)

    def accept(self) -> None:
        """Take connections again, on the same port."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(START_S)

    def run(self, ready: threading.Event) -> None:
        """The proxy's thread."""
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        ready.set()
        self._loop.run_forever()
        self._stop_listening()
        self._cut()
        for task in self._open:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._open, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            server, on = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            back.transport.abort()
            return
        self._writers |= {back, on}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self.to_server.pump(client, on))
                both.create_task(self.to_client.pump(server, back))
        except* OSError:
            _reset(on, back)
        finally:
            self._writers -= {back, on}
            for writer in (on, back):
                writer.close()

    def _cut(self) -> None:
        _reset(*self._writers)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _ask(self, action: Callable[[], None]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (action(), done.set()))
        assert done.wait(START_S), "the proxy does not answer"


@contextlib.contextmanager
def chaos(port: int, seed: int = 0) -> Generator[ChaosProxy]:
    """A proxy to a port of this machine, within the block."""
    proxy, ready = ChaosProxy(port, seed), threading.Event()
    thread = threading.Thread(target=proxy.run, args=(ready,), daemon=True)
    thread.start()
    assert ready.wait(START_S), "the proxy did not start"
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join(START_S)
        assert not thread.is_alive()


def _reset(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        made: socket.socket | None = writer.get_extra_info("socket")
        if made is not None:
            with contextlib.suppress(OSError):
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()
