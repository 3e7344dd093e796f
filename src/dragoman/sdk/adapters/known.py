"""Which objects `Agent.wrap` knows, by the modules that their classes come from: nothing is imported to find out.

The first that recognises an object has it. A new adapter is a row here and a file beside this one.
"""

import sys
from collections.abc import Callable
from typing import Final, NamedTuple

Recognises = Callable[[object], bool]


class Known(NamedTuple):
    """One kind of object: what it is called, the adapter's file, and how it is recognised."""

    name: str
    file: str
    recognises: Recognises


def of_modules(*prefixes: str, beside: str | None = None) -> Recognises:
    """Objects whose class, or one that it is made of, comes from such a module: `langgraph` has `langgraph.graph`.

    `beside` is the second mark where a module's name is a common word: `agents:Runner`, a name that a module has.
    """
    starts = tuple(f"{prefix}." for prefix in prefixes)

    def recognises(obj: object) -> bool:
        made_of = [f"{each.__module__}." for each in type(obj).__mro__]
        return any(module.startswith(starts) for module in made_of) and (beside is None or _is_there(beside))

    return recognises


def _is_there(mark: str) -> bool:
    module, _, name = mark.partition(":")
    return hasattr(sys.modules.get(module), name)


def _is_url(obj: object) -> bool:
    return isinstance(obj, str) and obj.startswith(("http://", "https://"))


KNOWN: Final[tuple[Known, ...]] = (
    Known("LangGraph graphs and LangChain agents", "langgraph", of_modules("langgraph")),
    Known("OpenAI Agents", "openai_agents", of_modules("agents.agent", beside="agents:Runner")),
    Known("pydantic-ai agents", "pydantic_ai", of_modules("pydantic_ai")),
    Known("CrewAI crews and agents", "crewai", of_modules("crewai")),
    Known("Google ADK agents, apps and runners", "google_adk", of_modules("google.adk")),
    Known("LlamaIndex agents and engines", "llama_index", of_modules("llama_index")),
    Known("LlamaIndex workflows", "llama_index", of_modules("workflows.workflow", beside="workflows:Workflow")),
    Known("smolagents agents", "smolagents", of_modules("smolagents")),
    Known("AutoGen agents and teams", "autogen", of_modules("autogen_agentchat")),
    Known("the URL of an agent", "agent_url", _is_url),
    Known("A2AClient.direct(url)", "agent_url", of_modules("dragoman.sdk.client.client")),
    Known("functions and other callables", "callables", callable),
)
