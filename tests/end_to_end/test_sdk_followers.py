"""The published SDKs' own clients follow calls through the hub: to agents of every dialect, piece by piece, once.

Where they ask for it they are told by push instead; what is pushed is read by the SDK's own types.
"""

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from tests.end_to_end.sdk_world import SdkWorld
from tests.end_to_end.world import eventually, tracebacks
from tests.support.following import FINAL, Piece, kinds
from tests.support.handing import Receiver, receiver
from tests.support.hub import running_hub
from tests.support.matrix import TEXT
from tests.support.sdk_caller import CLIENTS, SdkClient
from tests.support.sdk_follower import SdkFollower, piece_v10
from tests.support.selection import pairs
from tests.support.speaking import Content, Seen
from tests.support.telling import FIRST, SECOND, WHOLE

# What each client makes of the hub's "this task has ended" and "there is no such task".
ENDED: Final = {"1.0": "UnsupportedOperationError", "0.3": "A2AClientHTTPError"}
UNKNOWN: Final = {"1.0": "TaskNotFoundError", "0.3": "A2AClientHTTPError"}
# The clients that can list and delete configs: neither those of 0.3, nor that of 1.0 where it speaks 0.3 over HTTP.
LISTING: Final = [each for each in CLIENTS if each.words == "1.0" and not (each.mount and each.binding == "HTTP+JSON")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[SdkWorld]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("sdk") / "data", auth="none"))
        yield SdkWorld(hub, stack)
    assert tracebacks(hub) == []


def _name(value: object) -> str:
    return value.slug if isinstance(value, Dialect) else str(value)


every_client = pytest.mark.parametrize("client", CLIENTS, ids=_name)
every_client_and_target = pytest.mark.parametrize(("client", "target"), pairs(CLIENTS, DIALECTS.values()), ids=_name)


@pytest.mark.req("O-16", "O-48")
@every_client_and_target
def test_a_published_client_hears_an_agent_of_any_dialect_as_it_speaks(
    world: SdkWorld, client: SdkClient, target: Dialect
) -> None:
    follower, (agent, teller) = world.follower(client), world.teller(target)
    with follower.open(agent, "tell") as stream:
        begun = stream.until(_first_half)
        assert SECOND not in begun.text
        teller.go.set()
        stream.rest()
    _told_once(stream.seen, WHOLE)
    _kept_once(client, stream.answer, WHOLE)


@pytest.mark.req("O-16", "O-48")
@every_client_and_target
def test_a_published_client_streams_from_an_agent_that_has_no_streams(
    world: SdkWorld, client: SdkClient, target: Dialect
) -> None:
    with world.follower(client).open(world.plain(target), TEXT.text or "") as stream:
        stream.rest()
    _told_once(stream.seen, TEXT.text or "")
    _kept_once(client, stream.answer, TEXT.text or "")


@pytest.mark.req("O-18", "O-19", "O-48")
@every_client
@pytest.mark.parametrize("target", [DIALECTS[slug] for slug in ("platform", "a2a-1.0")], ids=_name)
def test_a_second_published_client_follows_the_same_task_and_sees_the_same(
    world: SdkWorld, client: SdkClient, target: Dialect
) -> None:
    agent, teller = world.teller(target)
    with world.follower(client).open(agent, "tell") as first:
        first.until(_first_half)
        with world.follower(client, 2).watch(agent, first.task_id or "") as second:
            begun = second.until(lambda _: True)
            assert (begun.task_id, begun.text) == (first.task_id, FIRST)
            teller.go.set()
            second.rest()
        first.rest()
    _told_once(first.seen, WHOLE)
    _told_once(second.seen, WHOLE)
    after = [piece for piece in first.seen if SECOND in piece.text or piece.state in FINAL]
    assert [piece for piece in second.seen if piece is not begun] == after


@pytest.mark.req("O-19", "O-48")
@pytest.mark.parametrize("client", [each for each in CLIENTS if each.binding == "JSONRPC"], ids=_name)
def test_a_published_client_that_is_killed_takes_neither_the_call_nor_other_streams_with_it(
    world: SdkWorld, client: SdkClient
) -> None:
    agent, teller = world.teller(DIALECTS["platform"])
    with ExitStack() as watching:
        with world.follower(client, 2).open(agent, "tell") as killed:
            killed.until(_first_half)
            left = watching.enter_context(world.follower(client).watch(agent, killed.task_id or ""))
            left.until(lambda _: True)
        teller.go.set()
        left.rest()
    _told_once(left.seen, WHOLE)


@pytest.mark.req("O-18", "O-48")
@every_client
def test_a_task_that_has_ended_or_never_was_is_the_clients_own_error(world: SdkWorld, client: SdkClient) -> None:
    follower, (agent, teller) = world.follower(client), world.teller(DIALECTS["a2a-1.0"])
    teller.go.set()
    done = follower.caller.call(agent, TEXT)
    assert done.state == "completed", done
    assert follower.refused(agent, done.task_id or "")["raised"] == ENDED[client.words]
    assert follower.refused(agent, "task-nobody")["raised"] == UNKNOWN[client.words]


# -- push


