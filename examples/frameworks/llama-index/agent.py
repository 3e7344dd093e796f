"""An agent of LlamaIndex as an agent that everybody can call."""

from llama_index.core.agent.workflow import FunctionAgent
from model import model  # any LLM that calls functions

from dragoman import Agent

guide = FunctionAgent(name="Guide", description="Knows cities", system_prompt="Answer with figures.", llm=model)

Agent.wrap(guide).start()
