"""An agent of smolagents as an agent that everybody can call."""

from model import model  # any model
from smolagents import ToolCallingAgent, tool

from dragoman import Agent


@tool
def people_of(city: str) -> int:
    """Inhabitants of a city

    Args:
        city: its name
    """
    return {"Oslo": 709_000}.get(city, 0)


guide = ToolCallingAgent(tools=[people_of], model=model, name="guide", description="Knows cities")

Agent.wrap(guide).start()
