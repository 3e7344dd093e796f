"""Where the examples are played: real hubs and stub agents, made when first needed and kept for the file's tests."""

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.end_to_end.example_files.fits import differences
from tests.end_to_end.example_files.index import Line
from tests.end_to_end.world import tracebacks
from tests.support.hub import HubProcess
from tests.support.speaking import StubAgent, json_answer, serving

Made = TypeVar("Made")
Answer = tuple[int, Mapping[str, str], bytes]


class Stage:
    """Hubs, agents, and whatever else the checks share."""

    def __init__(self, root: Path, stack: ExitStack, *, full: bool) -> None:
        self._root = root
        self.full = full  # whether what takes long is done, too
        self._stack = stack
        self._made: dict[object, Any] = {}
        self._hubs = 0

    def hub(self, *, auth: str = "none", environ: Mapping[str, str] | None = None) -> HubProcess:
        """A hub with nothing in it; at the end it is stopped, and must not have met anything unexpected."""
        self._hubs += 1
        self._root.mkdir(exist_ok=True)
        hub = HubProcess(self._root / f"hub-{self._hubs}", auth=auth).start(environ)

        def end() -> None:
            hub.stop()
            assert tracebacks(hub) == []

        self._stack.callback(end)
        return hub

    def enter(self, context: AbstractContextManager[Made]) -> Made:
        """What a context gives, until the end."""
        return self._stack.enter_context(context)

    @contextmanager
    def apart(self) -> Generator["Stage"]:
        """A stage for one thing that changes too much to share its hub: gone after the block."""
        self._hubs += 1
        with ExitStack() as stack:
            yield Stage(self._root / f"apart-{self._hubs}", stack, full=self.full)

    def once(self, make: Callable[["Stage"], Made]) -> Made:
        """What a function makes, the first time it is asked for."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made


Check = Callable[[Stage, Line], None]
CHECKS: Final[dict[str, Check]] = {}


def shows(*files: str) -> Callable[[Check], Check]:
    """The decorated function is the one check of these files, in the folder that has its module's name."""

    def kept(check: Check) -> Check:
        folder = check.__module__.rpartition(".")[2]
        for file in files:
            key = f"{folder}/{file}.json"
            assert key not in CHECKS, f"{key} has two checks"
            CHECKS[key] = check
        return check

    return kept


@contextmanager
def answering(slug: str, answer: Callable[[Any], Answer | dict[str, Any]]) -> Generator[StubAgent]:
    """An agent that answers each body it is sent as a test says, within the block."""
    stub = StubAgent(slug)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        stub.arrived.set()
        said = answer(body)
        return json_answer(said) if isinstance(said, dict) else said

    with serving(stub, handle):
        yield stub


def posted(hub: HubProcess, path: str, body: Any, status: int = 200, **how: Any) -> Any:
    """Post a body to a hub; the JSON of its answer."""
    reply = hub.post(path, body, **how)
    assert reply.status == status, (path, reply.status, reply.body)
    return reply.json


def assert_fits(found: Any, shown: Any, *, varies: Collection[str] = (), added: Collection[str] = ()) -> None:
    """An answer is what the example shows."""
    faults = differences(found, shown, varies=varies, added=added)
    assert faults == [], faults
