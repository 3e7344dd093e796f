"""An agent of pydantic-ai, served by fasta2a; its model, a `FunctionModel` of its own, says what it heard."""

from collections.abc import AsyncIterator

from fasta2a import FastA2A
from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from serving import HOST, serve


def answer(messages: list[ModelMessage]) -> str:
    """What the model says to the last thing it was told."""
    heard = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)][-1]
    text = heard if isinstance(heard, str) else "".join(str(each) for each in heard)
    return f"You said: {text}"


def whole(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """The answer at once."""
    return ModelResponse(parts=[TextPart(answer(messages))])


async def pieces(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
    """The answer word by word."""
    for word in answer(messages).split(" "):
        yield word if word == "You" else f" {word}"


def application(port: int, _: str) -> FastA2A:
    """The agent as an application."""
    agent = Agent(FunctionModel(whole, stream_function=pieces), name="repeater")
    return agent_to_a2a(agent, url=f"http://{HOST}:{port}")


if __name__ == "__main__":
    serve("An agent of pydantic-ai.", ("JSONRPC",), application)
