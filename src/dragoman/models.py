"""Models that agents let work, and what is said between the two."""

from dragoman.sdk.run.models import (
    Model,
    ModelFailed,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    Usage,
    chat_completions,
    scripted,
)

__all__ = [
    "Model",
    "ModelFailed",
    "ModelMessage",
    "ModelReply",
    "ModelRequest",
    "ToolCall",
    "ToolSchema",
    "Usage",
    "chat_completions",
    "scripted",
]
