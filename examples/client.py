"""Everything a caller does: find, call, stream, hand in, come back."""

import asyncio

from dragoman import A2AClient
from dragoman.errors import AgentNotFound, RateLimited


async def main() -> None:
    async with A2AClient() as client:
        async for found in client.discover(skill="summarize"):
            print(found.id, found.dialect, found.rating)

        result = await client.call("agt_archive", "web_search", {"query": "tides", "max_results": 2})
        print(result["results"][0]["title"])
        print(result.id, result.timing["duration_ms"], result.trace["trace_id"])

        try:
            await client.call("agt_nobody", "web_search", {"query": "tides"}, timeout_ms=5000)
        except AgentNotFound as error:
            print(error.code, error.retryable)
        except RateLimited as error:
            print("again in", error.retry_after_s)

        handle = await client.submit(
            skill="web_search", input={"query": "rivers", "mode": "slow"}, idempotency_key="rivers-1"
        )
        print((await handle.status()).status)
        async for event in handle.stream():
            if event.type == "progress":
                print(event.message)
        print(len((await handle.result())["results"]))


asyncio.run(main())
