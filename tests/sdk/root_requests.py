"""The same requests at two places: at an agent's base on a hub, and at the root of its own server.

`looks` and `rubbish` are made from the list of dialects; `talks` are conversations, each dialect's in its own words.
Streams are of one word: how many are told at once, where they follow each other fast, is chance.
`alike` takes out what may differ: ids, times, and where the agent is.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Level
from tests.support.served_agent import AGENT_ID

JSON: Final = {"Content-Type": "application/json"}
V10: Final = {"A2A-Version": "1.0"}
_numbers = itertools.count(1)

Seen = Mapping[str, Any]  # what earlier answers of the same script said
Made = Callable[[Seen], Any]  # a body, from that


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request below the base; `body` may use what was seen before, `until` asks again until it is true."""

    path: str
    body: Made | None = None
    method: str = "POST"
    headers: Mapping[str, str] = {}
    stream: bool = False
    at_hub: bool = False  # the path is the hub's own
    until: Callable[[Any], bool] | None = None
    keeps: Callable[[Any], Any] | None = None  # what later requests call `task`


Script = list[Ask]


def looks(dialect: Dialect) -> Script:
    """Everything that can be had by a plain GET: cards, at the base and in the mount."""
    found = [
        Ask(method="GET", path=path, headers=headers)
        for route in dialect.routes
        if route.method == "GET" and route.level is not Level.HUB and "{" not in route.path
        for path in _paths(dialect, route.path, route.level)
        for headers in ({}, V10)
        if not path.endswith("/tasks")  # what other tests left there
    ]
    return found + [Ask(method="GET", path=path) for path in ("/", "/health")]


def rubbish(dialect: Dialect) -> Script:
    """What makes no sense, on every path of the dialect."""
    bodies: list[Any] = [
        b"[",
        {},
        [],
        {"jsonrpc": "2.0", "id": 1, "method": "no.such"},
        {"skill": "nobody", "input": {}},
    ]
    places = {
        (route.method, re.sub(r"\{\w+\}", "nobody", path))
        for route in dialect.routes
        if route.level is not Level.HUB
        for path in _paths(dialect, route.path, route.level)
    } | {("POST", "/"), ("POST", f"/{dialect.slug}"), ("POST", f"/{dialect.slug}/nothing"), ("PUT", "/")}
    return [
        Ask(method=method, path=path, body=(lambda _, body=body: body) if method != "GET" else None, headers=headers)
        for method, path in sorted(places)
        for body in (bodies if method == "POST" else bodies[:1])
        for headers in (JSON | V10,)
    ]


def talks(dialect: Dialect) -> Mapping[str, Script]:
    """The dialect's conversations, by name."""
    return TALKS[dialect.slug]


def _paths(dialect: Dialect, path: str, level: Level) -> Iterator[str]:
    if level is Level.BASE:
        yield path
    yield f"/{dialect.slug}{path}"


# -- conversations


def _rpc(method: str, params: Made, path: str = "/", headers: Mapping[str, str] = {}, **more: Any) -> Ask:
    def frame(seen: Seen) -> Any:
        return {"jsonrpc": "2.0", "id": f"r{next(_numbers)}", "method": method, "params": params(seen)}

    return Ask(path=path, body=frame, headers={**JSON, **headers}, **more)


def _result_id(answer: Any) -> Any:
    return answer["result"]["id"]


def _result_task(answer: Any) -> Any:
    return answer["result"]["task"]["id"]


def _task(answer: Any) -> Any:
    return answer["task"]["id"]


def _call(answer: Any) -> Any:
    return answer["call_id"]


def _has_begun(answer: Any) -> bool:
    return "started_at" in answer["timing"]


