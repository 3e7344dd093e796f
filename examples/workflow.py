"""Steps that the hub itself carries on, also over its own restart: each gets what the one before found."""

import asyncio

from dragoman import A2AClient, Step


async def main() -> None:
    async with A2AClient() as client:
        handle = await client.submit(
            skill="web_search",
            input={"query": "tides", "max_results": 1},
            then=[Step(skill="summarize", input={"content": Step.result("0", "/results/0/snippet")})],
        )
        print((await handle.result(timeout_s=30))["summary"])


asyncio.run(main())
