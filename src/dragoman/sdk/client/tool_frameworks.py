"""Which frameworks skills are handed out to: what each is called here, and what it takes to make its tools.

A framework is imported by the file that makes its tools, and only when it is asked for by name. A new one is a row
here and a file `sdk/adapters/tools_NAME.py` with the function `tool_of`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple

from dragoman.model.extras import MissingExtra
from dragoman.sdk.client import tool_forms
from dragoman.sdk.client.skill_tool import Outcome
from dragoman.sdk.client.tools import Form

Framework = Literal[
    "plain", "openai", "mcp",
    "langchain", "langgraph", "openai-agents", "pydantic-ai",
    "crewai", "smolagents", "llama-index", "autogen", "google-adk",
]  # fmt: skip


class Known(NamedTuple):
    """One framework: the file that makes its tools, what has to be installed, and what it demands of names."""

    file: str
    package: str
    identifiers: bool = False
    folded: bool = False


KNOWN: Final[dict[str, Known]] = {
    "langchain": Known("langchain", "langchain-core"),
    "langgraph": Known("langchain", "langchain-core"),
    "openai-agents": Known("openai_agents", "openai-agents"),
    "pydantic-ai": Known("pydantic_ai", "pydantic-ai"),
    "crewai": Known("crewai", "crewai", folded=True),  # it makes lower-case words with single _ of names
    "smolagents": Known("smolagents", "smolagents", identifiers=True),
    "llama-index": Known("llama_index", "llama-index-core"),
    "autogen": Known("autogen", "autogen-core"),
    "google-adk": Known("google_adk", "google-adk"),
}


def form_of(framework: str, *, blocking: bool) -> Form[Any]:
    """How the tools of that framework are made. Raises ValueError for an unknown one, MissingExtra."""
    match framework.lower().replace("_", "-"):
        case "plain":
            return Form(make=tool_forms.blocking if blocking else tool_forms.plain, answer=_value)
        case "openai":
            return Form(make=tool_forms.openai, answer=tool_forms.openai_answer)
        case "mcp":
            return Form(make=tool_forms.mcp, answer=tool_forms.mcp_answer)
        case name if name in KNOWN:
            known = KNOWN[name]
            return Form(make=_made_by(name, known), answer=_text, identifiers=known.identifiers, folded=known.folded)
        case _:
            names = ", ".join(("plain", "openai", "mcp", *KNOWN))
            raise ValueError(f"There are no tools of {framework!r}; there are those of: {names}.")


def _made_by(name: str, known: Known) -> Callable[..., object]:
    adapter: Any = import_module(f"dragoman.sdk.adapters.tools_{known.file}")
    try:
        return adapter.maker()
    except ModuleNotFoundError as error:
        raise MissingExtra(f'client.tools("{name}") needs {error.name}: pip install {known.package}') from None


def _value(outcome: Outcome) -> Any:
    return outcome.value


def _text(outcome: Outcome) -> str:
    return outcome.text