def _kinds(send: str, stream: str, get: str, cancel: str, name: str) -> Mapping[str, Script]:
    """A2A 0.3 and dotted."""

    def message(text: str, **into: str) -> Made:
        def made(seen: Seen) -> Any:
            said = {"kind": "message", "messageId": f"m{next(_numbers)}", "role": "user"}
            return {
                "message": {**said, "parts": [{"kind": "text", "text": text}], **{k: seen[v] for k, v in into.items()}}
            }

        return made

    def later(seen: Seen) -> Any:
        return {**message("slow")(seen), "configuration": {"blocking": False}}

    def the_task(seen: Seen) -> Any:
        return {name: seen["task"]}

    return {
        "send and get": [_rpc(send, message("hello"), keeps=_result_id), _rpc(get, the_task)],
        "fail": [_rpc(send, message("fail"))],
        "reject": [_rpc(send, message("reject"))],
        "ask and go on": [_rpc(send, message("ask"), keeps=_result_id), _rpc(send, message("blue", taskId="task"))],
        "stream": [_rpc(stream, message("hello"), stream=True)],
        "cancel": [_rpc(send, later, keeps=_result_id), _rpc(cancel, the_task), _rpc(get, the_task)],
    }


def _v10() -> Mapping[str, Script]:
    def message(text: str, **into: str) -> Made:
        def made(seen: Seen) -> Any:
            said = {"messageId": f"m{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": text}]}
            return {"message": {**said, **{k: seen[v] for k, v in into.items()}}}

        return made

    def later(seen: Seen) -> Any:
        return {**message("slow")(seen), "configuration": {"returnImmediately": True}}

    def the_task(seen: Seen) -> Any:
        return {"id": seen["task"]}

    def rest(path: str, made: Made | None, method: str = "POST", **more: Any) -> Ask:
        return Ask(path=path, body=made, method=method, headers={**(JSON if made else {}), **V10}, **more)

    return {
        "send and get": [
            _rpc("SendMessage", message("hello"), headers=V10, keeps=_result_task),
            _rpc("GetTask", the_task, headers=V10),
            _rpc("ListTasks", lambda _: {"contextId": "nobody"}, headers=V10, path="/a2a-1.0/"),
        ],
        "data to a skill": [
            _rpc(
                "SendMessage",
                lambda _: {
                    "message": {
                        "messageId": f"m{next(_numbers)}",
                        "role": "ROLE_USER",
                        "parts": [{"data": {"a": 2, "b": 3}}],
                        "metadata": {"skill": "add"},
                    }
                },
                headers=V10,
            )
        ],
        "fail": [_rpc("SendMessage", message("fail"), headers=V10)],
        "ask and go on": [
            _rpc("SendMessage", message("ask"), headers=V10, keeps=_result_task),
            _rpc("SendMessage", message("blue", taskId="task"), headers=V10),
        ],
        "stream": [_rpc("SendStreamingMessage", message("hello"), headers=V10, stream=True)],
        "cancel": [
            _rpc("SendMessage", later, headers=V10, keeps=_result_task),
            _rpc("CancelTask", the_task, headers=V10),
            _rpc("GetTask", the_task, headers=V10),
        ],
        "over HTTP": [
            rest("/message:send", message("hello"), keeps=_task),
            rest("/tasks/{task}", None, "GET"),
            rest("/message:stream", message("hello"), stream=True),
            rest("/a2a-1.0/message:send", later, keeps=_task),
            rest("/tasks/{task}:cancel", lambda _: {}),
        ],
    }


def _v03_rest() -> Script:
    def message(text: str) -> Made:
        return lambda _: {
            "message": {"messageId": f"m{next(_numbers)}", "role": "ROLE_USER", "content": [{"text": text}]},
            "configuration": {"blocking": True},
        }

    return [
        Ask(path="/v1/message:send", body=message("hello"), headers=JSON, keeps=_task),
        Ask(method="GET", path="/v1/tasks/{task}"),
        Ask(path="/v1/message:stream", body=message("hello"), headers=JSON, stream=True),
    ]


