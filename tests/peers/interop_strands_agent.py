"""An agent of strands-agents behind its own `A2AServer`; its model, on Strands' own base, says what it heard."""

from collections.abc import AsyncIterable
from typing import Any

from serving import HOST, serve
from starlette.applications import Starlette
from strands import Agent
from strands.models import Model
from strands.multiagent.a2a import A2AServer
from strands.types.content import Messages
from strands.types.streaming import StreamEvent


class Repeater(Model):
    """Says what it heard, word by word."""

    def update_config(self, **model_config: Any) -> None:
        """It has no settings."""

    def get_config(self) -> dict[str, Any]:
        """It has no settings."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """It knows words alone."""
        raise NotImplementedError

    async def stream(self, messages: Messages, *_: Any, **__: Any) -> AsyncIterable[StreamEvent]:
        """One turn."""
        heard = "".join(block.get("text", "") for block in messages[-1]["content"])
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for word in f"You said: {heard}".split(" "):
            yield {"contentBlockDelta": {"delta": {"text": word if word == "You" else f" {word}"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def application(port: int, _: str) -> Starlette:
    """The agent as an application."""

    def agent(_: str) -> Agent:
        return Agent(name="repeater", description="Says what it heard.", model=Repeater(), callback_handler=None)

    server = A2AServer(agent_factory=agent, host=HOST, port=port, enable_a2a_compliant_streaming=True)
    return server.to_starlette_app()


if __name__ == "__main__":
    serve("An agent of strands-agents.", ("JSONRPC",), application)
