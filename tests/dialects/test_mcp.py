"""MCP's words without a wire: what servers answer, what clients are told, and rubbish in both."""

import contextlib
import json
from base64 import b64decode
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.dialects.dialect import Outgoing, Verb
from dragoman.dialects.mcp import DIALECT
from dragoman.dialects.mcp.content import block_of, parts_of
from dragoman.dialects.mcp.greeting import Greeting
from dragoman.dialects.mcp.introduction import MOST_PAGES, Introduction
from dragoman.dialects.mcp.outbound import progressed
from dragoman.dialects.mcp.protocol import ALONE, SESSIONS, header_value
from dragoman.dialects.mcp.results import CallFrames, Finish, Place, place_bytes, read_place, result_of
from dragoman.dialects.mcp.tools import parts_given, tool_of
from dragoman.dialects.sse import SseEvent
from dragoman.model.agent import Agent, AgentCard, Endpoint, Skill
from dragoman.model.content import Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import BadAgentReply, BadParams, DragomanError, InputRefused
from dragoman.model.events import Happened, StatusChanged
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.states import TaskState
from dragoman.model.task import Snapshot, Task
from dragoman.model.tool_inputs import IN_WORDS
from tests.dialects.goldens import BASE

AT: Final = datetime(2026, 1, 12, 10, tzinfo=UTC)
URL: Final = "http://agent.test/mcp"
JSON: Final = {b"content-type": b"application/json"}
EVENTS: Final = {b"content-type": b"text/event-stream"}
TASK: Final = msgspec.convert(BASE, Task)
FEW: Final = settings(max_examples=25)


def outgoing(verb: Verb = Verb.SEND, version: str = SESSIONS[-1], **more: Any) -> Outgoing:
    """A call of the skill `search`."""
    message = Message(id="m", role=Role.USER, parts=(Data(value={"q": 1}),))
    endpoint = Endpoint(dialect="mcp", url=URL, version=version)
    return Outgoing(verb=verb, task=TASK, asked=TASK.asked, endpoint=endpoint, at=AT, message=message, **more)


def answered(result: Any, **more: Any) -> HttpReply:
    """A reply with that result."""
    said = {"jsonrpc": "2.0", "id": TASK.id, **({"result": result} if result is not None else {}), **more}
    return HttpReply(status=200, headers=JSON, body=json.dumps(said).encode())


def heard(reply: HttpReply, version: str = SESSIONS[-1], **more: Any) -> Any:
    """The last event of what a reply says."""
    return DIALECT.hear(outgoing(version=version, **more), reply, AT).events[-1]


# -- asking


def test_a_request_that_stands_alone_says_everything_twice() -> None:
    request = DIALECT.ask(outgoing(version=ALONE[-1]))
    assert request is not None
    body = json.loads(request.body)
    assert request.headers[b"mcp-method"] == b"tools/call"
    assert request.headers[b"mcp-name"] == b"search"
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == ALONE[-1]
    assert body["params"]["arguments"] == {"q": 1}
    assert DIALECT.ask(outgoing(Verb.CANCEL, ALONE[-1])) is None


def test_a_call_of_a_session_is_cancelled_by_its_id() -> None:
    sent, cancelled = DIALECT.ask(outgoing()), DIALECT.ask(outgoing(Verb.CANCEL, reason="enough"))
    assert sent is not None
    assert cancelled is not None
    assert json.loads(cancelled.body)["params"] == {"requestId": json.loads(sent.body)["id"], "reason": "enough"}
    assert "id" not in json.loads(cancelled.body)
    assert DIALECT.ask(outgoing(Verb.GET)) is None


@pytest.mark.parametrize("name", ["search", "a b", " edge", "süß", "=?base64?x?=", "a\nb"])
def test_a_name_in_a_header_can_be_read_again(name: str) -> None:
    value = header_value(name)
    assert value.isascii() and b"\n" not in value
    wrapped = value.startswith(b"=?base64?")
    assert (b64decode(value[9:-2]).decode() if wrapped else value.decode()) == name
    assert wrapped is (name != "search" and name != "a b")


# -- hearing


def test_a_tools_failure_is_the_agents_and_its_words_are_kept() -> None:
    failed = heard(answered({"content": [{"type": "text", "text": "dry"}], "isError": True}))
    assert (failed.failure.code, failed.failure.message) == ("AGENT_ERROR", "dry")
    refused = heard(answered(None, error={"code": -32602, "message": "no such tool"}))
    assert (refused.failure.code, refused.failure.details) == ("VALIDATION_ERROR", {"agent_code": -32602})
    asking = heard(answered({"resultType": "input_required"}))
    assert asking.failure.code == "UNSUPPORTED_OPERATION"


def test_another_revision_and_a_session_that_is_over_can_be_mended() -> None:
    other = answered(None, error={"code": -32022, "message": "no", "data": {"supported": [*SESSIONS, *ALONE]}})
    with pytest.raises(BadAgentReply) as mended:
        heard(other)
    assert mended.value.details["try_version"] == ALONE[-1]
    gone = HttpReply(status=404, body=b"")
    with pytest.raises(BadAgentReply) as over:
        heard(gone, headers={b"mcp-session-id": b"s"})
    assert over.value.details["reopen"] is True
    with pytest.raises(BadAgentReply) as plain:
        heard(gone)
    assert "reopen" not in plain.value.details


