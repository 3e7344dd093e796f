"""What the tool of a skill takes that says nothing of its input: words in one field, in every framework and in MCP."""

from typing import Final

from dragoman.model.errors import InputRefused
from dragoman.model.json import JsonObject

MESSAGE: Final = "message"
IN_WORDS: Final[JsonObject] = {
    "type": "object",
    "properties": {MESSAGE: {"type": "string", "description": "What to say to the agent, in words."}},
    "required": [MESSAGE],
}


def lacks_text(name: str) -> InputRefused:
    """That a tool's arguments do not have the text they need."""
    return InputRefused(f"{name}: required, a text", errors=[{"path": name, "message": "required"}])
