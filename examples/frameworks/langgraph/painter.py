"""A graph that asks its caller before it goes on."""

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from dragoman import Agent


def paint(state: MessagesState) -> dict:
    colour = interrupt("Which colour?")
    return {"messages": [AIMessage(f"Painted in {colour}")]}


graph = StateGraph(MessagesState).add_node("paint", paint).add_edge(START, "paint")

Agent.wrap(graph.compile(InMemorySaver(), name="Painter")).start()
