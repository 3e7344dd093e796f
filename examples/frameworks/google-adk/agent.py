"""An agent of Google ADK as an agent that everybody can call."""

from google.adk.agents import LlmAgent
from model import model  # any model, or its name

from dragoman import Agent


def people_of(city: str) -> int:
    """Inhabitants of a city"""
    return {"Oslo": 709_000}.get(city, 0)


guide = LlmAgent(name="Guide", model=model, instruction="Answer with figures.", tools=[people_of])

Agent.wrap(guide, description="Knows cities").start()
