"""Connections are kept, reused, given up and waited for."""

import asyncio

import pytest

from dragoman.model.http import HttpReply
from dragoman.net import AddressRule, Client, ClientLimits, OriginFigures, Reach
from tests.unit.net.servers import (
    CLOSING,
    OK,
    Line,
    ManualClock,
    Run,
    Server,
    always,
    client_of,
    failure,
    get,
    hearing,
    once,
    post,
    serving,
    sockets_open,
    soon,
    until,
)

NOTHING = OriginFigures(open=0, idle=0, waiting=0, opened=0, reused=0, stale=0, failed={})


def figures(client: Client, server: Server) -> OriginFigures:
    return client.figures().get(server.url[:-1], NOTHING)


def test_one_connection_serves_many_requests_and_asks_for_the_name_once(run: Run) -> None:
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    async def scenario() -> None:
        async with serving(always()) as server, client_of(resolve=resolve) as client:
            url = f"http://name.example:{server.port}/"
            for _ in range(20):
                assert (await client.send(post(url), deadline=soon())).body == b"ok"
            assert server.accepted == 1
            assert asked == ["name.example"]
            shown = client.figures()[url[:-1]]
            assert (shown.open, shown.idle, shown.opened, shown.reused) == (1, 1, 1, 19)

    run(scenario())


def test_many_at_once_ask_for_a_name_once(run: Run) -> None:
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        await asyncio.sleep(0)
        return ["127.0.0.1"]

    async def scenario() -> None:
        async with serving(always()) as server, client_of(resolve=resolve) as client:
            url = f"http://name.example:{server.port}/"
            await asyncio.gather(*(client.send(get(url), deadline=soon()) for _ in range(10)))
            assert asked == ["name.example"]

    run(scenario())


def test_the_last_used_connection_is_reused_first(run: Run) -> None:
    async def scenario() -> None:
        served: list[int] = []

        async def script(line: Line) -> None:
            while await line.request():
                served.append(line.number)
                line.answer()

        async with serving(script) as server, client_of() as client:
            await asyncio.gather(*(client.send(get(server.url), deadline=soon()) for _ in range(3)))
            last = served[-1]
            served.clear()
            for _ in range(4):
                await client.send(get(server.url), deadline=soon())
                async with client.stream(get(server.url), deadline=soon()) as answer:
                    assert [part async for part in answer.chunks] == [b"ok"]
            assert served == [last] * 8

    run(scenario())