def test_the_answer_is_found_among_the_events_of_a_reply() -> None:
    told: Any = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    final: Any = {"jsonrpc": "2.0", "id": TASK.id, "result": {"content": [], "structuredContent": {"n": 1}}}
    other: Any = {"jsonrpc": "2.0", "id": "another", "result": {"content": []}}
    asks: Any = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}}
    body = "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (told, other, asks, final))
    assert heard(HttpReply(status=200, headers=EVENTS, body=body.encode())).state is TaskState.COMPLETED
    cut = HttpReply(status=200, headers=EVENTS, body=b"event: message\ndata: {}")
    with pytest.raises(BadAgentReply):
        heard(cut)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMED = st.fixed_dictionaries(
    {},
    optional={
        name: ANY_JSON
        for name in ("jsonrpc", "id", "result", "error", "method", "params", "content", "structuredContent", "isError")
    },
)


@FEW
@given(st.integers(200, 599), NAMED | ANY_JSON, st.booleans())
def test_whatever_a_server_answers_is_understood_or_refused(status: int, value: Any, in_events: bool) -> None:
    body = json.dumps(value).encode()
    if in_events:
        body = b"data: " + body + b"\n\n"
    reply = HttpReply(status=status, headers=EVENTS if in_events else JSON, body=body)
    try:
        assert DIALECT.hear(outgoing(), reply, AT).events
    except DragomanError as error:
        assert isinstance(error, BadAgentReply)
    listen = DIALECT.listen
    assert listen is not None
    with contextlib.suppress(BadAgentReply):
        listen(outgoing()).hear(SseEvent("message", json.dumps(value).encode()), AT)


@FEW
@given(st.dictionaries(st.sampled_from(("progress", "total", "message")), ANY_JSON | st.just(10**400)))
def test_progress_is_a_share_or_nothing(params: dict[str, Any]) -> None:
    share = progressed(params, AT).progress
    assert share is None or 0 <= share <= 1


def test_structured_content_counts_before_words_and_files_stay() -> None:
    blocks: list[Any] = [
        {"type": "text", "text": "{}"},
        {"type": "image", "data": "AAA=", "mimeType": "image/png"},
        {"type": "image", "data": "not base64", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "https://a.test/f.pdf", "name": "f.pdf"},
        {"type": "resource_link", "uri": "note://only/here", "name": "n"},
        {"type": "resource", "resource": {"uri": "note://x/y.bin", "blob": "AQ=="}},
    ]
    kinds = [type(part) for part in parts_of({"content": blocks, "structuredContent": [1]})]
    assert kinds == [Data, Blob, Link, Blob]
    assert [type(part) for part in parts_of({"content": blocks})] == [Text, Blob, Link, Data, Blob]


@FEW
@given(
    st.lists(
        st.builds(Text, text=st.text(max_size=20))
        | st.builds(Blob, raw=st.binary(max_size=20), media_type=st.sampled_from(["image/png", "text/csv"]))
        | st.builds(Link, url=st.just("https://a.test/x"), filename=st.just("x")),
        max_size=4,
    )
)
def test_what_a_client_is_shown_says_the_same_when_it_is_read_again(parts: list[Part]) -> None:
    blocks = [block_of(part, n) for n, part in enumerate(parts, 1)]
    again = parts_of({"content": json.loads(json.dumps(blocks))})
    assert [msgspec.structs.replace(part, filename=None) for part in again] == [
        msgspec.structs.replace(part, filename=None) for part in parts
    ]


# -- a server introduces itself


