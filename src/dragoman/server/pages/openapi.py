"""The hub's API described: generated from the very types that read and write it, so the two cannot disagree."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec

from dragoman import __version__
from dragoman.dialects.platform.card import PlatformCard
from dragoman.dialects.platform.wire import (
    AcceptedRequest,
    CallAnswer,
    CallRequest,
    DiscoveredAgent,
    RatingRequest,
    RegistryAnswer,
    RegistryRequest,
)
from dragoman.model.json import JsonObject
from dragoman.server.desk import Acked, Hello, SessionAnswer, Telling
from dragoman.server.pages.agents import AgentChange
from dragoman.server.pages.audit import AuditCheck, AuditItem
from dragoman.server.pages.call_views import CallEvent, CallItem, CallView
from dragoman.server.pages.calls import Cancellation, ForgottenCalls
from dragoman.server.pages.deliveries import AddressSwitch, DeliveryItem, ReplayFilter
from dragoman.server.pages.keys import KeyChange, NewKey, Rotation
from dragoman.server.pages.metrics import LogChange
from dragoman.server.pages.oauth_words import TOKEN_OPERATION
from dragoman.server.pages.series import SeriesView
from dragoman.server.pages.signing_keys import SigningRotation
from dragoman.server.pages.traces import TraceItem, TraceView
from dragoman.server.pages.usage import UsageView

_REF: Final = "#/components/schemas/{name}"
_TYPES: Final = (
    CallRequest,
    AcceptedRequest,
    CallAnswer,
    RatingRequest,
    RegistryRequest,
    RegistryAnswer,
    DiscoveredAgent,
    PlatformCard,
    AgentChange,
    KeyChange,
    NewKey,
    Rotation,
    SigningRotation,
    LogChange,
    DeliveryItem,
    ReplayFilter,
    AddressSwitch,
    CallItem,
    CallView,
    CallEvent,
    TraceItem,
    TraceView,
    UsageView,
    SeriesView,
    Cancellation,
    ForgottenCalls,
    AuditItem,
    AuditCheck,
    Hello,
    SessionAnswer,
    Telling,
    Acked,
)
_TEXT: Final = {"type": "string"}
_ITEMS: Final = {
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object"}},
        "next_cursor": {"type": ["string", "null"]},
    },
}
_FILTERS: Final[Mapping[str, str]] = {
    "skill": "an agent that has this skill",
    "q": "words in name, description or skills",
    "tag": "an agent with this tag; may be repeated",
    "capability": "streaming, memory, push, or a word of its card",
    "dialect": "what the agent speaks",
    "status": "active, paused or unreachable",
    "min_rating": "0 to 5",
    "max_p95_ms": "slowest 95th percentile; agents not measured yet pass",
    "min_availability": "0 to 1",
    "limit": "1 to 100, 20 if left out",
    "cursor": "next_cursor of the page before",
}
_AGENT_FILTERS: Final[Mapping[str, str]] = {
    name: _FILTERS[name] for name in ("q", "status", "min_rating", "max_p95_ms", "min_availability", "cursor")
} | {"mine": "true: only one's own", "limit": "1 to 100, 50 if left out"}
_SERIES_FILTERS: Final[Mapping[str, str]] = {
    "agent": "of this agent's calls",
    "skill": "of calls of this skill",
    "from": "a time; an hour before the end, or 60 hours by the hour, if left out",
    "to": "a time; now, if left out",
    "by": "minute or hour; at most 1,500 of them",
}
_DELIVERY_FILTERS: Final[Mapping[str, str]] = {
    "state": "pending, parked, disabled or delivered",
    "url": "the address, whole",
    "call": "the call that they tell of",
    "since": "born at or after this time",
    "limit": "1 to 100, 50 if left out",
    "cursor": "next_cursor of the page before",
}
_CALL_FILTERS: Final[Mapping[str, str]] = {
    "agent": "given to this agent",
    "caller": "made by this caller, where it may be seen",
    "skill": "of this skill",
    "status": "submitted, working, input-required, auth-required, completed, failed, canceled or rejected",
    "dialect": "made in this dialect",
    "since": "whose status changed at or after this time",
    "trace": "of this trace, in any spelling; the newest 1,000",
    "conversation": "of this conversation",
    "prefix": "whose id begins so; the newest 1,000",
    "limit": "1 to 100, 50 if left out",
    "cursor": "next_cursor of the page before",
}
_USAGE_FILTERS: Final[Mapping[str, str]] = {
    "by": "caller, target, skill, model, conversation or day; day if left out",
    "from": "the first day, UTC; 30 days before the last if left out",
    "to": "the last day, UTC; today if left out",
    "format": "json or csv; else what Accept says",
}
_FEED_FILTERS: Final[Mapping[str, str]] = {
    "topics": "calls, agents, or both with a comma; calls if left out",
    "agent": "calls given to this agent",
    "skill": "calls of this skill",
    "status": "calls in this state",
    "caller": "calls made by this caller, where they may be seen",
    "failed": "1: calls that failed",
    "since": "begin with what changed since this time, the newest 1,000",
}
_TRACE_FILTERS: Final[Mapping[str, str]] = {
    "since": "with a change at or after this time",
    "limit": "1 to 100, 50 if left out",
    "cursor": "next_cursor of the page before",
}
_TO_FORGET: Final[Mapping[str, str]] = {
    "context": "those of this conversation",
    "caller": "those that this caller made",
    "limit": "1 to 100 at once, with next_cursor; all of them if left out",
    "cursor": "next_cursor of the answer before",
}
_AUDIT_FILTERS: Final[Mapping[str, str]] = {
    "action": "this act, such as key.created; calls.written: the rows that cover calls",
    "object": "done to this",
    "principal": "done by this caller",
    "tenant": "of this tenant; for the hub's administrator",
    "since": "at or after this time",
    "until": "at or before this time",
    "limit": "1 to 100, 50 if left out",
    "cursor": "next_cursor of the page before",
}
_AUDIT_WINDOW: Final[Mapping[str, str]] = {
    "from": "only rows at or after this time, and the calls that they cover",
    "to": "only rows at or before this time",
    "rows": "1: show the rows that were checked",
    "part": "1: check one piece and say where to go on",
    "cursor": "next_cursor of the piece before",
}
_REFUSALS: Final[Mapping[int, str]] = {
    400: "The request is wrong; error.details.errors names each failing path.",
    401: "No credential, or a wrong one.",
    403: "The key lacks a scope, or the thing is somebody else's.",
    404: "There is no such agent, skill or call.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The hub does not answer under this Host name.",
    429: "Too many requests.",
    500: "The hub failed.",
    503: "The hub is draining or overloaded, or the agent is not reachable.",
}


@cache
def openapi(hub_url: str) -> JsonObject:
    """The whole description."""
    _, components = msgspec.json.schema_components(_TYPES, ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": __version__,
            "description": "Agents find and call each other here, whatever protocol each speaks.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": hub_url}],
        "security": [{"key": []}],
        "paths": _paths(),
        "components": {
            "schemas": {
                **components,
                "Accepted": _ACCEPTED,
                "Discovery": _DISCOVERY,
                "Items": _ITEMS,
                "Deliveries": _page_of("DeliveryItem"),
                "Calls": _page_of("CallItem"),
                "Traces": _page_of("TraceItem"),
                "CallEvents": _page_of("CallEvent"),
                "AuditRows": _page_of("AuditItem"),
            },
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key: ap_…, or a token for one"}
            },
        },
    }


@cache
def card_schema(hub_url: str) -> JsonObject:
    """The JSON Schema of the platform's agent card."""
    (found,), components = msgspec.json.schema_components((PlatformCard,), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{hub_url}/schemas/agent-card/v1",
        "title": "Agent card",
        **found,
        "$defs": components,
    }


