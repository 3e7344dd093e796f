"""A team of AutoGen as an agent that everybody can call."""

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from model import model  # any model client

from dragoman import Agent


def guides() -> RoundRobinGroupChat:
    finder = AssistantAgent("Finder", model, system_message="Find the figure.", model_client_stream=True)
    checker = AssistantAgent("Checker", model, system_message="Check it.", model_client_stream=True)
    return RoundRobinGroupChat([finder, checker], termination_condition=MaxMessageTermination(3))


Agent.wrap(guides, per="conversation", name="Guides", description="Knows cities").start()
