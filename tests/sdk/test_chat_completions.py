"""A model behind `/chat/completions`, spoken to over real sockets: whole, streamed, busy, refusing and broken."""

import contextlib
import json
import traceback
from collections.abc import Callable, Generator
from typing import Any

import pytest

from dragoman import Agent, models
from dragoman.ports.clock import SystemClock
from dragoman.sdk.run.chat import ChatCompletions
from dragoman.sdk.run.models import ModelMessage, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage, asked
from dragoman.sdk.testing.moved_clock import MovedClock
from tests.support.run import run
from tests.support.stub_server import StubHandler, on_free_port

KEY = "sk-planted-71f3"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
Say = Callable[[StubHandler], None]


class Server:
    """What it was asked, and where it is."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []


@contextlib.contextmanager
def serving(*answers: Say) -> Generator[Server]:
    server, left = Server(), list(answers)

    class Handler(StubHandler):
        def _serve(self) -> None:
            server.asked.append(json.loads(self.read_body()))
            server.headers.append(self.read_headers())
            server.paths.append(self.path)
            left.pop(0)(self)

        do_POST = _serve  # noqa: N815 - the name the parent calls

    with on_free_port(Handler) as url:
        server.url = f"{url}/v1"
        yield server


def whole(message: dict[str, Any], **more: Any) -> Say:
    body = {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE, **more}
    return lambda handler: handler.say_json(200, body)


def refused(status: int, message: str = "no", **headers: str) -> Say:
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.say(status, shown, json.dumps({"error": {"message": message}}).encode())


def streamed(*pieces: dict[str, Any] | str, usage: bool = True) -> Say:
    def say(handler: StubHandler) -> None:
        handler.begin_stream()
        for piece in pieces:
            body = piece if isinstance(piece, str) else json.dumps({"model": "m-1", "choices": [piece]})
            handler.wfile.write(f"data: {body}\n\n".encode())
        if usage:
            handler.wfile.write(f"data: {json.dumps({'choices': [], 'usage': USAGE})}\n\ndata: [DONE]\n\n".encode())

    return say


def page(handler: StubHandler) -> None:
    handler.say(200, {}, b"<html>")


def delta(**said: Any) -> dict[str, Any]:
    return {"delta": said, "finish_reason": None}


def call(index: int | None, name: str = "", arguments: Any = "", id: str = "") -> dict[str, Any]:
    return {
        **({} if index is None else {"index": index}),
        **({"id": id} if id else {}),
        "function": {**({"name": name} if name else {}), "arguments": arguments},
    }


def said_by(model: Any, request: ModelRequest | None = None) -> tuple[list[str], ModelReply]:
    """The pieces and the reply."""

    async def all_of_it() -> tuple[list[str], ModelReply]:
        got = [piece async for piece in asked(model, request or ModelRequest(messages=(user("hi"),)))]
        reply = got[-1]
        assert isinstance(reply, ModelReply)
        return [piece for piece in got if isinstance(piece, str)], reply

    return run(all_of_it())


def user(text: str) -> ModelMessage:
    return ModelMessage(role="user", text=text)


def test_a_request_says_all_that_a_model_is_asked() -> None:
    earlier = ToolCall(name="look", arguments={"q": "ü"}, id="c1")
    schema = {"type": "object", "properties": {"label": {"type": "string"}}}
    request = ModelRequest(
        instructions="Be brief.",
        messages=(
            user("hi"),
            ModelMessage(role="assistant", tool_calls=(earlier,)),
            ModelMessage(role="tool", text="found", tool_call_id="c1"),
        ),
        tools=(ToolSchema(name="look", description="Looks", input_schema={"type": "object"}),),
        output_schema=schema,
        final=True,
    )
    with serving(whole({"content": "ok"})) as server:
        said_by(models.chat_completions(server.url, "m", KEY), request)
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.asked == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q":"ü"}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "found"},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}},
                }
            ],
            "tool_choice": "none",
            "response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}},
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


def test_a_whole_answer_is_taken_from_a_server_that_does_not_stream() -> None:
    calls = [call(None, "look", '{"q": 1}', "c1"), call(None, "odd", {"already": "an object"}), call(None, "bad", "{")]
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    with serving(whole({"content": parts, "tool_calls": calls})) as server:
        pieces, reply = said_by(models.chat_completions(server.url, "m"))
    assert pieces == ["one two"]
    assert reply == ModelReply(
        text="one two",
        tool_calls=(
            ToolCall(name="look", arguments={"q": 1}, id="c1"),
            ToolCall(name="odd", arguments={"already": "an object"}, id="call_2"),
            ToolCall(name="bad", arguments="{", id="call_3"),
        ),
        usage=Usage(tokens=10, input_tokens=7, output_tokens=3),
        model="m-1",
    )
    assert "authorization" not in server.headers[0]


def test_a_streamed_answer_comes_in_pieces_with_its_tool_calls_put_together() -> None:
    pieces = (
        delta(role="assistant", content=""),
        delta(content="Hel"),
        delta(content="lo"),
        delta(tool_calls=[call(0, "look", "", "c1")]),
        delta(tool_calls=[call(0, arguments='{"q":'), call(1, "other", "{}", "c2")]),
        delta(tool_calls=[call(0, arguments='"x"}')]),
        {**delta(), "finish_reason": "tool_calls"},
    )
    with serving(streamed(*pieces)) as server:
        said, reply = said_by(models.chat_completions(server.url, "m"))
    assert said == ["Hel", "lo"]
    assert reply == ModelReply(
        text="Hello",
        tool_calls=(ToolCall(name="look", arguments={"q": "x"}, id="c1"), ToolCall(name="other", id="c2")),
        usage=Usage(tokens=10, input_tokens=7, output_tokens=3),
        model="m-1",
    )


@pytest.mark.parametrize(
    "pieces",
    [
        (delta(tool_calls=[call(None, "a", {}), call(None, "b", {})]),),  # whole, without numbers
        (delta(tool_calls=[call(0, "a", "{}", "c1")]), delta(tool_calls=[call(0, "b", "{}", "c2")])),  # all of them 0
    ],
)
def test_tool_calls_are_told_apart_however_they_are_numbered(pieces: tuple[dict[str, Any], ...]) -> None:
    with serving(streamed(*pieces)) as server:
        _, reply = said_by(models.chat_completions(server.url, "m"))
    assert [(each.name, each.arguments) for each in reply.tool_calls] == [("a", {}), ("b", {})]


def test_a_whole_run_goes_over_the_wire() -> None:
    def population(city: str) -> int:
        return len(city)

    first = streamed(delta(tool_calls=[call(0, "population", '{"city": "Oslo"}', "c1")]), delta())
    with serving(first, streamed(delta(content="four"))) as server:
        agent = Agent("Guide", "Count.", tools=[population], model=models.chat_completions(server.url, "m"))
        result = run(agent.arun("How many?"))
    assert result.content == "four"
    assert result.usage == Usage(tokens=20, input_tokens=14, output_tokens=6)
    assert server.asked[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "4"}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_when_it_says_so(status: int) -> None:
    with serving(refused(status, retry_after="0"), whole({"content": "now"})) as server:
        _, reply = said_by(models.chat_completions(server.url, "m"))
    assert reply.text == "now"
    assert len(server.asked) == 2


def test_a_server_that_stays_busy_is_given_up_with_its_words_and_without_the_key() -> None:
    answers = [refused(429, f"slow down, {KEY}", retry_after="0")] * 3
    with serving(*answers) as server, pytest.raises(models.ModelFailed) as raised:
        said_by(models.chat_completions(server.url, "m", KEY))
    assert len(server.asked) == 3
    assert str(raised.value) == "The model m answered HTTP 429: slow down, ***."
    assert raised.value.retryable
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_nobody_waits_longer_than_the_deadline_or_for_an_hour() -> None:
    for retry_after, left_s in (("3600", 100_000.0), ("10", 5.0)):
        clock = MovedClock()
        request = ModelRequest(messages=(user("x"),), deadline=clock.monotonic() + left_s)
        with serving(refused(429, retry_after=retry_after)) as server, pytest.raises(models.ModelFailed):
            said_by(ChatCompletions(server.url, "m", clock=clock), request)
        assert len(server.asked) == 1


@pytest.mark.parametrize(("key", "said"), [(KEY, "refuses the key"), (None, "wants a key")])
def test_a_wrong_key_is_said_so_and_never_quoted(key: str | None, said: str) -> None:
    with serving(refused(401, f"Incorrect API key: {KEY[:10]}…")) as server:
        model = models.chat_completions(server.url, "m", key)
        with pytest.raises(models.ModelFailed, match=said) as raised:
            said_by(model)
    assert len(server.asked) == 1
    assert KEY[:10] not in "".join(traceback.format_exception(raised.value))
    assert KEY not in repr(model)


def test_a_server_that_refuses_to_stream_is_asked_for_the_whole_from_then_on() -> None:
    no = refused(400, "stream_options is not supported")
    with serving(no, whole({"content": "a"}), whole({"content": "b"})) as server:
        model = models.chat_completions(server.url, "m")
        answers = [said_by(model)[1].text, said_by(model)[1].text]
    assert answers == ["a", "b"]
    assert ["stream" in each for each in server.asked] == [True, False, False]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(400, "no such model"), r"HTTP 400: no such model"),
        (whole({}, choices=[]), "has no message"),
        (whole({}, error={"message": "out of memory"}), "out of memory"),
        (page, "not JSON"),
        (streamed(delta(content="half"), usage=False), "broke off"),
        (streamed("nonsense"), "not JSON"),
        (streamed(json.dumps({"error": {"message": "lost the GPU"}})), "lost the GPU"),
    ],
    ids=["400", "no message", "error in 200", "no JSON", "broken off", "bad piece", "error in stream"],
)
def test_what_is_no_answer_is_a_clear_error(answer: Say, said: str) -> None:
    with serving(answer) as server, pytest.raises(models.ModelFailed, match=said):
        said_by(models.chat_completions(server.url, "m"))


def test_a_silent_server_is_left_at_the_deadline() -> None:
    def wait(handler: StubHandler) -> None:
        handler.rfile.read(1)  # until the other side hangs up

    async def late() -> None:
        clock = SystemClock()
        request = ModelRequest(messages=(user("x"),), deadline=clock.monotonic() + 0.2)
        async for _ in ChatCompletions(server.url, "m", clock=clock)(request):
            pass

    with serving(wait) as server, pytest.raises(models.ModelFailed, match="did not answer in time"):
        run(late())


def test_a_name_alone_is_looked_for_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent("Guide", model="llama3.1:8b")
    monkeypatch.delenv("DRAGOMAN_MODEL_URL", raising=False)
    with pytest.raises(Exception, match="DRAGOMAN_MODEL_URL"):
        run(agent.arun("x"))
    with serving(whole({"content": "found"})) as server:
        monkeypatch.setenv("DRAGOMAN_MODEL_URL", server.url)
        monkeypatch.setenv("DRAGOMAN_MODEL_KEY", KEY)
        assert run(agent.arun("x")).content == "found"
    assert server.asked[0]["model"] == "llama3.1:8b"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_the_sync_form_works_again_and_again_with_a_loop_each_time() -> None:
    with serving(whole({"content": "a"}), whole({"content": "b"})) as server:
        agent = Agent("Guide", model=models.chat_completions(server.url, "m"))
        assert [agent.run("x").content, agent.run("x").content] == ["a", "b"]


def test_what_is_no_url_is_refused_at_once() -> None:
    with pytest.raises(Exception, match="no URL of a model"):
        models.chat_completions("localhost", "m")
