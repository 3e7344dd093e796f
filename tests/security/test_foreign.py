"""What belongs to somebody else looks as if it did not exist: byte for byte, in every operation of every dialect.

Generated from what the hub serves (`support/reach.py`) and the table of expectations: of a task, a push configuration,
a file, a delivery, a session, an agent or a key of another, each request that names it is sent once with its id and
once with one that never was.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import msgspec
import pytest

from tests.end_to_end.every_dialect import Everyone, asked
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.security.asking import line_of, listed, request_for
from tests.security.expected import AGENT, CONFIG, CONTEXT, DELIVERY, FILE, KEY, SESSION, TASK
from tests.support.agents.agentvault import agent as vault_agent
from tests.support.hub import HubProcess
from tests.support.ports import free_port
from tests.support.reach import Reached, everything, framed
from tests.support.security_figures import Figures
from tests.support.stranger import Said, ask

SCOPES: Final = ("a2a:call", "a2a:register", "a2a:receive")
SHARED: Final = "shared-agent"  # an agent of this name is in both tenants
VERSION: Final = {"A2A-Version": "1.0"}
_MADE: Final = re.compile(
    r"(?:req|a2a_call|trace|span|task|env|av|dir)[_-][0-9A-Za-z-]{16,}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.]*(?:Z|\+00:00)"
)
_NEXT: Final = str.maketrans("0123456789abcdef", "1234567890bcdefa")


class Actor(msgspec.Struct, frozen=True):
    """Somebody with a key, and the agent that they are in envelopes."""

    name: str
    key: str
    sender: str


class Thing(msgspec.Struct, frozen=True):
    """Something that belongs to somebody, and how it is named otherwise."""

    id: str
    uuid: str = ""

    @property
    def unknown(self) -> "Thing":
        """The same form of a name, of something that never was."""
        return Thing(_other(self.id), _other(self.uuid))


class World:
    """Two tenants, two principals in one of them, and what the first of them has."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        self.hub = hub
        self._stack = stack
        self.owner = self._actor("owner", *SCOPES)
        self.colleague = self._actor("colleague", *SCOPES)
        # May do everything in a tenant of their own.
        self.stranger = self._actor("stranger", *SCOPES, "a2a:admin", tenant="other")
        self.stub = Everyone(hub, stack).stub("a2a-1.0")
        for actor in (self.owner, self.stranger):
            reply = hub.post("/v1/a2a/registry", {"agent_card": self.stub.card, "id": SHARED}, token=actor.key)
            assert reply.status == 201, reply.body

    def _actor(self, name: str, *scopes: str, **more: Any) -> Actor:
        key = self.hub.new_key(*scopes, **more)
        card = {"id": f"{name}-giver", "name": name, "version": "1.0.0", "supported_tasks": ["listen"]}
        assert self.hub.post("/v1/a2a/registry", {"agent_card": card}, token=key).status == 201
        return Actor(name, key, f"{name}-giver")

    # -- what the owner has

    def task(self, dialect: str) -> Thing:
        """A task that waits for more input; those of the directory and of envelopes have the owner's own names."""
        if dialect == "directory":
            request = asked("directory", SHARED, "hello")
            assert request.post(self.hub, self.owner.key).status == 200
            return Thing(request.body["params"]["taskId"])
        if dialect == "envelope":
            request = asked("envelope", SHARED, "ask", sender=self.owner.sender)
            assert request.post(self.hub, self.owner.key).status == 200
            return Thing(request.body["payload"]["task_id"])
        answer = asked(dialect or "a2a-1.0", SHARED, "ask").post(self.hub, self.owner.key).json
        result = answer.get("result", answer)
        task_id: str = result.get("task", result).get("id") or answer["call_id"]
        path = f"/v1/calls/{task_id}"
        eventually(lambda: "input" in self.hub.get(path, token=self.owner.key).json["status"], "the agent asks")
        if dialect in ("a2a-1.0", "a2a-0.3"):
            self._configure(dialect, task_id)
        return Thing(task_id)

    def context(self, _: str = "") -> Thing:
        """A conversation with a task in it."""
        thing = Thing(fresh("conversation-0"))
        reply = asked("a2a-1.0", SHARED, "hello", context=thing.id).post(self.hub, self.owner.key)
        assert "result" in reply.json
        return thing

    def _configure(self, dialect: str, task_id: str) -> None:
        config = {"id": CONFIG, "url": "https://client.example/hook"}
        if dialect == "a2a-1.0":
            body, version = framed("CreateTaskPushNotificationConfig", {"taskId": task_id, **config}), VERSION
        else:
            params = {"taskId": task_id, "pushNotificationConfig": config}
            body, version = framed("tasks/pushNotificationConfig/set", params), None
        assert "result" in self.hub.post(f"/agents/{SHARED}/", body, version, self.owner.key).json

    def agent(self, _: str = "") -> Thing:
        """An agent of the owner's tenant alone."""
        name = fresh("own")
        stub = self._stack.enter_context(vault_agent(name))
        card = {**stub.card, "humanReadableId": f"tests/{name}"}
        reply = self.hub.post("/v1/a2a/registry", {"agent_card": card, "id": name}, token=self.owner.key)
        assert reply.status == 201, reply.body
        return Thing(name, self.hub.get(f"/v1/agents/{name}").json["uuid"])

    def session(self, _: str = "") -> Thing:
        """The session of an agent that connected."""
        skills = [{"name": "echo", "description": "d"}]
        card = {"name": fresh("connected"), "description": "d", "version": "1.0.0", "skills": skills}
        hello = {"agent_id": card["name"], "card": card}
        reply = self.hub.post("/v1/agents/connect", hello, token=self.owner.key)
        assert reply.status == 200, reply.body
        return Thing(reply.json["session_id"])

    def delivery(self, _: str = "") -> Thing:
        """What is owed to an address where nobody listens."""
        url = f"http://127.0.0.1:{free_port()}/"
        body = {"skill": "echo", "input": {"text": "x"}, "target_agent_id": SHARED, "callback": {"url": url}}
        assert self.hub.post("/v1/a2a/call/async", body, token=self.owner.key).status in (200, 202)

        def owed() -> str | None:
            items = self.hub.get(f"/v1/deliveries?url={url}", token=self.owner.key).json["items"]
            return items[0]["id"] if items else None

        return Thing(eventually(owed, "there is something to deliver"))

    def file(self, _: str = "") -> Thing:
        """A file that lies in a task."""
        part = {"kind": "file", "file": {"bytes": "aGVsbG8=", "name": "a.txt", "mimeType": "text/plain"}}
        message = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
        reply = self.hub.post(f"/agents/{SHARED}/", framed("message/send", {"message": message}), token=self.owner.key)
        shown = self.hub.get(f"/v1/calls/{reply.json['result']['id']}", token=self.owner.key)
        found = re.search(r"/files/([^?\"]+)", shown.body.decode())
        assert found is not None, shown.body
        return Thing(found[1])

    def key(self, _: str = "") -> Thing:
        """A key of the owner's tenant."""
        reply = self.hub.post("/v1/keys", {"name": "x", "scopes": ["a2a:call"]})
        return Thing(reply.json["key_id"])

    # -- what is asked of it

    def asked(self, reached: Reached, thing: Thing, actor: Actor) -> tuple[int, str, str]:
        """What somebody is answered about a thing, with nothing in it that only this answer has."""
        request = request_for(reached, id=thing.id, agent=SHARED, sender=actor.sender, uuid=thing.uuid)
        lines = (*request.lines, f"Authorization: Bearer {actor.key}")
        said = ask(self.hub.port, request.method, request.path, lines, request.body, source="127.0.0.1")
        return said.status, _head(said), _masked(said.body.decode(errors="replace"), thing)


