"""Two agents one after the other: what the first finds is what the second works on."""

import asyncio

from dragoman.orchestrate import Step, chain


async def main() -> None:
    summary = await chain(
        Step(skill="web_search", input={"query": "tides", "max_results": 3}),
        Step(skill="summarize", input=lambda found: {"content": " ".join(hit["snippet"] for hit in found["results"])}),
    )
    print(summary["summary"])


asyncio.run(main())
