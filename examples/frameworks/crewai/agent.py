"""A crew of CrewAI as an agent that everybody can call."""

from crewai import Agent as Member
from crewai import Crew, Task
from model import model  # any LLM, or its name

from dragoman import Agent


def guides() -> Crew:
    geographer = Member(role="Geographer", goal="Know cities", backstory="Counts people.", llm=model)
    look_up = Task(description="Who lives in {city}?", expected_output="A sentence", agent=geographer)
    return Crew(agents=[geographer], tasks=[look_up], name="Guides")


Agent.wrap(guides, per="call", description="Knows cities").start()
