"""Every wait ends: in line, dialling, writing, before the first byte and between bytes."""

import asyncio
import socket

from dragoman.net import ClientLimits, DialLimits, Reach
from tests.unit.net.servers import (
    Line,
    ManualClock,
    Run,
    always,
    client_of,
    closed_port,
    failure,
    get,
    hearing,
    post,
    serving,
    soon,
    until,
)


def test_no_first_byte_before_the_deadline_is_a_timeout_after_sending(run: Run) -> None:
    async def scenario() -> None:
        clock, heard = ManualClock(), asyncio.Event()
        async with serving(hearing(heard)) as server, client_of(clock=clock) as client, asyncio.TaskGroup() as group:
            sending = group.create_task(failure(client.send(get(server.url), deadline=clock.monotonic() + 5)))
            await heard.wait()
            clock.advance(4.9)
            assert server.open == 1
            clock.advance(0.2)
            error = await sending
            assert (error.kind, error.sent) == (Reach.TIMEOUT, True)
            await until(lambda: server.open == 0)
            assert client.figures()[server.url[:-1]].failed == {Reach.TIMEOUT: 1}

    run(scenario())


def test_an_answer_that_trickles_has_no_longer_than_the_deadline(run: Run) -> None:
    async def scenario() -> None:
        clock = ManualClock()

        async def trickle(line: Line) -> None:
            await line.request()
            line.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
            started.set()
            await line.closed()

        started = asyncio.Event()
        async with serving(trickle) as server, client_of(clock=clock) as client, asyncio.TaskGroup() as group:
            sending = group.create_task(failure(client.send(get(server.url), deadline=clock.monotonic() + 5)))
            await started.wait()
            clock.advance(5.1)
            assert (await sending).kind is Reach.TIMEOUT

    run(scenario())


def test_the_deadline_holds_in_line(run: Run) -> None:
    async def scenario() -> None:
        clock, heard = ManualClock(), asyncio.Event()
        limits = ClientLimits(per_origin=1)
        async with serving(hearing(heard)) as server, client_of(clock=clock, limits=limits) as client:
            async with asyncio.TaskGroup() as group:
                first = group.create_task(failure(client.send(get(server.url), deadline=clock.monotonic() + 50)))
                await heard.wait()
                second = group.create_task(failure(client.send(get(server.url), deadline=clock.monotonic() + 5)))
                await until(lambda: client.figures()[server.url[:-1]].waiting == 1)
                clock.advance(5.1)
                error = await second
                assert (error.kind, error.sent) == (Reach.TIMEOUT, False)
                assert not first.done()
                clock.advance(50)
            assert server.accepted == 1

    run(scenario())


def test_a_deadline_that_has_passed_sends_nothing(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always()) as server, client_of() as client:
            await client.send(get(server.url), deadline=soon())
            error = await failure(client.send(get(server.url), deadline=soon(-1.0)))
            assert (error.kind, error.sent) == (Reach.TIMEOUT, False)
            assert client.figures()[server.url[:-1]].reused == 0

    run(scenario())


def test_the_deadline_holds_while_dialling(run: Run) -> None:
    async def scenario() -> None:
        # A listener with a full backlog answers no further connection.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as filler:
            filler.connect(full.getsockname())
            url = f"http://127.0.0.1:{full.getsockname()[1]}/"
            fillers = [socket.socket() for _ in range(3)]
            for extra in fillers:
                extra.setblocking(False)
                extra.connect_ex(full.getsockname())
            async with client_of() as client:
                error = await failure(client.send(get(url), deadline=soon(0.2)))
                assert (error.kind, error.sent) == (Reach.TIMEOUT, False)
            limits = ClientLimits(dial=DialLimits(connect_s=0.1))
            async with client_of(limits=limits) as client:
                error = await failure(client.send(get(url), deadline=soon()))
                assert (error.kind, error.sent) == (Reach.TIMEOUT, False)
                assert client.figures()[url[:-1]].open == 0
            for extra in fillers:
                extra.close()

    run(scenario())


def test_a_resolver_that_hangs_is_given_up(run: Run) -> None:
    async def hanging(_: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def scenario() -> None:
        limits = ClientLimits(dial=DialLimits(resolve_s=0.05))
        async with client_of(resolve=hanging, limits=limits) as client:
            error = await failure(client.send(get("http://name.example:8000/"), deadline=soon()))
            assert (error.kind, error.sent) == (Reach.TIMEOUT, False)
            await client.check("https://name.example/")

    run(scenario())


def test_a_slow_address_gives_way_to_the_next(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always()) as server:
            # Same port on another loopback address, with a full backlog: it never completes.
            with socket.create_server(("127.0.0.2", server.port), backlog=0) as full:
                fillers = [socket.socket() for _ in range(4)]
                for extra in fillers:
                    extra.setblocking(False)
                    extra.connect_ex(full.getsockname())

                async def resolve(_: str) -> list[str]:
                    return ["127.0.0.2", "127.0.0.1"]

                limits = ClientLimits(dial=DialLimits(next_address_s=0.05))
                async with client_of(resolve=resolve, limits=limits) as client:
                    reply = await client.send(get(f"http://name.example:{server.port}/"), deadline=soon(3.0))
                    assert reply.body == b"ok"
                for extra in fillers:
                    extra.close()

    run(scenario())


def test_a_refused_connection_is_not_reachable(run: Run) -> None:
    async def scenario() -> None:
        async with client_of() as client:
            error = await failure(client.send(get(f"http://127.0.0.1:{closed_port()}/"), deadline=soon()))
            assert (error.kind, error.sent, str(error)) == (Reach.REFUSED, False, "not reachable")

    run(scenario())


def test_a_peer_that_takes_nothing_is_given_up_after_thirty_seconds(run: Run) -> None:
    async def scenario() -> None:
        clock = ManualClock()

        async def deaf(line: Line) -> None:
            await line.reader.readexactly(1)
            started.set()
            await stop.wait()

        started, stop = asyncio.Event(), asyncio.Event()
        async with serving(deaf) as server, client_of(clock=clock) as client, asyncio.TaskGroup() as group:
            request = post(server.url, b"x" * 50_000_000)
            sending = group.create_task(failure(client.send(request, deadline=clock.monotonic() + 600)))
            await started.wait()
            clock.advance(29)
            assert not sending.done()
            clock.advance(2)
            error = await sending
            assert (error.kind, error.sent) == (Reach.TIMEOUT, True)
            stop.set()

    run(scenario())


def test_an_idle_client_has_at_most_one_timer_and_a_closed_one_none(run: Run) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        async with serving(always()) as server, client_of(clock=clock) as client:
            await asyncio.gather(*(client.send(get(server.url), deadline=clock.monotonic() + 5) for _ in range(9)))
            assert len(clock.waiting()) == 1
            clock.advance(0.1)
            assert [alarm.when - clock.monotonic() > 50 for alarm in clock.waiting()] == [True]
        assert clock.waiting() == []

    run(scenario())