def _other(name: str) -> str:
    changed = name[:-6] + name[-6:].translate(_NEXT)
    return changed if changed != name or not name else f"{name[:-1]}{'y' if name[-1] == 'x' else 'x'}"


def _masked(text: str, thing: Thing) -> str:
    for name in filter(None, (thing.id, thing.uuid)):
        text = text.replace(name, "ID")
    return _MADE.sub("*", text)


def _head(said: Said) -> str:
    own = ("date:", "x-request-id:", "x-trace-id:", "x-span-id:", "sec-websocket-accept:")
    return "\n".join(line for line in said.head.split("\r\n") if not line.startswith(own))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("foreign")
    with ExitStack() as stack:
        hub = HubProcess(folder / "data").start()
        stack.callback(hub.stop)
        yield World(hub, stack)
        assert tracebacks(hub) == []


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reached, ...]:
    return listed(everything(tmp_path_factory.mktemp("reached") / "data"))


def things(world: World) -> dict[str, tuple[Callable[[str], Thing], tuple[Actor, ...]]]:
    """How something of each kind is made, and to whom it is unknown."""
    everybody = (world.colleague, world.stranger)
    return {
        TASK: (world.task, everybody),
        CONTEXT: (world.context, everybody),
        DELIVERY: (world.delivery, everybody),
        SESSION: (world.session, everybody),
        FILE: (world.file, everybody),
        AGENT: (world.agent, (world.stranger,)),  # agents are there for everybody in their tenant
        KEY: (world.key, (world.stranger,)),  # and keys for its administrators
    }


