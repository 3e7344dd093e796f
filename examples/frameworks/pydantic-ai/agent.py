"""An agent of pydantic-ai, with its output type, as an agent that everybody can call."""

import pydantic_ai
from model import model  # any model, or its name
from pydantic import BaseModel

from dragoman import Agent


class City(BaseModel):
    name: str
    people: int


guide = pydantic_ai.Agent(model, name="Guide", output_type=City, instructions="Answer with figures.")

Agent.wrap(guide, description="Knows cities").start()
