"""A graph of LangGraph behind `langgraph dev`, its own server, in memory; its one node says what it heard.

The server has it at `/a2a/{assistant}`, where the assistant's id follows from the graph's name.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def repeat(state: MessagesState) -> dict:
    """One turn, by a model of LangChain's own that says what it is made with."""
    heard = state["messages"][-1].text
    model = GenericFakeChatModel(messages=iter([AIMessage(f"You said: {heard}")]))
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("repeat", repeat)
builder.add_edge(START, "repeat")
builder.add_edge("repeat", END)
graph = builder.compile()


def main() -> None:
    """Serve until stopped."""
    from announcing import HOST, port_to_serve  # here: the server imports this file for its graph alone
    from langgraph_cli.cli import cli

    port = port_to_serve("A graph of LangGraph.")
    os.environ |= {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false"}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "langgraph.json"
        config.write_text(
            json.dumps({"dependencies": ["."], "graphs": {"repeater": f"{Path(__file__).resolve()}:graph"}})
        )
        os.chdir(folder)
        told = ["dev", "--host", HOST, "--port", str(port), "--config", str(config), "--no-browser", "--no-reload"]
        sys.exit(cli.main(told, standalone_mode=False))


if __name__ == "__main__":
    main()