class Told:
    """A server that answers by method, one answer after the other."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def reply(self, request: HttpRequest) -> HttpReply:
        """The next answer."""
        method = json.loads(request.body)["method"] if request.body else request.method
        self.asked.append(method)
        said = self.answers.get(method, [404])
        answer = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(answer, int):
            return HttpReply(status=answer)
        headers = {**JSON, b"mcp-session-id": b"s"} if method == "initialize" else JSON
        return HttpReply(status=200, headers=headers, body=json.dumps({"id": 1, "result": answer}).encode())

    def meet(self) -> Introduction:
        """The whole conversation."""
        talk = Introduction(URL)
        for _ in range(40):
            request = talk.ask()
            if request is None:
                return talk
            talk.hear(self.reply(request))
        raise AssertionError("it has no end")


TOOL: Final = {"name": "t", "inputSchema": {"type": "object"}}
HELLO: Final = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "Shed", "version": "1"}}
DISCOVERED: Final = {"supportedVersions": [*SESSIONS, *ALONE]}


def test_a_server_is_asked_as_it_speaks() -> None:
    new = Told({"server/discover": [DISCOVERED], "tools/list": [{"tools": [TOOL], "nextCursor": "2"}, {"tools": []}]})
    card = new.meet().card
    assert new.asked == ["server/discover", "tools/list", "tools/list"]
    assert card is not None
    assert (card["mcp"], card["tools"]) == (ALONE[-1], [TOOL])
    old = Told({"initialize": [HELLO], "notifications/initialized": [202], "tools/list": [{"tools": [TOOL]}]})
    read = DIALECT.read_card(old.meet().card or {})
    assert old.asked == ["server/discover", "initialize", "notifications/initialized", "tools/list", "DELETE"]
    assert (read.id, read.endpoints[0].version, read.skills[0].id) == ("agt_shed", "2025-06-18", "t")


def test_a_tool_that_wants_headers_is_asked_for_in_a_session() -> None:
    wants = {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"x-mcp-header": "A"}}}}
    both = Told({"server/discover": [DISCOVERED], "initialize": [HELLO], "tools/list": [{"tools": [wants]}]})
    card = both.meet().card
    assert card is not None
    assert card["mcp"] == "2025-06-18"


NO_SERVERS: Final[list[Any]] = [
    {"server/discover": [401]},
    {"initialize": [500]},
    {"initialize": [{"protocolVersion": "1999-01-01"}]},
    {"initialize": [HELLO], "tools/list": [500]},
    {"server/discover": [DISCOVERED], "tools/list": [{"tools": [], "nextCursor": "again"}]},
]


@pytest.mark.parametrize("answers", NO_SERVERS)
def test_what_cannot_be_an_mcp_server_is_told_so(answers: dict[str, list[Any]]) -> None:
    told = Told(answers)
    with pytest.raises(BadAgentReply):
        told.meet()
    assert len(told.asked) <= MOST_PAGES + 3


@FEW
@given(ANY_JSON | NAMED)
def test_a_card_is_read_or_refused(card: Any) -> None:
    with contextlib.suppress(BadParams):
        DIALECT.read_card({"mcp": ALONE[-1], "url": URL, "tools": [card]})
    with contextlib.suppress(BadParams):
        DIALECT.read_card({"mcp": card, "url": card, "tools": card, "serverInfo": card})


@FEW
@given(st.integers(200, 599), ANY_JSON)
def test_a_greeting_is_understood_or_refused(status: int, value: Any) -> None:
    greeting = Greeting(URL, {})
    try:
        greeting.hear(HttpReply(status=status, headers=JSON, body=json.dumps(value).encode()))
    except BadAgentReply:
        assert greeting.headers == {}


# -- to clients


def test_a_skill_without_a_schema_is_talked_to_in_words() -> None:
    card = AgentCard(id="a", name="A")
    agent = Agent(card=card, uuid="u", tenant="t", owner_id="o", registered_at=AT, updated_at=AT)
    for schema in (None, {}, {"type": "string"}):
        skill = Skill(id="s", name="s", input_schema=schema)
        assert tool_of(agent, skill)["inputSchema"] == IN_WORDS
        assert parts_given(skill, {"message": "hi"}) == (Text(text="hi"),)
        with pytest.raises(InputRefused):
            parts_given(skill, {})
    objects: list[Any] = [{"properties": {}}, {"type": ["object", "null"]}, {"anyOf": [{"type": "object"}]}]
    for schema in objects:
        tool = tool_of(agent, Skill(id="s", name="s", input_schema=schema, output_schema=schema))
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
    assert "outputSchema" not in tool_of(agent, Skill(id="s", name="s", output_schema={"type": "array"}))


@pytest.mark.parametrize("state", list(TaskState))
def test_every_end_of_a_call_is_a_result(state: TaskState) -> None:
    result = result_of(msgspec.structs.replace(TASK, state=state))
    assert result["isError"] is (state is not TaskState.COMPLETED)
    assert result["_meta"]["dragoman/call"] == {"id": TASK.id, "state": state.value}


def test_progress_only_grows() -> None:
    frames = CallFrames(Place(TASK.id, 0, 7, "p"), Finish(7, alone=False), primed=False)
    told: list[float] = []
    for seq, (share, words) in enumerate([(0.2, None), (0.1, None), (0.1, "back"), (None, "words"), (0.9, None)], 2):
        said = Message(id="w", role=Role.AGENT, parts=(Text(text=words),)) if words else None
        event = StatusChanged(at=AT, state=TaskState.WORKING, progress=share, message=said)
        frame = frames(Happened(seq=seq, event=event))
        told += [json.loads(frame.partition(b"data: ")[2])["params"]["progress"]] if frame else []
    assert len(told) == 4
    assert told == sorted(set(told))
    assert frames(Snapshot(task=TASK)) == b""


@FEW
@given(st.builds(Place, st.text(max_size=40), st.integers(0, 2**31), st.integers() | st.text(max_size=40)))
def test_a_place_is_found_again(place: Place) -> None:
    said = place_bytes(place)
    assert said.isascii() and b"\n" not in said
    assert read_place(said) == place


@FEW
@given(st.binary(max_size=60))
def test_rubbish_is_no_place(said: bytes) -> None:
    found = read_place(said)
    assert found is None or isinstance(found, Place)
