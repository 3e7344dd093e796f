"""Agents of Google ADK, wrapped. Their models answer without a network."""

from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import ToolContext
from google.adk.workflow import Workflow
from google.genai import types
from pydantic import BaseModel
from wrapping import connect, forever, reply, spoken

from dragoman import Agent


class City(BaseModel):
    name: str
    people: int


class Question(BaseModel):
    city: str


def words(text: str, *, partial: bool = False) -> LlmResponse:
    used = types.GenerateContentResponseUsageMetadata(prompt_token_count=7, candidates_token_count=5)
    return LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text=text)]),
        partial=partial,
        usage_metadata=used,
        model_version="offline-1",
    )


def called(name: str, **given: str) -> LlmResponse:
    return LlmResponse(
        content=types.Content(role="model", parts=[types.Part.from_function_call(name=name, args=given)])
    )


def said(request: LlmRequest) -> list[str]:
    parts = [part for content in request.contents if content.role == "user" for part in content.parts or ()]
    return [part.text for part in parts if part.text]


class Model(BaseLlm):
    """Answers what was said, fills in a city, calls a tool, waits for ever, fails, or is blocked."""

    model: str = "offline-1"
    does: str = "reply"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        heard = said(llm_request)
        match self.does:
            case "fill":
                yield words('{"name": "Oslo", "people": 709000}')
            case "sleep":
                await forever()
            case "fail":
                raise ValueError("the password is 1234")
            case "block":
                yield LlmResponse(error_code="SAFETY", error_message="the password is 1234")
            case "look" if not any(part.function_response for part in llm_request.contents[-1].parts or ()):
                yield words("let me look ", partial=True)
                yield called("note", city=heard[-1])
            case "look":
                yield words("noted", partial=True)
                yield words("noted")
            case _:
                text = reply(heard)
                async for word in spoken(text):
                    yield words(word, partial=True)
                yield words(text)


async def note(city: str, tool_context: ToolContext) -> str:
    """Note a city."""
    await tool_context.save_artifact("note.txt", types.Part.from_bytes(data=city.encode(), mime_type="text/plain"))
    return "done"


def agent(does: str = "reply", **options: object) -> LlmAgent:
    return LlmAgent(name="Talker", model=Model(does=does), description="Knows cities", **options)


kept = Runner(agent=agent(), app_name="kept", session_service=InMemorySessionService())
both = SequentialAgent(
    name="Both",
    sub_agents=[LlmAgent(name="First", model=Model()), LlmAgent(name="Second", model=Model(does="fill"))],
)


def loud(node_input: str) -> str:
    return str(node_input).upper()


connect(
    Agent.wrap(agent(), id="agt_google_adk_talker", skill="echo"),
    Agent.wrap(agent("fill", output_schema=City), id="agt_google_adk_filler", skill="echo"),
    Agent.wrap(agent("sleep"), id="agt_google_adk_sleeper", skill="echo"),
    Agent.wrap(agent("fail"), id="agt_google_adk_failing", skill="echo"),
    Agent.wrap(agent("block"), id="agt_google_adk_blocked", skill="echo"),
    Agent.wrap(agent("look", tools=[note]), id="agt_google_adk_looker", skill="echo"),
    Agent.wrap(agent(input_schema=Question), id="agt_google_adk_asked", skill="echo"),
    Agent.wrap(both, id="agt_google_adk_both", skill="echo"),
    Agent.wrap(Workflow(name="Flow", edges=[("START", loud)]), id="agt_google_adk_flow", skill="echo"),
    Agent.wrap(kept, id="agt_google_adk_kept", skill="echo"),
)
