"""The table of expectations: one line for everything that can be asked of a hub, by the names of `support/reach.py`.

Whatever is served and has no line here fails the tests; so does a line for what is not served. A line says who may ask
(`access`), what of somebody's the request names by an id (`names`), and how it is asked: the body, or the params of a
JSON-RPC method. ID stands for the id, AGENT for an agent's, SENDER for the agent that the caller is.
"""

from typing import Any, Final

import msgspec

PUBLIC: Final = "public"  # no credential is looked at
CARD: Final = "card"  # strangers may look, to learn how to call; a wrong credential is refused all the same
ANY: Final = "any"  # whoever has a credential
CALL, REGISTER, RECEIVE, ADMIN = "a2a:call", "a2a:register", "a2a:receive", "a2a:admin"

TASK, CONTEXT, AGENT, KEY = "task", "context", "agent", "key"
DELIVERY, SESSION, FILE = "delivery", "session", "file"
CONFIG: Final = "cfg-1"  # the push configuration that a task has


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of one thing that can be asked."""

    access: str
    names: str = ""
    body: Any = None
    query: str = ""
    ends: bool = False  # it ends what it names, or changes it: asked of one's own only at the end


def _said(kind: str) -> dict[str, Any]:
    """A message into a task, in one of the three spellings."""
    message = {"messageId": "m", "taskId": "ID"}
    if kind == "1.0":
        return {"message": {**message, "role": "ROLE_USER", "parts": [{"text": "x"}]}}
    if kind == "rest 0.3":
        return {"message": {**message, "role": "ROLE_USER", "content": [{"text": "x"}]}}
    return {"message": {**message, "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "x"}]}}


_CALL: Final = {"skill": "echo", "input": {}, "target_agent_id": "AGENT", "context": {"continue_call_id": "ID"}}
_VAULT: Final = {"id": "ID", "message": {"role": "user", "parts": [{"type": "text", "content": "x"}]}}
_URL: Final = "https://client.example/hook"
_WORK: Final[dict[str, Any]] = {"taskId": "t-1", "action": "echo", "sender": "me", "input": {}}
_ENTRY: Final = {"agentId": "new-1", "name": "New", "capabilities": ["echo"], "endpoint": "https://agent.example/"}
_CARD: Final = {"agent_card": {"id": "new-2", "name": "New", "version": "1.0.0", "supported_tasks": ["listen"]}}
_VAULT_CARD: Final = {
    "card_data": {
        "schemaVersion": "1.0",
        "humanReadableId": "tests/new-3",
        "agentVersion": "1.0.0",
        "name": "New",
        "description": "New",
        "url": "https://agent.example/a2a",
        "provider": {"name": "tests"},
        "capabilities": {"a2aVersion": "1.0"},
        "authSchemes": [{"scheme": "none"}],
    }
}
_CANCELLED: Final = {
    "version": "1.0.0",
    "message_id": "00000000-0000-4000-8000-000000000001",
    "timestamp": "2024-02-05T15:30:00Z",
    "from": "SENDER",
    "to": "AGENT",
    "type": "status_update",
    "payload": {"task_id": "ID", "status": "cancelled"},
}


def _of_task(body: Any = None, **more: Any) -> Line:
    return Line(access=CALL, names=TASK, body=body, **more)


EXPECTED: Final[dict[str, Line]] = {
    # -- A2A 1.0, by paths and by methods
    "a2a-1.0 send": _of_task(_said("1.0"), ends=True),
    "a2a-1.0 stream": _of_task(_said("1.0"), ends=True),
    "a2a-1.0 cancel": _of_task({}, ends=True),
    "a2a-1.0 subscribe": _of_task(),
    "a2a-1.0 list": Line(access=CALL, names=CONTEXT, query="contextId=ID"),
    "a2a-1.0 get": _of_task(),
    "a2a-1.0 push-create": _of_task({"url": _URL}),
    "a2a-1.0 push-list": _of_task(),
    "a2a-1.0 push-get": _of_task(),
    "a2a-1.0 push-delete": _of_task(ends=True),
    "a2a-1.0 extended": Line(access=ANY, names=AGENT),
    "a2a-1.0 card": Line(access=CARD, names=AGENT),
    "a2a-1.0 CancelTask": _of_task({"id": "ID"}, ends=True),
    "a2a-1.0 CreateTaskPushNotificationConfig": _of_task({"taskId": "ID", "url": _URL}),
    "a2a-1.0 DeleteTaskPushNotificationConfig": _of_task({"taskId": "ID", "id": CONFIG}, ends=True),
    "a2a-1.0 GetExtendedAgentCard": Line(access=ANY, names=AGENT, body={}),
    "a2a-1.0 GetTask": _of_task({"id": "ID"}),
    "a2a-1.0 GetTaskPushNotificationConfig": _of_task({"taskId": "ID", "id": CONFIG}),
    "a2a-1.0 ListTaskPushNotificationConfigs": _of_task({"taskId": "ID"}),
    "a2a-1.0 ListTasks": Line(access=CALL, names=CONTEXT, body={"contextId": "ID"}),
    "a2a-1.0 SendMessage": _of_task(_said("1.0"), ends=True),
    "a2a-1.0 SendStreamingMessage": _of_task(_said("1.0"), ends=True),
    "a2a-1.0 SubscribeToTask": _of_task({"id": "ID"}),
    # -- A2A 0.3, by paths and by methods
    "a2a-0.3 card": Line(access=CARD, names=AGENT),
    "a2a-0.3 rest_send": _of_task(_said("rest 0.3"), ends=True),
    "a2a-0.3 rest_stream": _of_task(_said("rest 0.3"), ends=True),
    "a2a-0.3 rest_subscribe": _of_task(),
    "a2a-0.3 rest_cancel": _of_task({}, ends=True),
    "a2a-0.3 rest_get": _of_task(),
    "a2a-0.3 rest_push_set": _of_task({"config": {"pushNotificationConfig": {"url": _URL}}}),
    "a2a-0.3 rest_push_list": _of_task(),
    "a2a-0.3 rest_push_get": _of_task(),
    "a2a-0.3 rest_push_delete": _of_task(ends=True),
    "a2a-0.3 rest_card": Line(access=CARD, names=AGENT),
    "a2a-0.3 agent/getAuthenticatedExtendedCard": Line(access=ANY, names=AGENT, body={}),
    "a2a-0.3 message/send": _of_task(_said("0.3"), ends=True),
    "a2a-0.3 message/stream": _of_task(_said("0.3"), ends=True),
    "a2a-0.3 tasks/cancel": _of_task({"id": "ID"}, ends=True),
    "a2a-0.3 tasks/get": _of_task({"id": "ID"}),
    "a2a-0.3 tasks/pushNotificationConfig/delete": _of_task(
        {"id": "ID", "pushNotificationConfigId": CONFIG}, ends=True
    ),
    "a2a-0.3 tasks/pushNotificationConfig/get": _of_task({"id": "ID", "pushNotificationConfigId": CONFIG}),
    "a2a-0.3 tasks/pushNotificationConfig/list": _of_task({"id": "ID"}),
    "a2a-0.3 tasks/pushNotificationConfig/set": _of_task({"taskId": "ID", "pushNotificationConfig": {"url": _URL}}),
    "a2a-0.3 tasks/resubscribe": _of_task({"id": "ID"}),
    # -- AgentVault
    "agentvault card": Line(access=CARD, names=AGENT),
    "agentvault cards": Line(access=ANY),
    "agentvault create": Line(access=REGISTER, body=_VAULT_CARD),
    "agentvault by-hri": Line(access=ANY, names=AGENT, query="hri=tests/ID"),
    "agentvault by-name": Line(access=ANY, names=AGENT),
    "agentvault record": Line(access=ANY, names=AGENT),
    "agentvault change": Line(access=REGISTER, names=AGENT, body={"is_active": False}, ends=True),
    "agentvault delete": Line(access=REGISTER, names=AGENT, ends=True),
    "agentvault validate": Line(access=ANY, body=_VAULT_CARD),
    "agentvault tasks/cancel": _of_task({"id": "ID"}, ends=True),
    "agentvault tasks/get": _of_task({"id": "ID"}),
    "agentvault tasks/send": _of_task(_VAULT, ends=True),
    "agentvault tasks/sendSubscribe": _of_task({"id": "ID"}),
    # -- envelopes
    "envelope messages": Line(access=RECEIVE, names=TASK, body=_CANCELLED, ends=True),
    "envelope mailbox": Line(access=CALL, names=AGENT, query="agent=ID"),
    "envelope card": Line(access=CARD, names=AGENT),
    # -- the directory; its callers name their tasks themselves
    "directory register": Line(access=REGISTER, body=_ENTRY),
    "directory discover": Line(access=ANY, body={"capabilities": ["echo"]}),
    "directory task": Line(access=CALL, body={"jsonrpc": "2.0", "id": "1", "method": "a2a/task", "params": _WORK}),
    "directory agents": Line(access=ANY),
    "directory agent": Line(access=ANY, names=AGENT),
    "directory a2a/register": Line(access=REGISTER, body=_ENTRY),
    "directory a2a/discover": Line(access=ANY, body={"capabilities": ["echo"]}),
    "directory a2a/task": Line(access=CALL, body=_WORK),
    "directory a2a/events": Line(access=CALL, body={}),
    "directory a2a/cancel": _of_task({"taskId": "ID"}, ends=True),
    "directory a2a/stream": Line(access=CALL, body=_WORK),
    # -- the platform
    "platform call": _of_task(_CALL, ends=True),
    "platform async": _of_task(_CALL, ends=True),
    "platform stream": _of_task(_CALL, ends=True),
    "platform status": _of_task(),
    "platform replay": _of_task(),
    "platform cancel": _of_task({}, ends=True),
    "platform rating": _of_task({"rating": 5}),
    "platform registry": Line(access=REGISTER, body=_CARD),
    "platform discover": Line(access=ANY),
    "platform card": Line(access=ANY, names=AGENT),
    # -- dotted
    "dotted card": Line(access=CARD, names=AGENT),
    "dotted message.send": _of_task(_said("dotted"), ends=True),
    "dotted message.stream": _of_task(_said("dotted"), ends=True),
    "dotted task.cancel": _of_task({"taskId": "ID"}, ends=True),
    "dotted task.get": _of_task({"taskId": "ID"}),
    # -- MCP
    "mcp initialize": Line(access=ANY, body={"protocolVersion": "2025-11-25", "capabilities": {}}),
    "mcp ping": Line(access=ANY, body={}),
    "mcp tools/list": Line(access=ANY, body={}),
    "mcp tools/call": _of_task({"name": "dragoman__answer", "arguments": {"call_id": "ID", "message": "x"}}, ends=True),
    "GET /mcp": Line(access=CALL),
    "DELETE /mcp": Line(access=ANY),
    # -- pages
    "GET /": Line(access=PUBLIC),
    "GET /healthz": Line(access=PUBLIC),
    "GET /readyz": Line(access=PUBLIC),
    "GET /health": Line(access=PUBLIC),
    "GET /openapi.json": Line(access=PUBLIC),
    "GET /docs": Line(access=PUBLIC),
    "GET /llms.txt": Line(access=PUBLIC),
    "GET /schemas/agent-card/v1": Line(access=PUBLIC),
    "GET /.well-known/jwks.json": Line(access=PUBLIC),
    "GET /.well-known/oauth-authorization-server": Line(access=PUBLIC),
    "GET /.well-known/oauth-protected-resource": Line(access=PUBLIC),
    "POST /oauth/token": Line(access=PUBLIC),
    "GET /agents/.well-known/agent-card.json": Line(access=PUBLIC),
    "GET /agents/.well-known/agent.json": Line(access=PUBLIC),
    "GET /agents/{agent}": Line(access=CARD, names=AGENT),
    "GET /agents/{agent}/health": Line(access=CARD, names=AGENT),
    "GET /files/{file}": Line(access=ANY, names=FILE),
    "GET /v1/agents": Line(access=ANY),
    "GET /v1/agents/{agent}": Line(access=ANY, names=AGENT),
    "PATCH /v1/agents/{agent}": Line(access=REGISTER, names=AGENT, body={"status": "paused"}, ends=True),
    "DELETE /v1/agents/{agent}": Line(access=REGISTER, names=AGENT, ends=True),
    "GET /v1/agents/{agent}/versions": Line(access=ANY, names=AGENT),
    "GET /v1/agents/{agent}/probe": Line(access=ANY, names=AGENT),
    "POST /v1/agents/{agent}/probe": Line(access=REGISTER, names=AGENT, body={}),
    "POST /v1/agents/connect": Line(access=RECEIVE, names=SESSION, body={"session_id": "ID"}),
    "GET /v1/agents/connect": Line(access=RECEIVE, names=SESSION, query="session=ID"),
    "DELETE /v1/agents/connect": Line(access=RECEIVE, names=SESSION, query="session=ID", ends=True),
    "POST /v1/agents/calls/{call}/events": Line(
        access=RECEIVE,
        names=SESSION,
        body={"session_id": "ID", "attempt": 1, "events": [{"n": 1, "event": "status", "data": {}}]},
    ),
    "GET /v1/calls": Line(access=CALL, names=CONTEXT, query="conversation=ID"),
    "GET /v1/calls/feed": Line(access=CALL),
    "GET /v1/calls/series": Line(access=CALL),
    "GET /v1/traces": Line(access=CALL),
    "GET /v1/traces/{trace}": _of_task(),
    "GET /v1/calls/{call}": _of_task(),
    "GET /v1/calls/{call}/events": _of_task(),
    "GET /v1/calls/{call}/stream": _of_task(),
    "POST /v1/calls/{call}/cancel": _of_task({}, ends=True),
    "DELETE /v1/calls/{call}": _of_task(ends=True),
    "DELETE /v1/calls": Line(access=ADMIN, names=CONTEXT, query="context=ID", ends=True),
    "GET /v1/keys": Line(access=ADMIN),
    "POST /v1/keys": Line(access=ADMIN, body={}),
    "PATCH /v1/keys/{key}": Line(access=ADMIN, names=KEY, body={"rate_limits": None}),
    "POST /v1/keys/{key}/rotate": Line(access=ADMIN, names=KEY, body={}),
    "DELETE /v1/keys/{key}": Line(access=ADMIN, names=KEY, ends=True),
    "GET /v1/signing-keys": Line(access=ADMIN),
    "POST /v1/signing-keys/rotate": Line(access=ADMIN, body={}),
    "GET /v1/calls/usage": Line(access=CALL),
    "GET /v1/deliveries": Line(access=CALL),
    "POST /v1/deliveries/replay": Line(access=CALL, names=DELIVERY, body={"ids": ["ID"]}),
    "POST /v1/deliveries/{delivery}/replay": Line(access=CALL, names=DELIVERY, body={}),
    "PATCH /v1/deliveries/{delivery}": Line(access=CALL, names=DELIVERY, body={"enabled": False}, ends=True),
    "GET /v1/settings": Line(access=ADMIN),
    "PATCH /v1/settings/log": Line(access=ADMIN, body={"level": "info"}),
    "GET /metrics": Line(access=PUBLIC),  # on a loopback host; elsewhere for administrators
    "GET /v1/audit": Line(access=ADMIN),
    "GET /v1/audit/verify": Line(access=ADMIN),
    # -- WebSockets
    "ws /v1/agents/connect": Line(access=RECEIVE, names=SESSION, query="session=ID"),
    "ws /a2a/messages/ws": Line(access=CALL, names=AGENT, query="agent=ID"),
    "ws /a2a/a2a/messages/ws": Line(access=CALL, names=AGENT, query="agent=ID"),
}