def _names(reached: Reached, kind: str) -> bool:
    """Whether a request of this kind really has the id in it: at the hub's own root no agent is named."""
    if line_of(reached).names != kind:
        return False
    request = request_for(reached, id="THE-ID", agent=SHARED, uuid="THE-ID")
    return "THE-ID" in request.path or b"THE-ID" in request.body


def differences(world: World, reached: tuple[Reached, ...], kind: str) -> tuple[list[str], int]:
    """Where somebody else's thing does not look unknown, and how often that was asked."""
    make, strangers = things(world)[kind]
    made: dict[str, Thing] = {}
    found: list[str] = []
    asked = 0
    for each in reached:
        if not _names(each, kind):
            continue
        if each.dialect not in made:
            made[each.dialect] = make(each.dialect)
        thing = made[each.dialect]
        for actor in strangers:
            asked += 1
            foreign, unknown = world.asked(each, thing, actor), world.asked(each, thing.unknown, actor)
            if foreign != unknown or foreign[0] in (101, 500):
                found.append(f"{each} by the {actor.name}:\n  foreign {foreign}\n  unknown {unknown}")
    return found, asked


@pytest.mark.req("X-15")
@pytest.mark.parametrize("kind", [TASK, CONTEXT, DELIVERY, SESSION, FILE, AGENT, KEY])
def test_what_is_somebody_elses_looks_unknown(
    world: World, reached: tuple[Reached, ...], kind: str, figures: Figures
) -> None:
    found, asked = differences(world, reached, kind)
    named = {each.key for each in reached if _names(each, kind)}
    spoken = {each.dialect for each in reached if _names(each, kind)} - {""}
    figures("S2", operations=len(named), pairs_of_answers=asked, differences=len(found))
    if kind == TASK:
        figures("S2", dialects=len(spoken), tenants=2, principals=3)
    assert asked > 0
    assert found == []


@pytest.mark.req("X-15")
@pytest.mark.parametrize("kind", [TASK, CONTEXT, DELIVERY, SESSION, FILE, AGENT, KEY])
def test_its_owner_is_told_something_else(world: World, reached: tuple[Reached, ...], kind: str) -> None:
    """Were the requests malformed, all answers would be alike and prove nothing."""
    make, _ = things(world)[kind]
    administrator = msgspec.structs.replace(world.owner, key=world.hub.token or "")
    owner = administrator if kind in (KEY, CONTEXT) else world.owner
    made: dict[str, Thing] = {}
    alike: list[str] = []
    for each in {each.key: each for each in reached if _names(each, kind)}.values():
        thing = made.pop(each.dialect, None) or make(each.dialect)
        if not line_of(each).ends:
            made[each.dialect] = thing
        own, unknown = world.asked(each, thing, owner), world.asked(each, thing.unknown, owner)
        if own == unknown:
            thing = make(each.dialect)  # Perhaps what was asked before has ended that one.
            own, unknown = world.asked(each, thing, owner), world.asked(each, thing.unknown, owner)
        if own == unknown:
            alike.append(f"{each}: {own}")
    assert alike == []


@pytest.mark.req("X-15")
def test_whatever_others_try_a_task_stands_as_it_stood(world: World, reached: tuple[Reached, ...]) -> None:
    path = f"/v1/calls/{(thing := world.task('a2a-1.0')).id}"
    before = world.hub.get(path, token=world.owner.key).json
    for each in {each.key: each for each in reached if _names(each, TASK)}.values():
        for actor in (world.colleague, world.stranger):
            world.asked(each, thing, actor)
    assert world.hub.get(path, token=world.owner.key).json == before
