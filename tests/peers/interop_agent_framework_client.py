"""agent-framework's `A2AAgent`, given a URL: it looks at no card."""

from agent_framework.a2a import A2AAgent
from asking import ask


async def send(url: str, text: str) -> str:
    """The text of its answer."""
    async with A2AAgent(url=url) as remote:
        return (await remote.run(text)).text


if __name__ == "__main__":
    ask(send)
