"""The caller's side: agents are called, found, registered and rated through one hub, whatever dialect each speaks.

A client may be made at module level and never closed. What a running handler is doing passes through by itself
(`asking.py`); what never reached the hub is tried again (`retrying.py`); streams are taken up where they broke off
(`streams.py`).
"""

import os
from collections.abc import AsyncGenerator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, Unpack, overload
from urllib.parse import quote, urlencode

import msgspec

from dragoman.model.json import Json, JsonObject, is_array
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock
from dragoman.sdk import scope
from dragoman.sdk.client.asking import ACCEPTED_MS, CALL_MS, STREAM_MS, Asked, Call, CallOptions, Filters, ask_for
from dragoman.sdk.client.callbacks import Callbacks
from dragoman.sdk.client.handles import CallHandle
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.client.hub_api import HubApi, call_path, object_of
from dragoman.sdk.client.results import CallResult, FoundAgent, StreamEvent
from dragoman.sdk.client.retrying import WAITS_S
from dragoman.sdk.client.settings import TOKEN_SETTING, URL_SETTING
from dragoman.sdk.client.step import Then, steps_body
from dragoman.sdk.client.streams import Ears

if TYPE_CHECKING:
    from dragoman.sdk.client.sync import SyncClient
    from dragoman.sdk.client.tool_forms import PlainTool
    from dragoman.sdk.client.tool_frameworks import Framework
    from dragoman.sdk.client.tools import ToolOptions, Tools
    from dragoman.security.key_manager import KeyManager

PAGE: Final = 100


