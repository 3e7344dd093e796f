"""Agents, for those who own and administer them: listed, shown, paused, marked, approved, removed, looked at."""

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from dragoman.dialects.dialect import place_of
from dragoman.dialects.platform.card import write_card
from dragoman.dialects.platform.inbound import number_in, whole_in
from dragoman.dialects.times import wire_time
from dragoman.hub.authorize import may_change, usable
from dragoman.hub.handle import Hub
from dragoman.model.agent import Agent, AgentStatus
from dragoman.model.answers import AgentPage, Card, Versions
from dragoman.model.call import Arrival, Caller
from dragoman.model.circuit import Circuit
from dragoman.model.errors import BadParams, NotAuthorized, NotFound
from dragoman.model.given_limits import limits_of
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.operations import ChangeAgent, Discover, GetCard, ListVersions
from dragoman.server.pages.page import Page, body_of, json_reply, limit_of, query_of

_FIGURES: Final = frozenset({"min_rating", "max_p95_ms", "min_availability"})
_FILTERS: Final = frozenset({"limit", "cursor", "status", "q", "mine"}) | _FIGURES


class AgentChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an owner may change of an agent, and what an administrator may approve."""

    status: Literal["active", "paused"] | None = None
    open: bool | None = None
    private: bool | None = None
    credentials: JsonObject | None = None
    trust: Literal["approve"] | None = None
    rate_limits: JsonObject | msgspec.UnsetType | None = msgspec.UNSET  # null: those of its card


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request that has nothing to say."""


