"""CrewAI's way to delegate a task to a remote agent, as its agents do when they have an `A2AClientConfig`."""

import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

from asking import TIMEOUT_S, ask
from crewai.a2a.utils.delegation import aexecute_a2a_delegation

CARD = ".well-known/agent-card.json"


async def send(url: str, text: str) -> str:
    """The result of the delegation."""
    endpoint = f"{url.rstrip('/')}/{CARD}"
    done = await aexecute_a2a_delegation(endpoint=endpoint, auth=None, timeout=int(TIMEOUT_S), task_description=text)
    if done.get("error"):
        raise RuntimeError(done["error"])
    return str(done.get("result", ""))


if __name__ == "__main__":
    ask(send)