class A2AClient:
    """One hub, as callers use it. Environment and token file are read when it is made; nothing is opened."""

    callbacks: ClassVar[type[Callbacks]] = Callbacks

    def __init__(
        self,
        hub: str | None = None,
        api_key: str | Secret | None = None,
        *,
        signing_secret: str | Secret | None = None,
        retries: int = len(WAITS_S),
        clock: Clock | None = None,
        http: HubHttp | None = None,
    ) -> None:
        """Hub: given, DRAGOMAN_URL, the one on this machine. `retries=0`: nothing is tried again.

        `signing_secret`: the one that came with the key; each request is signed with it, anew each time.
        """
        self._http = http or HubHttp(hub, api_key, signing_secret=signing_secret, clock=clock)
        self._api = HubApi(self._http, retries, CallHandle)

    def __repr__(self) -> str:
        return f"A2AClient({self.url!r})"

    @property
    def url(self) -> str:
        """The hub's address."""
        return self._http.url

    @property
    def sync(self) -> "SyncClient":
        """The same client for code that cannot await."""
        # A thread and a loop of its own: only for those who ask for it.
        from dragoman.sdk.client.sync import SyncClient

        return SyncClient(self)

    @staticmethod
    def direct(url: str, dialect: str | None = None, keys: "KeyManager | None" = None) -> "A2AClient":
        """A client of one agent, with no hub in between: it reads the agent's card and speaks its dialect.

        `keys` has the credentials that are shown to it, where its card asks for one.
        """
        # Every dialect and its probe: much to import for a client that only talks to a hub.
        from dragoman.sdk.direct.direct import direct

        return direct(url, dialect, keys)

    def use_token(self, token: str) -> None:
        """Show this token from now on."""
        self._http.use_token(token)

    async def close(self) -> None:
        """Close the connections of the running loop at once."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- calling

    async def call(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """Call a skill and wait for its result; without `target` the hub picks the best agent that has it.

        Options: message, timeout_ms (30000), priority, conversation_id, metadata, idempotency_key, delivery.
        Raises what the call failed with, and InputRequired where the agent asks something.
        """
        return await self._api.call(self._asked(target, skill, input, options, most_ms=CALL_MS))

    async def stream(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[StreamEvent]:
        """Call a skill and hear what happens: start, progress and chunks, then complete with the result.

        Options are those of `call` (timeout_ms 3600000). A lost connection is taken up again by itself. Leaving the
        iteration does not end the call.
        """
        asked = self._asked(target, skill, input, options, most_ms=STREAM_MS)
        async for event in self._api.events(Ears(self._api.clock), asked):
            yield event

    async def submit(
        self,
        target: str | None = None,
        skill: str | None = None,
        input: Mapping[str, Json] | None = None,
        *,
        callback_url: str | None = None,
        callback_headers: Mapping[str, str] | None = None,
        then: Then = (),
        **options: Unpack[CallOptions],
    ) -> CallHandle:
        """Have a call carried out without waiting for it: it is on the hub's disk when this returns.

        Options are those of `call` (timeout_ms: a day). The call goes on when the handler that made it is done.
        `then` names the steps that follow it.
        """
        options = {"idempotency_key": self._api.clock.new_id("key_"), **options}
        asked = self._asked(target, skill, input, options, most_ms=ACCEPTED_MS, waited=False)
        body = dict(asked.body)
        if callback_url is not None:
            headers = {"headers": dict(callback_headers)} if callback_headers else {}
            body["callback"] = {"url": callback_url, **headers}
        if then:
            body["then"] = steps_body(then)
        reply = await self._api.ask("POST", "/v1/a2a/call/async", body=body, headers=asked.headers)
        return self.handle(str(object_of(reply)["call_id"]))

    def handle(self, call_id: str) -> CallHandle:
        """A call that was made before, by this process or another one with the same key."""
        return CallHandle(self._api, call_id)

    # -- agents

    async def discover(self, skill: str | None = None, **filters: Unpack[Filters]) -> AsyncGenerator[FoundAgent]:
        """The agents that fit, best first, page after page; at most `limit` of them.

        Filters: q, tag, capability, dialect, status, min_rating, max_p95_ms, min_availability.
        """
        left, tag = filters.pop("limit", None), filters.pop("tag", None)
        given = [("tag", one) for one in ((tag,) if isinstance(tag, str) else tag or ())]
        for name, value in (("skill", skill), *filters.items()):
            if value is not None:
                given.append((name, str(value)))
        cursor = ""
        while left is None or left > 0:
            asked = [*given, ("limit", str(PAGE if left is None else min(left, PAGE))), ("cursor", cursor)]
            page = object_of(await self._api.ask("GET", f"/v1/a2a/discover?{urlencode(asked)}"))
            found: Json = page.get("agents")
            for agent in msgspec.convert(found if is_array(found) else [], list[FoundAgent]):
                yield agent
                left = None if left is None else left - 1
            cursor = str(page.get("next_cursor") or "")
            if not cursor:
                return

    @overload
    async def tools(
        self, framework: Literal["plain"] = "plain", **options: Unpack["ToolOptions"]
    ) -> "Tools[PlainTool]": ...
    @overload
    async def tools(
        self, framework: Literal["openai", "mcp"], **options: Unpack["ToolOptions"]
    ) -> "Tools[JsonObject]": ...
    @overload
    async def tools(self, framework: "Framework", **options: Unpack["ToolOptions"]) -> "Tools[Any]": ...
    async def tools(self, framework: str = "plain", **options: Unpack["ToolOptions"]) -> "Tools[Any]":
        """Every skill that this client may use, as a tool of that framework; a list, `refresh()` renews it.

        Options: skill, agent, q, tag, limit, timeout_ms, conversation_id, raise_errors. Raises MissingExtra where the
        framework is not installed.
        """
        # Much to import for a client that only calls; a framework, only where it is named.
        from dragoman.sdk.client.tool_frameworks import form_of
        from dragoman.sdk.client.tools import Tools, source_of

        return await Tools(source_of(self, options), form_of(framework, blocking=False)).refresh()

    async def card(self, agent_id: str, dialect: str = "platform") -> JsonObject:
        """The card of an agent, in the words of any dialect. Raises AgentNotFound."""
        return object_of(await self._api.ask("GET", _card_path(agent_id, dialect)))

    async def agent(self, agent_id: str) -> JsonObject:
        """An agent as the hub knows it: how it stands, its `card`, and which of its skills this client may use, in
        `usable`. Raises AgentNotFound.
        """
        return object_of(await self._api.ask("GET", f"/v1/agents/{quote(agent_id, safe='@')}"))

    async def register(self, card_or_url: Mapping[str, Json] | str, **more: Json) -> JsonObject:
        """Register an agent by its card, in any dialect, or by the URL where it answers; what the hub said to it.

        `more`: id, dialect, credentials, rate_limits, tags, open, private.
        """
        what = {"url": card_or_url} if isinstance(card_or_url, str) else {"agent_card": dict(card_or_url)}
        return object_of(await self._api.ask("POST", "/v1/a2a/registry", body={**what, **more}))

    async def rate(self, call_id: str, stars: int, comment: str | None = None) -> JsonObject:
        """Say how good an ended call of yours was, from 1 to 5; a later word replaces an earlier one."""
        body: JsonObject = {"rating": stars} if comment is None else {"rating": stars, "comment": comment}
        return object_of(await self._api.ask("POST", f"{call_path(call_id)}/rating", body=body))

    def _asked(
        self,
        target: str | None,
        skill: str | None,
        input: Mapping[str, Json] | None,
        options: CallOptions,
        *,
        most_ms: int,
        waited: bool = True,
    ) -> Asked:
        call = Call(target=target, skill=skill, input=input, **options)
        return ask_for(call, scope=scope.current(), clock=self._api.clock, most_ms=most_ms, waited=waited)


async def call_agent(
    agent_id: str | None = None,
    skill: str | None = None,
    input: Mapping[str, Json] | None = None,
    **options: Unpack[CallOptions],
) -> CallResult:
    """Call a skill and wait for its result, with the client of the handler that runs, else one for the process.

    Options are those of `A2AClient.call`.
    """
    return await current_client().call(agent_id, skill, input, **options)


def current_client() -> A2AClient:
    """The client of the handler that runs, else the one of this process."""
    running = scope.current()
    if running is not None and running.client is not None:
        return running.client
    return _of_process(os.environ.get(URL_SETTING), os.environ.get(TOKEN_SETTING))


@lru_cache(maxsize=8)
def _of_process(hub: str | None, token: str | None) -> A2AClient:
    return A2AClient(hub, token)


def _card_path(agent_id: str, dialect: str) -> str:
    # All dialects at once are much to import for a client that only calls.
    from dragoman.dialects import DIALECTS
    from dragoman.dialects.dialect import Level

    if dialect not in DIALECTS:
        raise ValueError(f"There is no dialect {dialect!r}; there are: {', '.join(DIALECTS)}.")
    named = quote(agent_id, safe="@")
    looks = [route for route in DIALECTS[dialect].routes if route.method == "GET" and route.name in ("card", "agent")]
    for route in looks:
        if "{agent}" in route.path:
            return route.path.replace("{agent}", named)
    mounted = next(route for route in looks if route.level is not Level.HUB)
    return f"/agents/{named}/{dialect}{mounted.path}"