@pytest.mark.parametrize("answer", [CLOSING, b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"])
def test_a_closing_answer_ends_its_connection(run: Run, answer: bytes) -> None:
    async def scenario() -> None:
        async with serving(always(answer)) as server, client_of() as client:
            for _ in range(3):
                assert (await client.send(get(server.url), deadline=soon())).body == b"ok"
            assert server.accepted == 3
            assert figures(client, server).open == 0

    run(scenario())


def test_a_connection_closed_while_idle_is_never_picked(run: Run) -> None:
    async def scenario() -> None:
        async with serving(once(OK)) as server, client_of() as client:
            for number in range(1, 4):
                assert (await client.send(post(server.url), deadline=soon())).body == b"ok"
                await until(lambda: figures(client, server).open == 0)
                assert figures(client, server).stale == number
            assert server.accepted == 3

    run(scenario())


def test_a_connection_that_speaks_out_of_turn_is_dropped(run: Run) -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        async def script(line: Line) -> None:
            await line.request()
            line.answer()
            if line.number == 1:
                await go.wait()
                line.answer(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
            await line.closed()

        async with serving(script) as server, client_of() as client:
            await client.send(get(server.url), deadline=soon())
            go.set()
            await until(lambda: figures(client, server).open == 0)
            assert (await client.send(get(server.url), deadline=soon())).status == 200
            assert server.accepted == 2

    run(scenario())


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_reused_connection_that_dies_is_replaced_only_for_what_may_be_repeated(run: Run, repeatable: bool) -> None:
    async def scenario() -> None:
        async def script(line: Line) -> None:
            await line.request()
            line.answer()
            if line.number == 1:
                await line.request()
                return
            while await line.request():
                line.answer()

        async with serving(script) as server, client_of() as client:
            await client.send(post(server.url), deadline=soon())
            again = client.send(post(server.url), deadline=soon(), repeatable=repeatable)
            if repeatable:
                assert (await again).body == b"ok"
                assert server.accepted == 2
            else:
                error = await failure(again)
                assert (error.kind, error.sent) == (Reach.RESET, True)
                assert server.accepted == 1

    run(scenario())


def test_it_is_repeated_once_and_never_after_the_first_answer_byte(run: Run) -> None:
    async def scenario() -> None:
        for first_byte, accepted in ((b"", 2), (b"H", 1)):

            async def script(line: Line, first_byte: bytes = first_byte) -> None:
                await line.request()
                if line.number == 1:
                    line.answer()
                    await line.request()
                    line.answer(first_byte)
                    await line.writer.drain()
                    line.writer.write_eof()
                    await line.closed()

            async with serving(script) as server, client_of() as client:
                await client.send(post(server.url), deadline=soon())
                error = await failure(client.send(post(server.url), deadline=soon(), repeatable=True))
                assert error.kind is Reach.RESET
                assert server.accepted == accepted

    run(scenario())


@pytest.mark.parametrize(("header", "kept_s"), [(b"", 60.0), (b"Keep-Alive: timeout=5, max=9\r\n", 4.0)])
def test_an_idle_connection_is_closed_in_time(run: Run, header: bytes, kept_s: float) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + header + b"\r\nok"
        async with serving(always(answer)) as server, client_of(clock=clock) as client:
            await client.send(get(server.url), deadline=clock.monotonic() + 5)
            clock.advance(kept_s - 0.2)
            assert figures(client, server).idle == 1
            clock.advance(0.3)
            assert figures(client, server).open == 0
            assert clock.waiting() == []

    run(scenario())


def test_a_connection_is_not_used_beyond_its_age(run: Run) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        async with serving(always()) as server, client_of(clock=clock) as client:
            for accepted in [1] * 10 + [2] * 10:
                await client.send(get(server.url), deadline=clock.monotonic() + 5)
                assert server.accepted == accepted
                clock.advance(31)

    run(scenario())


def test_a_connection_that_grew_old_at_work_is_not_handed_on(run: Run) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        heard, go = asyncio.Event(), asyncio.Event()

        async def script(line: Line) -> None:
            while await line.request():
                heard.set()
                await go.wait()
                line.answer()

        limits = ClientLimits(per_origin=1)
        async with serving(script) as server, client_of(clock=clock, limits=limits) as client:
            async with asyncio.TaskGroup() as group:
                deadline = clock.monotonic() + 600
                for _ in range(2):
                    group.create_task(client.send(get(server.url), deadline=deadline))
                await heard.wait()
                clock.advance(301)
                go.set()
            assert server.accepted == 2

    run(scenario())


def test_an_origin_that_closes_early_teaches_its_idle_time(run: Run) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        go = asyncio.Event()

        async def script(line: Line) -> None:
            await line.request()
            line.answer()
            if line.number == 1:
                await go.wait()
            else:
                await line.closed()

        async with serving(script) as server, client_of(clock=clock) as client:
            await client.send(get(server.url), deadline=clock.monotonic() + 5)
            clock.advance(5)
            go.set()
            await until(lambda: figures(client, server).stale == 1)
            await client.send(get(server.url), deadline=clock.monotonic() + 5)
            clock.advance(3.8)
            assert figures(client, server).idle == 1
            clock.advance(0.4)
            assert figures(client, server).open == 0

    run(scenario())


def test_those_who_wait_are_served_in_order(run: Run) -> None:
    async def scenario() -> None:
        async def script(line: Line) -> None:
            while request := await line.request():
                served.append(request.split(b" ")[1])
                line.answer()

        served: list[bytes] = []
        limits = ClientLimits(per_origin=1)
        async with serving(script) as server, client_of(limits=limits) as client:
            sending = [client.send(get(f"{server.url}{n}"), deadline=soon()) for n in range(40)]
            replies = await asyncio.gather(*sending)
            assert [reply.body for reply in replies] == [b"ok"] * 40
            assert served == [b"/%d" % n for n in range(40)]
            assert server.accepted == 1
            shown = figures(client, server)
            assert (shown.open, shown.waiting, shown.reused) == (1, 0, 39)

    run(scenario())


def test_the_total_bound_moves_idle_connections_between_origins(run: Run) -> None:
    async def scenario() -> None:
        limits = ClientLimits(total=2)
        async with serving(always()) as one, serving(always()) as two, client_of(limits=limits) as client:
            third = one.url.replace("127.0.0.1", "localhost")
            for url in (one.url, two.url, third, one.url):
                await client.send(get(url), deadline=soon())
            assert len(client.figures()) == 3
            assert sum(shown.open for shown in client.figures().values()) == 2

    run(scenario())


def test_a_busy_total_makes_other_origins_wait_their_turn(run: Run) -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        async def slow(line: Line) -> None:
            await line.request()
            await go.wait()
            line.answer(CLOSING)
            await line.closed()

        async with serving(slow) as one, serving(always()) as two, client_of(limits=ClientLimits(total=1)) as client:
            async with asyncio.TaskGroup() as group:
                first = group.create_task(client.send(get(one.url), deadline=soon()))
                await until(lambda: one.accepted == 1)
                second = group.create_task(client.send(get(two.url), deadline=soon()))
                await until(lambda: figures(client, two).waiting == 1)
                assert two.accepted == 0
                go.set()
            assert (first.result().body, second.result().body) == (b"ok", b"ok")

    run(scenario())


def test_a_cancelled_request_leaves_nothing_behind(run: Run) -> None:
    async def scenario() -> None:
        before = sockets_open()
        async with serving(Line.closed) as server, client_of(limits=ClientLimits(per_origin=2)) as client:
            async with asyncio.TaskGroup() as group:
                sending = [group.create_task(client.send(get(server.url), deadline=soon())) for _ in range(6)]
                await until(lambda: server.open == 2 and figures(client, server).waiting == 4)
                for task in sending:
                    task.cancel()
            await until(lambda: server.open == 0)
            shown = figures(client, server)
            assert (shown.open, shown.idle, shown.waiting, shown.failed) == (0, 0, 0, {})
        await until(lambda: sockets_open() == before)

    run(scenario())


def test_cancelling_at_any_turn_of_the_loop_loses_no_room(run: Run) -> None:
    async def scenario() -> None:
        before = sockets_open()
        async with serving(always()) as server, client_of(limits=ClientLimits(per_origin=2)) as client:
            for turns in range(30):
                async with asyncio.TaskGroup() as group:
                    sending = [group.create_task(client.send(get(server.url), deadline=soon())) for _ in range(5)]
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    for task in sending[::2]:
                        task.cancel()
                shown = figures(client, server)
                assert shown.open == shown.idle <= 2
                assert shown.waiting == 0
                for task in sending[1::2]:
                    assert task.result().body == b"ok"
        await until(lambda: sockets_open() == before)

    run(scenario())


def test_room_granted_to_somebody_who_just_left_goes_to_the_next(run: Run) -> None:
    async def scenario() -> None:
        async with serving(Line.closed) as server, client_of(limits=ClientLimits(per_origin=1)) as client:
            for turns in range(6):
                async with asyncio.TaskGroup() as group:
                    first, second, third = (
                        group.create_task(client.send(get(server.url), deadline=soon())) for _ in range(3)
                    )
                    await until(lambda: server.open == 1 and figures(client, server).waiting == 2)
                    first.cancel()
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    second.cancel()
                    accepted = server.accepted
                    await until(lambda accepted=accepted: server.accepted > accepted and server.open == 1)
                    third.cancel()
                await until(lambda: server.open == 0)
                assert figures(client, server).open == 0

    run(scenario())


def test_closing_ends_what_runs_and_what_waits(run: Run) -> None:
    async def scenario() -> None:
        before, heard = sockets_open(), asyncio.Event()
        async with serving(hearing(heard)) as server:
            async with client_of(limits=ClientLimits(per_origin=1)) as client, asyncio.TaskGroup() as group:
                sending = [group.create_task(failure(client.send(get(server.url), deadline=soon()))) for _ in range(3)]
                await heard.wait()
                assert figures(client, server).waiting == 2
                await client.close()
            assert [(task.result().kind, task.result().sent) for task in sending] == [
                (Reach.CLOSED, True),
                (Reach.CLOSED, False),
                (Reach.CLOSED, False),
            ]
            assert (await failure(client.send(get(server.url), deadline=soon()))).kind is Reach.CLOSED
            await until(lambda: server.open == 0)
        await until(lambda: sockets_open() == before)

    run(scenario())


def test_two_hundred_origins_are_served_together(run: Run) -> None:
    async def scenario() -> None:
        async def ask(client: Client, port: int, number: int) -> HttpReply:
            return await client.send(get(f"http://127.0.0.{number}:{port}/"), deadline=soon())

        before = sockets_open()
        listener = await asyncio.start_server(Server(always()).serve, "0.0.0.0", 0)
        port: int = listener.sockets[0].getsockname()[1]
        rule = AddressRule.of(["loopback"])
        async with client_of(rule=rule, limits=ClientLimits(per_origin=2, total=50)) as client:
            asking = [ask(client, port, number) for number in range(1, 201) for _ in range(3)]
            replies = await asyncio.gather(*asking)
            assert {reply.body for reply in replies} == {b"ok"}
            assert sum(shown.open for shown in client.figures().values()) <= 50
        listener.close()
        await until(lambda: sockets_open() <= before)

    run(scenario())
