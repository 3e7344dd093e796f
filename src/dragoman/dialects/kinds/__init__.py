"""The objects that say what they are in a member `kind`, and the calls made of them: A2A 0.3 and dotted share these.

objects    messages, parts and artifacts, written strictly and read strictly from callers
requests   what a caller sends, as an operation
replies    what an agent is sent, and what its answer means
"""

from dragoman.dialects.kinds.objects import (
    COMPAT,
    MessageShape,
    PartShape,
    bad_param,
    beside_task,
    read_message,
    restored,
    wire_artifact,
    wire_message,
    wire_part,
)
from dragoman.dialects.kinds.replies import (
    JSON_OR_STREAM,
    error_of,
    failed,
    hear_object,
    heard_result,
    refused_by,
    sent_once,
    sent_params,
)
from dragoman.dialects.kinds.requests import (
    NO_CONFIGURATION,
    ConfigurationShape,
    Count,
    SendShape,
    error_data,
    made_message_id,
    send_task,
)

__all__ = [
    "COMPAT",
    "JSON_OR_STREAM",
    "NO_CONFIGURATION",
    "ConfigurationShape",
    "Count",
    "MessageShape",
    "PartShape",
    "SendShape",
    "bad_param",
    "beside_task",
    "error_data",
    "error_of",
    "failed",
    "hear_object",
    "heard_result",
    "made_message_id",
    "read_message",
    "refused_by",
    "restored",
    "send_task",
    "sent_once",
    "sent_params",
    "wire_artifact",
    "wire_message",
    "wire_part",
]
