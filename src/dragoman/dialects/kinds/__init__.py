"""The objects that say what they are in a member `kind`, and the calls made of them: A2A 0.3 and dotted share these.

objects    messages, parts and artifacts, written strictly and read strictly from callers
requests   what a caller sends, as an operation
replies    what an agent is sent, and what its answer means
streams    what happens to a task, event by event
push       where a task is told of, and what is posted there
watching   the requests about that
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
from dragoman.dialects.kinds.push import ConfigShape, callback_of, config_object, posted, task_then
from dragoman.dialects.kinds.replies import (
    JSON_OR_STREAM,
    SENDING,
    error_of,
    has_no_stream,
    hear_object,
    heard_result,
    restored_events,
    sent_once,
    sent_params,
    with_history,
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
from dragoman.dialects.kinds.streams import ARTIFACT, STATUS, KindFrames, Looks, broken_data, result_data
from dragoman.dialects.kinds.watching import PUSH_METHODS, read_push, shown_push

__all__ = [
    "ARTIFACT",
    "COMPAT",
    "JSON_OR_STREAM",
    "NO_CONFIGURATION",
    "PUSH_METHODS",
    "SENDING",
    "STATUS",
    "ConfigShape",
    "ConfigurationShape",
    "Count",
    "KindFrames",
    "Looks",
    "MessageShape",
    "PartShape",
    "SendShape",
    "bad_param",
    "beside_task",
    "broken_data",
    "callback_of",
    "config_object",
    "error_data",
    "error_of",
    "has_no_stream",
    "hear_object",
    "heard_result",
    "made_message_id",
    "posted",
    "read_message",
    "read_push",
    "restored",
    "restored_events",
    "result_data",
    "send_task",
    "sent_once",
    "sent_params",
    "shown_push",
    "task_then",
    "wire_artifact",
    "wire_message",
    "wire_part",
    "with_history",
]
