"""What the stub hub has in place of an agent: the editor's summaries, answered as a platform agent answers."""

from dragoman.cli.demo.editor import pieces
from dragoman.model.json import Json, JsonObject, is_object

SKILLS: list[JsonObject] = [
    {
        "name": "summarize",
        "description": "Summarize text content",
        "input_schema": {
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "The text"},
                "max_length": {"type": "integer", "default": 500, "minimum": 1},
            },
            "required": ["content"],
        },
        "output_schema": {"type": "object", "properties": {"summary": {"type": "string"}}},
    }
]


def edit(call: Json) -> tuple[int, JsonObject]:
    """The HTTP status and body that answer one call of the hub."""
    if not is_object(call) or call.get("skill") != "summarize":
        return 404, _refusal("SKILL_NOT_FOUND", "The editor has one skill: summarize")
    given = call.get("input")
    value: JsonObject = given if is_object(given) else {}
    content, longest = value.get("content"), value.get("max_length", 500)
    if not isinstance(content, str):
        return 400, _refusal("VALIDATION_ERROR", "content: required, a text")
    summary = "".join(pieces(content, longest))
    tokens = len(content.split()) + len(summary.split())
    return 200, {"status": "completed", "result": {"summary": summary}, "usage": {"tokens": tokens}}


def _refusal(code: str, message: str) -> JsonObject:
    return {"status": "failed", "error": {"code": code, "message": message, "retryable": False}}