def _agentvault() -> Mapping[str, Script]:
    def message(text: str, **into: str) -> Made:
        said = {"role": "user", "parts": [{"type": "text", "content": text}]}
        return lambda seen: {"message": said, **{k: seen[v] for k, v in into.items()}}

    def the_task(seen: Seen) -> Any:
        return {"id": seen["task"]}

    def ends(answer: Any) -> bool:
        return answer["result"]["state"] not in ("SUBMITTED", "WORKING")

    def completes(answer: Any) -> bool:
        return answer["result"]["state"] == "COMPLETED"

    talks: dict[str, Script] = {}
    for path in ("/", "/agentvault/"):
        talks[f"send and get at {path}"] = [
            _rpc("tasks/send", message("hello"), path, keeps=_result_id),
            _rpc("tasks/get", the_task, path, until=ends),
        ]
    return talks | {
        "fail": [_rpc("tasks/send", message("fail"), keeps=_result_id), _rpc("tasks/get", the_task, until=ends)],
        "ask and go on": [
            _rpc("tasks/send", message("ask"), keeps=_result_id),
            _rpc("tasks/get", the_task, until=ends),
            _rpc("tasks/send", message("blue", id="task")),
            _rpc("tasks/get", the_task, until=completes),
        ],
        "cancel": [
            _rpc("tasks/send", message("slow"), keeps=_result_id),
            _rpc("tasks/cancel", the_task),
            _rpc("tasks/get", the_task, until=ends),
        ],
        "subscribe": [
            _rpc("tasks/send", message("ask"), keeps=_result_id),
            _rpc("tasks/get", the_task, until=ends),
            _rpc("tasks/cancel", the_task),
            _rpc("tasks/sendSubscribe", the_task, stream=True),
        ],
    }


def _directory() -> Mapping[str, Script]:
    def task(text: str, action: str = "chat") -> Made:
        return lambda _: {
            "taskId": f"t{next(_numbers)}",
            "action": action,
            "sender": "tester",
            "input": {"text": text} if action == "chat" else {"a": 2, "b": 5},
        }

    return {
        "task": [_rpc("a2a/task", task("hello")), _rpc("a2a/task", task("", "add"), "/directory/")],
        "fail": [_rpc("a2a/task", task("fail"))],
        "ask": [_rpc("a2a/task", task("ask"))],
        "stream": [_rpc("a2a/stream", task("hello"), stream=True)],
        "cancel of what nobody sent": [_rpc("a2a/cancel", lambda _: {"taskId": "nobody"})],
    }


def _platform() -> Mapping[str, Script]:
    def call(skill: str | None, given: Any, **more: Any) -> Made:
        return lambda _: {**({"skill": skill} if skill else {}), "input": given, **more}

    def at(path: str, made: Made, **more: Any) -> Ask:
        return Ask(path=path, body=made, headers=JSON, **more)

    named = {"target_agent_id": AGENT_ID}
    return {
        "call": [
            at("/platform/", call("add", {"a": 1, "b": 2})),
            at("/", call("add", {"a": 1})),
            at("/platform", call(None, {"text": "hello"})),
            at("/v1/a2a/call", call("add", {"a": 4}, **named), at_hub=True),
        ],
        "refused input": [at("/platform/", call("add", {"a": "x"})), at("/platform/", call("nobody", {}))],
        "fail": [at("/platform/", call("chat", {"text": "fail"}))],
        "stream": [
            Ask(
                path="/v1/a2a/call/stream",
                body=call("chat", {"text": "hello"}, **named),
                headers=JSON,
                stream=True,
                at_hub=True,
            )
        ],
        "cancel": [
            at("/v1/a2a/call/async", call("chat", {"text": "slow"}, **named), at_hub=True, keeps=_call),
            Ask(method="GET", path="/v1/a2a/call/{task}/status", at_hub=True, until=_has_begun),
            at("/v1/a2a/call/{task}/cancel", lambda _: {}, at_hub=True),
            Ask(method="GET", path="/v1/a2a/call/{task}/status", at_hub=True),
        ],
    }


