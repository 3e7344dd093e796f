"""strands-agents' `A2AAgent`: it is given a URL and used like any agent of Strands."""

from asking import TIMEOUT_S, ask
from strands.agent.a2a_agent import A2AAgent


async def send(url: str, text: str) -> str:
    """The text of its result."""
    result = await A2AAgent(url, timeout=int(TIMEOUT_S)).invoke_async(text)
    if result.stop_reason == "error":
        raise RuntimeError(str(result))
    return "".join(block.get("text", "") for block in result.message["content"])


if __name__ == "__main__":
    ask(send)
