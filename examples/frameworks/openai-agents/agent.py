"""An agent of the OpenAI Agents SDK as an agent that everybody can call."""

import agents
from model import model  # any model, or its name

from dragoman import Agent


@agents.function_tool
def people_of(city: str) -> int:
    """Inhabitants of a city"""
    return {"Oslo": 709_000}.get(city, 0)


guide = agents.Agent(name="Guide", instructions="Answer with figures.", tools=[people_of], model=model)

Agent.wrap(guide, description="Knows cities").start()
