"""A model that needs no network: it calls the tool, then answers."""

from typing import Any

from smolagents import ChatMessage, Model
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction


class Offline(Model):
    def generate(self, messages: list[ChatMessage], *_: Any, **__: Any) -> ChatMessage:
        name, given = "people_of", {"city": "Oslo"}
        if any("709000" in str(message.content) for message in messages):
            name, given = "final_answer", {"answer": "Oslo has 709000 inhabitants."}
        called = ChatMessageToolCallFunction(name=name, arguments=given)
        return ChatMessage(
            role="assistant", content=None, tool_calls=[ChatMessageToolCall(id="1", type="function", function=called)]
        )


model = Offline()
