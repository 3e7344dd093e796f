"""CrewAI's crews and agents, wrapped. The model answers without a network, in the thread that CrewAI asks it in."""

from typing import Any

from crewai import Agent as CrewAgent
from crewai import Crew, Task
from crewai.llms.base_llm import BaseLLM
from pydantic import BaseModel
from wrapping import connect, heard, reply

from dragoman import Agent


class City(BaseModel):
    name: str
    people: int


class Model(BaseLLM):
    """Answers what was said, fills in a city, fails, or waits until the test says `go`."""

    def __init__(self, does: str = "reply") -> None:
        super().__init__(model="offline-1")
        self._does = does

    def call(self, messages: Any, *_: Any, from_task: Any = None, from_agent: Any = None, **__: Any) -> str:
        self._track_token_usage_internal({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12})
        if self._does == "fail":
            raise ValueError("the password is 1234")
        if self._does == "fill":
            return 'Final Answer: {"name": "Oslo", "people": 709000}'
        if self._does == "wait":
            print("waiting", flush=True)
            heard("go")
            return "Final Answer: late"
        said = [each["content"] for each in messages if each["role"] == "user"]
        text = reply([_said(each) for each in said])
        first, _, others = text.partition(" ")
        self._emit_stream_chunk_event(first, from_task=from_task, from_agent=from_agent)
        if "slowly" in others:
            heard("go")
        self._emit_stream_chunk_event(f" {others}", from_task=from_task, from_agent=from_agent)
        return f"Final Answer: {text}"


def _said(content: str) -> str:
    """What the caller said, in the frame that CrewAI puts around it."""
    return content.partition("Current Task: ")[2].partition("\n")[0] or content


def worker(does: str = "reply") -> CrewAgent:
    return CrewAgent(role="Talker", goal="Answer", backstory="Knows cities", llm=Model(does))


def crew(does: str = "reply", said: str = "{said}", **task: Any) -> Crew:
    agent = worker(does)
    return Crew(
        agents=[agent],
        tasks=[Task(description=said, expected_output="an answer", agent=agent, **task)],
        name="Guides",
        stream=does == "reply",
    )


connect(
    Agent.wrap(worker(), id="agt_crewai_talker", skill="echo"),
    Agent.wrap(crew(), id="agt_crewai_crew", skill="echo"),
    Agent.wrap(crew("fill", output_pydantic=City), id="agt_crewai_filler", skill="echo"),
    Agent.wrap(crew("wait"), id="agt_crewai_sleeper", skill="echo"),
    Agent.wrap(crew("fail"), id="agt_crewai_failing", skill="echo"),
    Agent.wrap(crew(said="{topic} for {reader}"), id="agt_crewai_writer", skill="echo"),
)