@pytest.mark.req("O-32", "O-33", "O-44", "O-48")
@every_client
@pytest.mark.parametrize("how", ["set", "with the message"])
def test_a_published_client_is_told_where_it_says(world: SdkWorld, client: SdkClient, how: str) -> None:
    follower, (agent, teller) = world.follower(client), world.teller(DIALECTS["platform"])
    sent = {"message": follower.caller.message(Content(text="tell")), "wait": False}
    with receiver() as there:
        if how == "set":
            (task,) = follower.caller.say(agent, "send", **sent)["events"]
            task_id = _id(client, task)
            made, read, *_ = _set(follower, client, agent, task_id, f"{there.url}/told")["configs"]
            assert made == read
        else:
            (task,) = follower.caller.say(agent, "send", **sent, push=_config(client, f"{there.url}/told"))["events"]
            task_id = _id(client, task)
        teller.go.set()
        pieces = _pushed(world, client, there, task_id)
    assert [piece.state for piece in pieces if piece.state in FINAL] == ["completed"], pieces
    assert pieces[-1].state == "completed", pieces
    if client.wire == "0.3":
        assert pieces[-1].text == WHOLE, pieces
    elif how == "with the message":
        assert "".join(piece.text for piece in pieces) == WHOLE, pieces
    for headers, _ in there.got:
        assert (headers["authorization"], headers["x-a2a-notification-token"]) == ("Bearer s3cret", "t0ken")


@pytest.mark.req("O-32", "O-48")
@pytest.mark.parametrize("client", LISTING, ids=_name)
def test_nothing_is_told_where_a_published_client_took_its_config_back(world: SdkWorld, client: SdkClient) -> None:
    follower, (agent, teller) = world.follower(client), world.teller(DIALECTS["platform"])
    message = follower.caller.message(Content(text="tell"))
    with receiver() as there, receiver() as elsewhere:
        (task,) = follower.caller.say(agent, "send", message=message, wait=False)["events"]
        eventually(lambda: _speaks(follower, agent, task), "all is said that is said before the agent is let go")
        config = {"taskId": _id(client, task), **_config(client, f"{elsewhere.url}/told", "c-0")}
        made, read, listed, left = follower.caller.say(agent, "push", config=config)["configs"]
        assert (made, listed, left) == (read, {"configs": [made]}, {})
        _set(follower, client, agent, _id(client, task), f"{there.url}/told")
        teller.go.set()
        assert _pushed(world, client, there, _id(client, task))[-1].state == "completed"
        assert elsewhere.got == []


def _config(client: SdkClient, url: str, name: str = "c-1") -> dict[str, Any]:
    """A push config in the words of the client's users."""
    scheme = {"scheme": "Bearer"} if client.words == "1.0" else {"schemes": ["Bearer"]}
    return {"id": name, "url": url, "token": "t0ken", "authentication": {**scheme, "credentials": "s3cret"}}


def _set(follower: SdkFollower, client: SdkClient, agent: str, task_id: str, url: str) -> dict[str, Any]:
    config = _config(client, url)
    nested = config if client.words == "1.0" else {"pushNotificationConfig": config}
    said = follower.caller.say(agent, "push", config={"taskId": task_id, **nested}, keep=True)
    assert "raised" not in said, said
    return said


def _pushed(world: SdkWorld, client: SdkClient, there: Receiver, task_id: str) -> list[Piece]:
    """What was pushed up to the end of a task, read by an SDK of the version in which it was asked for."""
    reader = world.follower(next(each for each in CLIENTS if each.words == each.wire == client.wire)).caller

    def read(body: Any) -> Piece:
        notice = reader.say("", "notice", body=body)["notice"]
        return piece_v10(notice) if client.wire == "1.0" else kinds.piece("", notice)

    there.until(lambda body: read(body).state in FINAL)
    pieces = [read(body) for _, body in there.got]
    assert {piece.task_id for piece in pieces if piece.task_id} == {task_id}, pieces
    return pieces


def _speaks(follower: SdkFollower, agent: str, sent: dict[str, Any]) -> bool:
    """Whether a task has words to show."""
    task_id = _id(follower.caller.client, sent)
    return bool(follower.caller.get(agent, Seen(task_id=task_id)).content)


def _id(client: SdkClient, sent: dict[str, Any]) -> str:
    task_id: str = sent["task"]["id"] if client.words == "1.0" else sent["id"]
    return task_id


def _first_half(piece: Piece) -> bool:
    """What an agent says before it is let go: words of its answer, or of its progress where it has no others."""
    return FIRST in (piece.text or piece.message or "")


def _told_once(pieces: list[Piece], whole: str) -> None:
    """Every word of the answer arrived, in order, and none twice; the end is told once, and last."""
    assert pieces[0].task_id and pieces[0].state not in FINAL, pieces
    assert "".join(piece.text for piece in pieces) == whole, pieces
    states = [piece.state for piece in pieces if piece.state is not None]
    assert states[-1] == pieces[-1].state == "completed", pieces
    assert sum(state in FINAL for state in states) == 1, pieces


def _kept_once(client: SdkClient, answer: dict[str, Any], whole: str) -> None:
    """The task that the client of 0.3 puts together from its stream; that of 1.0 leaves it to its user."""
    if client.words == "0.3":
        task = answer["task"]
        parts = [part for artifact in task["artifacts"] for part in artifact["parts"]]
        assert "".join(part.get("text") or part["data"]["text"] for part in parts) == whole, task
        assert task["status"]["state"] == "completed", task
