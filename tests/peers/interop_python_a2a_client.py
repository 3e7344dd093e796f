"""python-a2a's `A2AClient`: it is given a URL and asked a text."""

import asyncio

from asking import TIMEOUT_S, ask
from python_a2a import A2AClient


async def send(url: str, text: str) -> str:
    """What it takes for the answer; it says its errors as texts."""

    def call() -> str:
        return A2AClient(url, timeout=int(TIMEOUT_S)).ask(text)

    return await asyncio.to_thread(call)


if __name__ == "__main__":
    ask(send)
