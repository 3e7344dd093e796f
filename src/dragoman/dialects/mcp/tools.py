"""A skill as an MCP tool, and a tool's arguments as the message that the skill is called with.

A tool takes one object. A skill that says nothing of its input, or takes something else, is talked to in words.
"""

from typing import Final

from dragoman.model.agent import Agent, Skill
from dragoman.model.content import Data, Part, Text
from dragoman.model.json import Json, JsonObject, is_array
from dragoman.model.objects import parts_of_object
from dragoman.model.tool_inputs import IN_WORDS, MESSAGE, lacks_text
from dragoman.model.tool_names import tool_name

ANSWER: Final = "dragoman__answer"  # no agent has that id: `dragoman` is the hub's own
CALL_ID: Final = "call_id"
# Without a type, what only schemas of objects are made of; the hub knows no other inputs.
_OF_OBJECTS: Final = frozenset({"properties", "required", "additionalProperties", "$ref", "anyOf", "oneOf", "allOf"})

# The one tool that is no agent's skill: how a client goes on where an agent asked something.
ANSWER_TOOL: Final[JsonObject] = {
    "name": ANSWER,
    "title": "Answer an agent's question",
    "description": "Answers the question with which an earlier tool call ended, so that its agent goes on.",
    "inputSchema": {
        "type": "object",
        "properties": {
            CALL_ID: {"type": "string", "description": "The call that asked, as its result named it."},
            MESSAGE: {"type": "string", "description": "The answer, in words."},
        },
        "required": [CALL_ID, MESSAGE],
    },
}


def tool_of(agent: Agent, skill: Skill) -> JsonObject:
    """A skill as a tool; what the agent says of it is told as the agent's own words."""
    card = agent.card
    title = f"{skill.name} ({card.name})"
    said = f" It says: {skill.description}" if skill.description else ""
    shown: JsonObject = {
        "name": tool_name(agent.id, skill.id),
        "title": title,
        "description": f'The skill {skill.id} of the agent "{card.name}" ({agent.id}).{said}',
        "inputSchema": _object_schema(skill.input_schema) or IN_WORDS,
        "annotations": {"title": title, "idempotentHint": skill.idempotent},
    }
    output = _object_schema(skill.output_schema)
    if output is not None:
        shown["outputSchema"] = output
    return shown


def parts_given(skill: Skill, arguments: JsonObject) -> tuple[Part, ...]:
    """What the skill is told by these arguments. Raises InputRefused."""
    if _object_schema(skill.input_schema) is not None:
        return parts_of_object(arguments)
    words: Json = arguments.get(MESSAGE)
    if isinstance(words, str):
        return (Text(text=words),)
    if not arguments:
        raise lacks_text(MESSAGE)
    return (Data(value=arguments),)  # Who read no list may know what the agent takes all the same.


def answer_given(arguments: JsonObject) -> tuple[str, tuple[Part, ...]]:
    """Which call is answered, and with what. Raises InputRefused."""
    call_id, words = arguments.get(CALL_ID), arguments.get(MESSAGE)
    if not isinstance(call_id, str) or not call_id:
        raise lacks_text(CALL_ID)
    if not isinstance(words, str):
        raise lacks_text(MESSAGE)
    return call_id, (Text(text=words),)


def _object_schema(schema: JsonObject | None) -> JsonObject | None:
    """The schema where it is one of objects, saying so itself; None for any other."""
    if not schema:
        return None
    kinds: Json = schema.get("type")
    if kinds == "object":
        return schema
    if kinds is None and not schema.keys().isdisjoint(_OF_OBJECTS):
        return {"type": "object", **schema}
    if is_array(kinds) and "object" in kinds:
        return {**schema, "type": "object"}
    return None
