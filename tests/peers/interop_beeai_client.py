"""beeai-framework's `A2AAgent`: it is given a URL and run like any agent of the framework."""

from asking import ask
from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory


async def send(url: str, text: str) -> str:
    """The text of its last message."""
    return (await A2AAgent(url=url, memory=UnconstrainedMemory()).run(text)).last_message.text


if __name__ == "__main__":
    ask(send)
