"""The hub's API as people and language models read it, made from its OpenAPI description: a page and a plain text."""

from collections.abc import Iterator
from html import escape
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.server.pages.sheet import block, code, link, sheet

_DIALECTS: Final = (
    ("platform", "/v1/a2a/…", "one call, its stream, its status; discovery and registration"),
    ("envelope", "/a2a/messages, /a2a/messages/ws", "messages between agents, mailboxes"),
    ("directory", "/a2a, /a2a/register, /a2a/discover, /a2a/task", "a directory of agents, and tasks for them"),
    ("dotted", "POST /, /agents/{id}/", "JSON-RPC with message.send, task.get, task.cancel"),
    ("agentvault", "POST /, /agents/{id}/, /api/v1/agent-cards", "JSON-RPC with tasks/send; its registry"),
    ("a2a-0.3", "POST /, /agents/{id}/, …/v1/message:send", "the A2A protocol, version 0.3"),
    ("a2a-1.0", "POST /, /agents/{id}/, …/message:send", "the A2A protocol, version 1.0"),
    ("mcp", "/mcp", "the Model Context Protocol: every skill as a tool"),
)
_CALL: Final = """curl {hub}/v1/a2a/call \\
  -H "Content-Type: application/json" -H "Authorization: Bearer $DRAGOMAN_TOKEN" \\
  -d '{{"skill": "brief", "input": {{"topic": "tides"}}}}'"""
_WORKFLOW: Final = """curl {hub}/v1/a2a/call \\
  -H "Content-Type: application/json" -H "Authorization: Bearer $DRAGOMAN_TOKEN" \\
  -d '{{"skill": "web_search", "input": {{"query": "tides", "max_results": 3}},
       "then": [{{"skill": "summarize", "input": {{"content": {{"$from": "0#/results/0/snippet"}}}}}}]}}'"""


def reference_html(document: JsonObject) -> str:
    """The page."""
    hub = _hub_of(document)
    body = [
        "<h1>Dragoman: the API</h1>",
        f'<p class="soft">version {escape(str(document["info"]["version"]))} · {escape(hub)}</p>',
        f"<p>{escape(str(document['info']['description']))}</p>",
        f"<nav>{link('/', 'status')}{link('/openapi.json', 'OpenAPI')}{link('/llms.txt', 'plain text')}</nav>",
        "<h2>Where each dialect is spoken</h2>",
        '<div class="wide"><table><tr><th>dialect</th><th>where</th><th>what</th></tr>',
        *(
            f"<tr><td>{code(name)}</td><td>{escape(at)}</td><td>{escape(what)}</td></tr>"
            for name, at, what in _DIALECTS
        ),
        "</table></div>",
        "<h2>One call, with the demo agents of dragoman dev</h2>",
        block(_CALL.format(hub=hub)),
        "<h2>One call whose result goes on to another agent</h2>",
        block(_WORKFLOW.format(hub=hub)),
        "<h2>Every path</h2>",
        *_paths_html(document),
    ]
    return sheet("Dragoman: the API", body)


def reference_text(document: JsonObject) -> str:
    """The same in plain words, for language models."""
    hub = _hub_of(document)
    lines = [
        f"# Dragoman {document['info']['version']}",
        "",
        f"> {document['info']['description']}",
        "",
        f"The hub is at {hub}. Callers show a key: `Authorization: Bearer ap_…`; a hub with auth none asks nobody.",
        "",
        "## Where each dialect is spoken",
        *(f"- {name}: {at} ({what})" for name, at, what in _DIALECTS),
        "",
        "## One call, with the demo agents of dragoman dev",
        "```bash",
        _CALL.format(hub=hub),
        "```",
        "",
        "## One call whose result goes on to another agent",
        "```bash",
        _WORKFLOW.format(hub=hub),
        "```",
        "",
        "## Every path",
        *(
            f"- {method} {path}: {_summary(operation)}{_takes(operation)}"
            for method, path, operation in _operations(document)
        ),
        "",
        f"The whole description, with all schemas: {hub}/openapi.json",
        "",
    ]
    return "\n".join(lines)


def _paths_html(document: JsonObject) -> Iterator[str]:
    for method, path, operation in _operations(document):
        yield f"<h3>{code(f'{method} {path}')}</h3>"
        yield f"<p>{escape(_summary(operation))}</p>"
        named = [each for each in _list(operation.get("parameters")) if is_object(each)]
        if named:
            yield '<div class="wide"><table>'
            for each in named:
                yield f"<tr><td>{code(str(each['name']))}</td><td>{escape(str(each.get('description', '')))}</td></tr>"
            yield "</table></div>"
        body = _body_schema(operation)
        if body is not None:
            schema = document["components"]["schemas"].get(body)
            yield f"<details><summary>body: {escape(body)}</summary>{block(_pretty(schema))}</details>"


def _operations(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _summary(operation: JsonObject) -> str:
    return str(operation.get("summary", ""))


def _takes(operation: JsonObject) -> str:
    """The names that a request may carry."""
    names = [
        str(each["name"]) for each in _list(operation.get("parameters")) if is_object(each) and each["in"] == "query"
    ]
    body = _body_schema(operation)
    said = ([f"query: {', '.join(names)}"] if names else []) + ([f"body: {body}"] if body is not None else [])
    return f" ({'; '.join(said)})" if said else ""


def _body_schema(operation: JsonObject) -> str | None:
    content: Json = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    reference = content.get("schema", {}).get("$ref") if is_object(content) else None
    return str(reference).rpartition("/")[2] if reference else None


def _list(value: Json) -> list[Json]:
    return value if is_array(value) else []


def _hub_of(document: JsonObject) -> str:
    return str(document["servers"][0]["url"])


def _pretty(value: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
