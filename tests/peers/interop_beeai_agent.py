"""An agent of beeai-framework behind its own `A2AServer`; its model, on its own base, says what it heard."""

import json
from collections.abc import AsyncGenerator

from announcing import HOST, port_to_serve
from beeai_framework.adapters.a2a import A2AServer, A2AServerConfig
from beeai_framework.agents.requirement import RequirementAgent
from beeai_framework.backend import AssistantMessage, ChatModel, ChatModelOutput, UserMessage
from beeai_framework.backend.message import MessageToolCallContent
from beeai_framework.backend.types import ChatModelInput
from beeai_framework.context import RunContext
from beeai_framework.memory import UnconstrainedMemory


class Repeater(ChatModel):
    """Says what it heard, by the tool that the framework gives it for its last word."""

    @property
    def model_id(self) -> str:
        """Its name."""
        return "repeater"

    @property
    def provider_id(self) -> str:
        """One of the framework's names; nothing is asked of that provider."""
        return "ollama"

    async def _create(self, input: ChatModelInput, run: RunContext) -> ChatModelOutput:
        heard = [message.text for message in input.messages if isinstance(message, UserMessage)]
        answer = json.dumps({"response": f"You said: {heard[-1]}"})
        call = MessageToolCallContent(id="answer", tool_name="final_answer", args=answer)
        return ChatModelOutput(output=[AssistantMessage(call)], finish_reason="tool_calls")

    async def _create_stream(self, input: ChatModelInput, run: RunContext) -> AsyncGenerator[ChatModelOutput]:
        yield await self._create(input, run)


def main() -> None:
    """Serve until stopped."""
    port = port_to_serve("An agent of beeai-framework.")
    agent = RequirementAgent(
        llm=Repeater(), memory=UnconstrainedMemory(), name="repeater", description="Says what it heard."
    )
    A2AServer(config=A2AServerConfig(host=HOST, port=port)).register(agent).serve()


if __name__ == "__main__":
    main()
