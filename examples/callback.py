"""A call that nobody waits for: its outcome is posted to a URL, signed, and tried again for a day if need be."""

import asyncio

from dragoman import A2AClient


async def main() -> None:
    told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The smallest web server there is: it takes one POST."""
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        told.set_result(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with A2AClient() as client:
        handle = await client.submit(
            skill="web_search", input={"query": "tides"}, callback_url=f"http://127.0.0.1:{port}/told"
        )
        print("accepted", handle.id)
        async with asyncio.timeout(30):
            print("told", (await told).decode()[:60])
    server.close()


asyncio.run(main())
