"""The names of spans and of their attributes, each written once: they are API.

Those that begin with `gen_ai.` are names of OpenTelemetry's conventions for generative AI, which are still in
development; `a2a.` is ours.
"""

from typing import Final

# Spans.
INVOKE_AGENT: Final = "invoke_agent"  # and the agent's name; also the operation
WORKFLOW: Final = "workflow"
ADMIT: Final = "admit"
QUEUE: Final = "queue"
ATTEMPTED: Final = "attempt"
FOLLOW: Final = "follow"
STEP: Final = "step"  # and its number
DELIVER: Final = "deliver"  # and the dialect that it is told in

# Attributes of OpenTelemetry.
OPERATION: Final = "gen_ai.operation.name"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_VERSION: Final = "gen_ai.agent.version"
CONVERSATION: Final = "gen_ai.conversation.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR: Final = "error.type"
HTTP_METHOD: Final = "http.request.method"
HTTP_STATUS: Final = "http.response.status_code"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

# Our own attributes.
CALL: Final = "a2a.call.id"
SKILL: Final = "a2a.skill"
STATUS: Final = "a2a.status"
DIALECT_IN: Final = "a2a.dialect.in"
DIALECT_OUT: Final = "a2a.dialect.out"
BINDING: Final = "a2a.binding"
VIA: Final = "a2a.via"
MODE: Final = "a2a.mode"
DEPTH: Final = "a2a.depth"
CALLER: Final = "a2a.caller.id"
PRIORITY: Final = "a2a.priority"
TRACE_GIVEN: Final = "a2a.trace.given"
QUEUED: Final = "a2a.queue"
ATTEMPT: Final = "a2a.attempt"
EVENTS: Final = "a2a.events"
STEP_NUMBER: Final = "a2a.step"
DELIVERY: Final = "a2a.delivery.id"
REPLAYS: Final = "a2a.delivery.replays"
ANSWER: Final = "a2a.delivery.answer"
DERIVED: Final = "a2a.derived"  # one span for all attempts of a notice, as the hub shows it; it is not exported
