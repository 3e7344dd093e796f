"""An agent: what it is called, what it can do, and the ways to run it.

    agent = Agent("Research Assistant")

    @agent.skill
    async def web_search(query: str, max_results: int = 10) -> dict: …

    agent.start()

Everything beyond that is done elsewhere, and imported when it is asked for: making an agent costs nothing.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

from dragoman.dialects.text import ID_GRAMMAR, id_of_name
from dragoman.model.json import Json, JsonObject
from dragoman.model.secret import Secret
from dragoman.sdk.agent.signature import Function
from dragoman.sdk.agent.skills import CHAT, HANDLE, Skill, make_chat, make_handle, make_skill
from dragoman.sdk.work.context import Context

if TYPE_CHECKING:
    from dragoman.sdk.adapters.adapter import Per
    from dragoman.sdk.connect.connect import Stopping
    from dragoman.sdk.run.run import Running, RunResult
    from dragoman.sdk.work.trying import Trying

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_CONCURRENCY: Final = 10


class Hidden:
    """What an agent keeps to itself, away from the attributes that subclasses give it."""

    def __init__(self, card: JsonObject | None) -> None:
        self.card = card  # laid over the card that is made
        self.skills: dict[str, Skill] = {}
        self.chat: Skill | None = None
        self.handle: Skill | None = None
        self.connection: object = None  # of whoever connected it (sdk/connect/connect.py)
        self.memory: object = None  # of what was said to its model (sdk/run/run.py)
        self._threads: ThreadPoolExecutor | None = None

    def threads(self, count: int) -> ThreadPoolExecutor:
        """Where plain functions run: as many threads as there may be calls at once."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(count, thread_name_prefix="dragoman-skill")
        return self._threads