def _envelope() -> Mapping[str, Script]:
    def message(kind: str, payload: Made) -> Made:
        return lambda seen: {
            "version": "1.0.0",
            "message_id": str(UUID(int=next(_numbers), version=4)),
            "timestamp": _time(0),
            "from": seen["caller"],
            "to": seen["uuid"],
            "type": kind,
            "payload": payload(seen),
            "signature": None,
        }

    def task(name: str, text: str) -> Made:
        return lambda seen: {
            "task_id": f"{name}-{seen['run']}",
            "task_type": "chat",
            "title": "A task",
            "description": "Something to do",
            "payload": {"text": text},
            "deadline": _time(60),
        }

    def post(kind: str, payload: Made, path: str = "/a2a/messages") -> Ask:
        return Ask(path=path, body=message(kind, payload), headers=JSON)

    mail = Ask(
        method="GET",
        path="/a2a/messages?agent={caller}&after=0&wait=1",
        at_hub=True,
        until=lambda answer: any(each["type"] == "task_completion" for each in answer["messages"]),
    )
    return {
        "ping": [post("ping", lambda _: {"nonce": "n", "echo": [1]})],
        "assign and report": [post("task_assignment", task("done", "hello")), mail],
        "assign at the mount": [post("task_assignment", task("mount", "fail"), "/envelope/a2a/messages"), mail],
        "cancel": [
            post("task_assignment", task("slow", "slow")),
            post("status_update", lambda seen: {"task_id": f"slow-{seen['run']}", "status": "cancelled"}),
        ],
    }


def _time(later_s: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=later_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


TALKS: Final[Mapping[str, Mapping[str, Script]]] = {
    "a2a-1.0": _v10(),
    "a2a-0.3": {
        **_kinds("message/send", "message/stream", "tasks/get", "tasks/cancel", "id"),
        "over HTTP": _v03_rest(),
    },
    "dotted": _kinds("message.send", "message.stream", "task.get", "task.cancel", "taskId"),
    "agentvault": _agentvault(),
    "directory": _directory(),
    "platform": _platform(),
    "envelope": _envelope(),
}
assert set(TALKS) == set(DIALECTS)


# -- what may differ

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_ID: Final = re.compile(
    r"\b(?:[a-z0-9_]+[_-])?(?:[0-9a-hjkmnp-tv-z]{10}[0-9A-Za-z]{22}|[0-9a-f]{32}|[0-9a-f]{16})\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
_OWN: Final = re.compile(r"\b[rmt]\d{1,6}\b")
_SERVER: Final = re.compile(r"http://(?:localhost|127\.0\.0\.1):\d+")
_LASTS: Final = re.compile(r'("(?:[a-z_]*_ms|durationMs|executionTimeMs|estimated[A-Za-z_]*)": ?)\d+(?:\.\d+)?')
_SIGNED: Final = re.compile(r'"(protected|signature)":"[A-Za-z0-9_-]+"')  # each signs with a key of its own


def alike(body: bytes, base: str) -> str:
    """A body without what may differ between two bases; ids are numbered in the order in which they come."""
    text = _LASTS.sub(r"\1<ms>", _SERVER.sub("<server>", _TIME.sub("<time>", body.decode())))
    text = _SIGNED.sub(r'"\1":"<signed>"', text)
    if base:
        text = re.sub(rf"(?<!/v1){base}(/|\")", r"\1", text)
    known: dict[str, str] = {}
    for pattern in (_ID, _OWN):
        text = pattern.sub(lambda found: known.setdefault(found[0], f"<id {len(known) + 1}>"), text)
    return text


def told(stream: bytes, base: str) -> list[str]:
    """The frames of a stream, what may differ taken out."""
    return [frame for frame in alike(stream, base).split("\n\n") if frame and not frame.startswith(":")]
