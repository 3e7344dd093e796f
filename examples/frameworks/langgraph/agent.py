"""A LangChain agent, which is a LangGraph graph, as an agent that everybody can call."""

from langchain.agents import create_agent
from model import model  # any chat model

from dragoman import Agent


def people_of(city: str) -> int:
    """Inhabitants of a city"""
    return {"Oslo": 709_000}.get(city, 0)


guide = create_agent(model, tools=[people_of], name="Guide")

Agent.wrap(guide, description="Knows cities").start()
