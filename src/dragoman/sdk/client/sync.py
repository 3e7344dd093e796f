"""The same calls for code that cannot await: one loop in a thread of its own, and the async code runs there.

Inside a running event loop a blocking call would stop everything else: it is refused, and the async form named.
"""

import asyncio
import atexit
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack, final, overload

from dragoman.model.json import Json, JsonObject
from dragoman.sdk.client.asking import CallOptions, Filters, Said
from dragoman.sdk.client.client import A2AClient, current_client
from dragoman.sdk.client.handles import CallHandle
from dragoman.sdk.client.results import CallResult, CallStatus, FoundAgent, StreamEvent

if TYPE_CHECKING:
    from dragoman.sdk.client.step import Then
    from dragoman.sdk.client.tool_forms import BlockingTool
    from dragoman.sdk.client.tool_frameworks import Framework
    from dragoman.sdk.client.tools import SyncTools, ToolOptions

Got = TypeVar("Got")

GOODBYE_S: Final = 2.0


@final
class BackgroundLoop:
    """One event loop in a thread, started by the first who needs it, ended with the process."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def run(self, make: Callable[[], Coroutine[Any, Any, Got]], *, instead: str) -> Got:
        """What the coroutine returns or raises. Raises RuntimeError inside a running loop."""
        refuse_inside_a_loop(instead)
        # The context goes along: what a handler in a worker thread is doing passes through to its calls.
        future = asyncio.run_coroutine_threadsafe(make(), self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, make: Callable[[], AsyncGenerator[Got]], *, instead: str) -> Generator[Got]:
        """The values of an async iterator, one by one."""
        refuse_inside_a_loop(instead)
        iterator = make()
        over = object()

        async def following() -> Got | object:
            return await anext(iterator, over)

        try:
            while True:
                value = self.run(following, instead=instead)
                if value is over:
                    return
                yield value  # pyright: ignore[reportReturnType] - everything but the mark is a value
        finally:
            self.run(iterator.aclose, instead=instead)

    def stop(self) -> None:
        """End the loop, and what still runs in it."""
        if self._loop is not None and self._stop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(GOODBYE_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A forked process has no threads of its parent: there it begins anew.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                ready = threading.Event()
                self._thread = threading.Thread(target=self._serve, args=(ready,), name="dragoman-sync", daemon=True)
                self._thread.start()
                ready.wait()
                atexit.register(self.stop)
            assert self._loop is not None  # noqa: S101 - set before it is ready
            return self._loop

    def _serve(self, ready: threading.Event) -> None:
        async def until_stopped() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            ready.set()
            await self._stop.wait()

        asyncio.run(until_stopped())


BACKGROUND: Final = BackgroundLoop()


@final
class SyncHandle:
    """One call, by its id, for code that cannot await."""

    def __init__(self, handle: CallHandle) -> None:
        self._handle = handle
        self.id = handle.id

    def __repr__(self) -> str:
        return f"SyncHandle({self.id!r})"

    def status(self) -> CallStatus:
        """How it stands now."""
        return BACKGROUND.run(self._handle.status, instead="await handle.status()")

    def result(self, *, timeout_s: float | None = None) -> CallResult:
        """Its result, when it has ended; after `timeout_s` TimeoutError."""
        return BACKGROUND.run(lambda: self._handle.result(timeout_s=timeout_s), instead="await handle.result()")

    def stream(self, *, after: int = 0) -> Generator[StreamEvent]:
        """Its events, until it ends."""
        return BACKGROUND.iterate(
            lambda: self._handle.stream(after=after), instead="async for event in handle.stream()"
        )

    def send(self, message: Said, *, timeout_ms: int | None = None) -> CallResult:
        """Answer what its agent asked, and wait for what follows."""
        return BACKGROUND.run(lambda: self._handle.send(message, timeout_ms=timeout_ms), instead="await handle.send(…)")

    def cancel(self, reason: str | None = None) -> CallStatus:
        """End it, and tell its agent."""
        return BACKGROUND.run(lambda: self._handle.cancel(reason), instead="await handle.cancel()")


@final
class SyncClient:
    """The blocking twin of a client: the same methods, the same arguments."""

    def __init__(self, client: A2AClient) -> None:
        self._client = client

    def call(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """Call a skill and wait for its result."""
        return BACKGROUND.run(
            lambda: self._client.call(target, skill, input, **options), instead="await client.call(…)"
        )

    def stream(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        **options: Unpack[CallOptions],
    ) -> Generator[StreamEvent]:
        """Call a skill and hear what happens."""
        return BACKGROUND.iterate(
            lambda: self._client.stream(target, skill, input, **options),
            instead="async for event in client.stream(…)",
        )

    def submit(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        *,
        callback_url: str | None = None,
        callback_headers: Mapping[str, str] | None = None,
        then: "Then" = (),
        **options: Unpack[CallOptions],
    ) -> SyncHandle:
        """Have a call carried out without waiting for it."""

        async def submitted() -> CallHandle:
            return await self._client.submit(
                target,
                skill,
                input,
                callback_url=callback_url,
                callback_headers=callback_headers,
                then=then,
                **options,
            )

        return SyncHandle(BACKGROUND.run(submitted, instead="await client.submit(…)"))

    def handle(self, call_id: str) -> SyncHandle:
        """A call that was made before."""
        return SyncHandle(self._client.handle(call_id))

    def discover(self, skill: str | None = None, **filters: Unpack[Filters]) -> Generator[FoundAgent]:
        """The agents that fit, best first."""
        return BACKGROUND.iterate(
            lambda: self._client.discover(skill, **filters), instead="async for agent in client.discover(…)"
        )

    @overload
    def tools(
        self, framework: Literal["plain"] = "plain", **options: Unpack["ToolOptions"]
    ) -> "SyncTools[BlockingTool]": ...
    @overload
    def tools(
        self, framework: Literal["openai", "mcp"], **options: Unpack["ToolOptions"]
    ) -> "SyncTools[JsonObject]": ...
    @overload
    def tools(self, framework: "Framework", **options: Unpack["ToolOptions"]) -> "SyncTools[Any]": ...
    def tools(self, framework: str = "plain", **options: Unpack["ToolOptions"]) -> "SyncTools[Any]":
        """Every skill that this client may use, as a tool of that framework; plain ones block."""
        # As in the client: much to import for one that only calls.
        from dragoman.sdk.client.tool_frameworks import form_of
        from dragoman.sdk.client.tools import SyncTools, source_of

        refuse_inside_a_loop("await client.tools(…)")
        return SyncTools(source_of(self._client, options), form_of(framework, blocking=True)).refresh()

    def card(self, agent_id: str, dialect: str = "platform") -> JsonObject:
        """The card of an agent, in the words of any dialect."""
        return BACKGROUND.run(lambda: self._client.card(agent_id, dialect), instead="await client.card(…)")

    def agent(self, agent_id: str) -> JsonObject:
        """An agent as the hub knows it."""
        return BACKGROUND.run(lambda: self._client.agent(agent_id), instead="await client.agent(…)")

    def register(self, card_or_url: Mapping[str, Json] | str, **more: Json) -> JsonObject:
        """Register an agent by its card, or by the URL where it answers."""
        return BACKGROUND.run(lambda: self._client.register(card_or_url, **more), instead="await client.register(…)")

    def rate(self, call_id: str, stars: int, comment: str | None = None) -> JsonObject:
        """Say how good an ended call of yours was, from 1 to 5."""
        return BACKGROUND.run(lambda: self._client.rate(call_id, stars, comment), instead="await client.rate(…)")


def call_agent(
    agent_id: str | None = None,
    skill: str | None = None,
    input: Mapping[str, Json] | None = None,
    **options: Unpack[CallOptions],
) -> CallResult:
    """Call a skill and wait for its result; the blocking twin of `dragoman.call_agent`."""
    return BACKGROUND.run(
        lambda: current_client().call(agent_id, skill, input, **options), instead="await dragoman.call_agent(…)"
    )


def refuse_inside_a_loop(instead: str) -> None:
    """Return unless an event loop runs in this thread. Raises RuntimeError, naming the async form."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"An event loop runs in this thread, and a blocking call would stop it: use `{instead}`.")
