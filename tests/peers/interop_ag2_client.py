"""AG2's `A2AConfig`: the remote agent stands where an agent of AG2 has its model."""

from ag2 import Agent
from ag2.a2a import A2AConfig
from asking import TIMEOUT_S, ask


async def send(url: str, text: str) -> str:
    """The text of the reply."""
    reply = await Agent("caller", config=A2AConfig(url, timeout=TIMEOUT_S)).ask(text)
    return await reply.content() or ""


if __name__ == "__main__":
    ask(send)