_ACCEPTED: Final = {
    "type": "object",
    "required": ["id", "call_id", "status", "estimated_duration_ms"],
    "properties": {
        "id": {"type": "string"},
        "call_id": {"type": "string"},
        "status": {"type": "string"},
        "estimated_duration_ms": {"type": "integer"},
    },
}
_SESSION: Final = {"name": "session", "in": "query", "required": True, "schema": _TEXT}
_LAST_SEEN: Final = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Go on after this event; without it from the beginning.",
    "schema": _TEXT,
}
_DISCOVERY: Final = {
    "type": "object",
    "required": ["agents", "total", "next_cursor"],
    "properties": {
        "agents": {"type": "array", "items": {"$ref": _REF.format(name="DiscoveredAgent")}},
        "total": {"type": "integer"},
        "total_exceeded": {"type": "boolean"},
        "next_cursor": {"type": ["string", "null"]},
    },
}


def _page_of(item: str) -> JsonObject:
    return {
        "type": "object",
        "required": ["items", "next_cursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": _REF.format(name=item)}},
            "next_cursor": {"type": ["string", "null"]},
        },
    }


def _paths() -> JsonObject:
    agent, call, key = _path_parameter("agent"), _path_parameter("call"), _path_parameter("key")
    trace = _path_parameter("trace")
    paths: JsonObject = {
        "/v1/a2a/call": {
            "post": _operation(
                "Call an agent and wait",
                "CallAnswer",
                body="CallRequest",
                more={
                    502: "The agent failed.",
                    504: "The agent did not answer in time.",
                    409: "The key was used with another body.",
                },
            ),
        },
        "/v1/a2a/call/stream": {
            "post": _streamed("Call an agent and hear what happens", body="CallRequest"),
        },
        "/v1/a2a/call/async": {
            "post": _operation("Hand a call over", "Accepted", body="AcceptedRequest", done=202),
        },
        "/v1/a2a/call/{call}/status": {"get": _operation("How a call stands", "CallAnswer", parameters=[call])},
        "/v1/a2a/call/{call}/stream": {
            "get": _streamed("What happened in a call, and what happens", parameters=[call, _LAST_SEEN]),
        },
        "/v1/a2a/call/{call}/cancel": {
            "post": _operation("Stop a call", "CallAnswer", parameters=[call], more={409: "The call has ended."}),
        },
        "/v1/a2a/call/{call}/rating": {
            "post": _operation(
                "Say how good a call was",
                None,
                body="RatingRequest",
                parameters=[call],
                more={409: "The call has not ended."},
            ),
        },
        "/v1/a2a/registry": {
            "post": _operation("Register an agent", "RegistryAnswer", body="RegistryRequest", created=True)
        },
        "/v1/a2a/discover": {
            "get": _operation("Find agents", "Discovery", parameters=[_query(*each) for each in _FILTERS.items()])
        },
        "/v1/a2a/agents/{agent}/card": {"get": _operation("An agent's card", "PlatformCard", parameters=[agent])},
        "/v1/agents": {
            "get": _operation("List agents", "Items", parameters=[_query(*each) for each in _AGENT_FILTERS.items()])
        },
        "/v1/agents/{agent}": {
            "get": _operation("Show an agent", None, parameters=[agent]),
            "patch": _operation("Pause, resume, mark or limit an agent", None, body="AgentChange", parameters=[agent]),
            "delete": _operation("Remove an agent", None, parameters=[agent]),
        },
        "/v1/agents/connect": {
            "post": _operation("Open or renew the session of an agent that connects", "SessionAnswer", body="Hello"),
            "get": _streamed(
                "What the hub says to a session; by WebSocket, too",
                parameters=[_SESSION, _LAST_SEEN],
                events="Events: hello, then call, input, cancel and drain; those that are resumed after have an id.",
            ),
            "delete": _operation("End a session", None, parameters=[_SESSION]),
        },
        "/v1/agents/calls/{call}/events": {
            "post": _operation(
                "What a connected agent tells of a call",
                "Acked",
                body="Telling",
                parameters=[call],
                more={409: "Events are missing before these: expected.", 410: "The call is over, or elsewhere."},
            )
        },
        "/mcp": {
            "post": _operation("MCP: one JSON-RPC message; every skill that the caller may use is a tool", None),
            "get": _streamed(
                "MCP: what changes among the tools, or the rest of a call's stream",
                parameters=[_LAST_SEEN],
                events="Each event is a JSON-RPC message.",
            ),
            "delete": _operation("MCP: end the session that Mcp-Session-Id names", None, done=204),
        },
        "/v1/agents/{agent}/versions": {"get": _operation("Versions of its card", None, parameters=[agent])},
        "/v1/agents/{agent}/probe": {
            "get": _operation("What the hub saw when it last looked at it", None, parameters=[agent]),
            "post": _operation("Look again what it really speaks", None, parameters=[agent]),
        },
        "/v1/calls": {
            "get": _operation(
                "List calls of every dialect, newest status first",
                "Calls",
                parameters=[_query(*each) for each in _CALL_FILTERS.items()],
            ),
            "delete": _operation(
                "Forget what was written in calls",
                "ForgottenCalls",
                parameters=[_query(*each) for each in _TO_FORGET.items()],
            ),
        },
        "/v1/calls/series": {
            "get": _operation(
                "What calls came to, by the minute or the hour",
                "SeriesView",
                parameters=[_query(*each) for each in _SERIES_FILTERS.items()],
            )
        },
        "/v1/calls/usage": {
            "get": _operation(
                "What calls used up, summed; also as CSV",
                "UsageView",
                parameters=[_query(*each) for each in _USAGE_FILTERS.items()],
            )
        },
        "/v1/calls/feed": {
            "get": _streamed(
                "Calls as they begin, move and end",
                parameters=[_LAST_SEEN, *[_query(*each) for each in _FEED_FILTERS.items()]],
                events="call: a call in a new state, as in the list; agent: one that came, changed or went.",
            )
        },
        "/v1/traces": {
            "get": _operation(
                "List traces, the one with the newest change first",
                "Traces",
                parameters=[_query(*each) for each in _TRACE_FILTERS.items()],
            )
        },
        "/v1/traces/{trace}": {
            "get": _operation("Show a trace with the spans of all its calls", "TraceView", parameters=[trace])
        },
        "/v1/calls/{call}": {
            "get": _operation("Show a call", "CallView", parameters=[call]),
            "delete": _operation("Forget what was written in a call", "ForgottenCalls", parameters=[call]),
        },
        "/v1/audit": {
            "get": _operation(
                "What administrators did, newest first",
                "AuditRows",
                parameters=[_query(*each) for each in _AUDIT_FILTERS.items()],
            )
        },
        "/v1/audit/verify": {
            "get": _operation(
                "Check that nothing was changed afterwards",
                "AuditCheck",
                parameters=[_query(*each) for each in _AUDIT_WINDOW.items()],
            )
        },
        "/v1/calls/{call}/events": {
            "get": _operation(
                "What happened in a call",
                "CallEvents",
                parameters=[
                    call,
                    _query("after", "only events after this number; next_cursor of the page before"),
                    _query("limit", "1 to 100, 50 if left out"),
                ],
            )
        },
        "/v1/calls/{call}/stream": {
            "get": _streamed(
                "The same as it happens",
                parameters=[call, _LAST_SEEN, _query("after", "the same, for who cannot send the header")],
                events="Events as in the list, each under its own name and number; then done.",
            )
        },
        "/v1/calls/{call}/cancel": {
            "post": _operation(
                "Cancel a call", "CallView", body="Cancellation", parameters=[call], more={409: "The call has ended."}
            )
        },
        "/v1/keys": {
            "get": _operation("List keys", "Items"),
            "post": _operation("Make a key, shown once", None, body="NewKey", created=True),
        },
        "/v1/keys/{key}": {
            "patch": _operation("Set a key's limits and budget", None, body="KeyChange", parameters=[key]),
            "delete": _operation("Revoke a key", None, parameters=[key]),
        },
        "/v1/keys/{key}/rotate": {
            "post": _operation("Make a key's successor", None, body="Rotation", parameters=[key], created=True)
        },
        "/v1/signing-keys": {"get": _operation("The keys that the hub signs with", "Items")},
        "/v1/signing-keys/rotate": {
            "post": _operation("Have the signing key followed", "Items", body="SigningRotation")
        },
        "/oauth/token": {"post": TOKEN_OPERATION},
        "/v1/deliveries": {
            "get": _operation(
                "List callbacks and webhooks, newest first",
                "Deliveries",
                parameters=[_query(*each) for each in _DELIVERY_FILTERS.items()],
            )
        },
        "/v1/deliveries/replay": {
            "post": _operation("Send those that were given up once more", "Deliveries", body="ReplayFilter")
        },
        "/v1/deliveries/{delivery}/replay": {
            "post": _operation("Send one once more", "DeliveryItem", parameters=[_path_parameter("delivery")])
        },
        "/v1/deliveries/{delivery}": {
            "patch": _operation(
                "Disable or enable its address",
                "DeliveryItem",
                body="AddressSwitch",
                parameters=[_path_parameter("delivery")],
            )
        },
        "/v1/settings": {"get": _operation("The settings in force", "Items")},
        "/v1/settings/log": {
            "patch": _operation("Change how grave a line must be to be logged", None, body="LogChange")
        },
        "/metrics": {"get": _operation("What the hub counts, for Prometheus", None)},
    }
    for path, summary in _PUBLIC.items():
        paths[path] = {"get": {**_operation(summary, None), "security": []}}
    return paths