def pages(
    hub: Hub, credential_of: Callable[[Agent], Awaitable[JsonObject]], circuit_of: Callable[[Agent], Circuit]
) -> tuple[Page, ...]:
    """The pages of agents; `credential_of` says what an owner may know of the one that is stored for its agent,
    `circuit_of` whether the agent is called at all."""

    async def listed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        values = query_of(request, _FILTERS)
        status = values.get("status")
        if status is not None and status not in set(AgentStatus):
            raise BadParams("status: expected active, paused, unreachable or quarantined")
        asked = Discover(
            text=values.get("q"),
            status=None if status is None else AgentStatus(status),
            mine=values.get("mine") == "true",
            min_rating=number_in(values, "min_rating", 0, 5),
            max_p95_ms=whole_in(values, "max_p95_ms", 0, 86_400_000),
            min_availability=number_in(values, "min_availability", 0, 1),
            limit=limit_of(values),
            cursor=values.get("cursor"),
        )
        page = await hub.handle(caller, asked, arrival)
        assert isinstance(page, AgentPage)  # noqa: S101 - what a search answers
        items = [
            shown(agent, request.hub, owner=may_change(caller, agent), circuit=circuit_of(agent))
            for agent in page.agents
        ]
        return json_reply(200, {"items": items, "next_cursor": page.cursor})

    async def one(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        answer = await hub.handle(caller, GetCard(agent=request.params["agent"]), arrival)
        item = await with_credential(_with_card(answer, request, circuit_of), answer)
        if isinstance(answer, Card):
            item["usable"] = [skill.id for skill in usable(caller, answer.agent)]
        return json_reply(200, item)

    async def with_credential(item: JsonObject, answer: object) -> JsonObject:
        if isinstance(answer, Card) and answer.owner:
            item["credential"] = await credential_of(answer.agent)
        return item

    async def changed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        change = body_of(request, AgentChange)
        asked = ChangeAgent(
            agent_id=request.params["agent"],
            status=None if change.status is None else AgentStatus(change.status),
            open=change.open,
            private=change.private,
            credentials=change.credentials,
            approve=change.trust is not None,
            rate_limits=None if change.rate_limits is msgspec.UNSET else limits_of(change.rate_limits or {}),
        )
        answer = await hub.handle(caller, asked, arrival)
        return json_reply(200, await with_credential(_with_card(answer, request, circuit_of), answer))

    async def removed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        asked = ChangeAgent(agent_id=request.params["agent"], status=AgentStatus.REMOVED)
        return json_reply(200, _with_card(await hub.handle(caller, asked, arrival), request, circuit_of))

    async def versions(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        answer = await hub.handle(caller, ListVersions(agent=request.params["agent"]), arrival)
        assert isinstance(answer, Versions)  # noqa: S101 - what the question answers
        return json_reply(200, {"items": answer.versions, "next_cursor": None})

    async def probe(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        answer = await hub.handle(caller, GetCard(agent=request.params["agent"]), arrival)
        return json_reply(200, _probe_of(answer))

    async def probed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        body_of(request, Nothing)
        asked = ChangeAgent(agent_id=request.params["agent"], probe=True)
        return json_reply(200, _probe_of(await hub.handle(caller, asked, arrival)))

    return (
        Page(method="GET", path="/v1/agents", answer=listed),
        Page(method="GET", path="/v1/agents/{agent}", answer=one),
        Page(method="PATCH", path="/v1/agents/{agent}", answer=changed),
        Page(method="DELETE", path="/v1/agents/{agent}", answer=removed),
        Page(method="GET", path="/v1/agents/{agent}/versions", answer=versions),
        Page(method="GET", path="/v1/agents/{agent}/probe", answer=probe),
        Page(method="POST", path="/v1/agents/{agent}/probe", answer=probed),
    )


def shown(agent: Agent, hub_url: str, *, owner: bool, circuit: Circuit) -> JsonObject:
    """An agent as its owners see it; others do not see where it is registered."""
    card = agent.card
    first = card.endpoints[0] if card.endpoints else None
    item: JsonObject = {
        "id": card.id,
        "uuid": agent.uuid,
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "dialect": first.dialect if first else None,
        "status": agent.status,
        "trust": agent.trusted,
        "open": agent.open,
        "private": agent.private,
        "skills": [skill.id for skill in card.skills],
        "rating": agent.figures.rating,
        "response_time_p95_ms": agent.figures.p95_ms,
        "availability": agent.figures.availability,
        "success": round(agent.figures.success, 4),
        "calls": agent.figures.calls,
        "last_seen_at": None if agent.figures.seen_at is None else wire_time(agent.figures.seen_at),
        "circuit": circuit,
        "endpoint": f"{hub_url}/v1/agents/{card.id}/a2a",
        "base_url": f"{hub_url}/agents/{card.id}/",
        "owner": agent.owner_id,
        "tags": list(agent.tags or card.tags),
        "rate_limits": msgspec.to_builtins(agent.limits),
        "registered_at": wire_time(agent.registered_at),
        "updated_at": wire_time(agent.updated_at),
    }
    if owner and first is not None:
        item["registered_endpoint"] = first.url
    if owner and agent.trust.by:
        item["signed_by"] = agent.trust.by
    if owner and agent.trust.doubt:
        item["doubt"] = agent.trust.doubt
    return item


def _probe_of(answer: object) -> JsonObject:
    """What the hub saw of an agent; for those who may change it, for it names where the agent really is."""
    assert isinstance(answer, Card)  # noqa: S101 - what is asked for here
    agent = answer.agent
    if not answer.owner:
        raise NotAuthorized(f"{agent.id} belongs to another key.", agent_id=agent.id)
    if agent.probe is None:
        raise NotFound(f"{agent.id} was registered by its card and never looked at; POST here looks at it now.")
    return agent.probe


def _with_card(answer: object, request: HttpRequest, circuit_of: Callable[[Agent], Circuit]) -> JsonObject:
    assert isinstance(answer, Card)  # noqa: S101 - what is asked for here
    item = shown(answer.agent, request.hub, owner=answer.owner, circuit=circuit_of(answer.agent))
    item["card"] = write_card(answer.agent, place_of(answer, request.hub))
    return item