class Agent:
    """An agent, made of functions, of a model, or of both."""

    def __init__(
        self,
        name: str,
        instructions: str | None = None,
        *,
        id: str | None = None,
        description: str | None = None,
        version: str = "1.0.0",
        tools: Iterable[Function] = (),
        model: Any = None,
        max_steps: int = 8,
        hub: str | None = None,
        api_key: str | Secret | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        rate_limits: Mapping[str, int] | None = None,
        scopes_required: Sequence[str] = ("a2a:call",),
        tags: Sequence[str] = (),
        provider: str | Mapping[str, str] | None = None,
        card: JsonObject | None = None,
    ) -> None:
        self._hidden = Hidden(card)
        self.name = _required(name)
        self.instructions = instructions
        self.id = _checked_id(id or id_of_name(name))
        self.description = description
        self.version = version
        self.tools: tuple[Function, ...] = tuple(tools)
        self.model: Any = model
        self.max_steps = max_steps
        self.hub = hub
        self.api_key = api_key if api_key is None or isinstance(api_key, Secret) else Secret(api_key)
        self.concurrency = _positive(concurrency, "concurrency")
        self.rate_limits = dict(rate_limits) if rate_limits else None
        self.scopes_required = tuple(scopes_required)
        self.tags = tuple(tags)
        self.provider = provider

    def __repr__(self) -> str:
        skills = ", ".join(self.skills)
        return f"<{type(self).__name__} {self.name!r} ({self.id}){f': {skills}' if skills else ''}>"

    # -- what it can do

    @overload
    def skill(self, function: F, /) -> F: ...
    @overload
    def skill(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        tags: Iterable[str] = (),
        examples: Iterable[Json] = (),
        idempotent: bool = False,
        timeout_s: float | None = None,
        strict: bool = False,
        scopes: Iterable[str] = (),
        input_schema: JsonObject | None = None,
        output_schema: JsonObject | None = None,
    ) -> Callable[[F], F]: ...
    def skill(self, function: Function | None = None, /, **options: Any) -> Any:
        """Publish a function: `@agent.skill`, `@agent.skill(name=…)`, or `agent.skill(function)`.

        Raises TypeError naming the parameter whose type has no JSON form, ValueError for a name that is taken.
        """

        def publish(function: Function) -> Function:
            skill = make_skill(function, **options)
            if skill.name in self._hidden.skills or (skill.name == CHAT and self._hidden.chat is not None):
                raise ValueError(f"{self.name!r} has a skill {skill.name!r} already. Pass another name=…")
            self._hidden.skills[skill.name] = skill
            return function

        return publish if function is None else publish(function)

    def on_message(self, function: F, /) -> F:
        """Let a function answer messages that name no skill; it is published as the skill `chat`.

        Raises TypeError for a parameter that is neither a Message nor a Context, ValueError where there is one.
        """
        if self._hidden.chat is not None or CHAT in self._hidden.skills:
            raise ValueError(f"{self.name!r} has a handler of messages already.")
        self._hidden.chat = make_chat(function)
        return function

    @property
    def skills(self) -> Mapping[str, Skill]:
        """Everything that is published, by name: `chat` and `handle` too, where there is something behind them."""
        hidden = self._hidden
        found = {} if hidden.chat is None else {CHAT: hidden.chat}
        found |= hidden.skills
        handle = self._handle()
        if handle is not None:
            found.setdefault(HANDLE, handle)
        return found

    @property
    def default_skill(self) -> str | None:
        """What a message that names no skill goes to, where the agent has something for such; its card says so."""
        if self._hidden.chat is not None:
            return CHAT
        return HANDLE if self._handle() is not None else None

    def _handle(self) -> Skill | None:
        """`handle_task` of a subclass, else the model."""
        own = getattr(self, "handle_task", None)
        function = own if callable(own) else None if self.model is None else self._work_on
        if function is None:
            return None
        known = self._hidden.handle
        if known is None or known.function != function:
            told = self.description or self.instructions or f"Works on a task for {self.name}"
            known = self._hidden.handle = make_handle(function, told)
        return known

    async def _work_on(self, task: str, ctx: Context) -> object:
        from dragoman.sdk.run.run import handle

        return await handle(self, task, ctx)

    def card(self, dialect: str = "platform") -> JsonObject:
        """The agent's card, in any dialect. Raises ValueError for a dialect that there is none of."""
        from dragoman.sdk.agent.card import card_in

        return card_in(self, self._hidden.card, dialect)

    # -- letting the model work

    def run(self, task: str, *, conversation_id: str | None = None) -> "Running":
        """Let the model work on a task: `await` it, or read `.content` where no loop runs. Raises NoModel."""
        from dragoman.sdk.run.run import run

        return run(self, task, conversation_id)

    async def arun(self, task: str, *, conversation_id: str | None = None) -> "RunResult":
        """The same as a plain coroutine."""
        from dragoman.sdk.run.run import arun

        return await arun(self, task, conversation_id)

    def stream(self, task: str, *, conversation_id: str | None = None) -> AsyncIterator[str]:
        """The same as chunks of the answer."""
        from dragoman.sdk.run.run import stream

        return stream(self, task, conversation_id)

    async def classify_task(self, task: str, labels: Iterable[str] | None = None) -> str | None:
        """Which label fits a task; without labels, which of `self.specialists`. None where none fits."""
        from dragoman.sdk.run.run import classify

        return await classify(self, task, labels)

    # -- its definition

    def clone(self, **changes: Any) -> Self:
        """A copy with some of its settings changed."""
        from dragoman.sdk.agent.definition import clone

        return clone(self, changes)

    def to_dict(self) -> JsonObject:
        """Its definition as JSON."""
        from dragoman.sdk.agent.definition import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, definition: JsonObject) -> Self:
        """An agent from its definition."""
        from dragoman.sdk.agent.definition import from_dict

        return from_dict(cls, definition)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """An agent from a definition in a YAML file. Raises MissingExtra without PyYAML."""
        from dragoman.sdk.agent.definition import from_yaml

        return from_yaml(cls, path)

    @classmethod
    def wrap(
        cls,
        obj: object,
        *,
        name: str | None = None,
        id: str | None = None,
        description: str | None = None,
        skill: str = CHAT,
        per: "Per" = "shared",
    ) -> Self:
        """An agent from an object of another framework, or from any callable.

        With `per="call"` or `per="conversation"` the object is a factory: one is made for each. Raises TypeError for
        an object that cannot be wrapped, and lists those that can.
        """
        from dragoman.sdk.adapters.adapter import Options
        from dragoman.sdk.wrap import wrap

        return wrap(cls, obj, Options(name=name, id=id, description=description, skill=skill, per=per))

    # -- running it

    def start(self) -> None:
        """Connect to the hub and work until a signal ends it. Blocks."""
        from dragoman.sdk.connect.connect import start

        start(self)

    async def connect(self) -> None:
        """Connect to the hub; returns when that has taken the agent, which works in the running loop until `stop`."""
        from dragoman.sdk.connect.connect import connect

        await connect(self)

    def stop(self) -> "Stopping":
        """Take no new calls, let the running ones end, and leave the hub; `await` it to see the end of that."""
        from dragoman.sdk.connect.connect import stop

        return stop(self)

    def serve(
        self,
        host: str = "127.0.0.1",
        port: int = 8001,
        data: str | Path | None = None,
        register: str | None = None,
        auth: str | None = None,
    ) -> None:
        """Listen instead, in every dialect. Blocks. Raises MissingExtra without the server."""
        from dragoman.sdk.serve.serve import serve

        serve(self, host=host, port=port, data=data, register=register, auth=auth)

    @property
    def app(self) -> Any:
        """The agent as an ASGI application. Raises MissingExtra without the server."""
        from dragoman.sdk.serve.serve import application

        return application(self)

    @property
    def test(self) -> "Trying":
        """Call its skills here and now: no hub, no socket."""
        from dragoman.sdk.work.trying import Trying

        return Trying(self)


def hidden_of(agent: Agent) -> Hidden:
    """What an agent keeps to itself, for the other files of the SDK."""
    return agent._hidden  # pyright: ignore[reportPrivateUsage] - the one door


def _required(name: str) -> str:
    if not name.strip():
        raise ValueError("An agent needs a name.")
    return name


def _checked_id(agent_id: str) -> str:
    if ID_GRAMMAR.fullmatch(agent_id) is None:
        raise ValueError(f"An agent's id is letters, digits, . _ and -, at most 128; this is {agent_id!r}.")
    return agent_id


def _positive(value: int, name: str) -> int:
    if value < 1:
        raise ValueError(f"{name} is at least 1; this is {value}.")
    return value