_PUBLIC: Final[Mapping[str, str]] = {
    "/healthz": "Whether the process runs",
    "/readyz": "Whether the hub takes calls",
    "/health": "The same, in the words of the dotted protocol",
    "/": "What this is",
    "/openapi.json": "This description",
    "/docs": "The same as a page",
    "/llms.txt": "The same in plain words, for language models",
    "/schemas/agent-card/v1": "The schema of the platform's card",
    "/.well-known/jwks.json": "The keys that the hub's tokens are checked with",
    "/.well-known/oauth-authorization-server": "How tokens are got (RFC 8414)",
    "/.well-known/oauth-protected-resource": "Whose tokens are taken (RFC 9728)",
}


def _streamed(
    summary: str,
    *,
    body: str | None = None,
    parameters: list[JsonObject] | None = None,
    events: str = "Events: start, progress and chunk, then complete or error, then done; each with its number as id.",
) -> JsonObject:
    """An operation that is answered by events."""
    operation = _operation(summary, None, body=body, parameters=parameters)
    operation["responses"]["200"] = {"description": events, "content": {"text/event-stream": {"schema": _TEXT}}}
    return operation


def _operation(
    summary: str,
    answer: str | None,
    *,
    body: str | None = None,
    parameters: list[JsonObject] | None = None,
    created: bool = False,
    done: int = 200,
    more: Mapping[int, str] | None = None,
) -> JsonObject:
    shape: JsonObject = {"$ref": _REF.format(name=answer)} if answer else {"type": "object"}
    said: JsonObject = {"description": "Done.", "content": {"application/json": {"schema": shape}}}
    refusal: JsonObject = {"application/json": {"schema": {"$ref": _REF.format(name="CallAnswer")}}}
    operation: JsonObject = {
        "summary": summary,
        "responses": {
            str(done): said,
            **({"201": said} if created else {}),
            **{
                str(status): {"description": text, "content": refusal}
                for status, text in sorted({**_REFUSALS, **(more or {})}.items())
            },
        },
    }
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        schema = {"$ref": _REF.format(name=body)}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _path_parameter(name: str) -> JsonObject:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


def _query(name: str, text: str) -> JsonObject:
    return {"name": name, "in": "query", "description": text, "schema": _TEXT}
