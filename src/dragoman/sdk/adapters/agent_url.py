"""An agent somewhere else, by its URL: its card is read at once, its skills are offered as they are, and every call is
passed on in the dialect that it speaks. Where it needs a key or its dialect has to be named, wrap an
`A2AClient.direct(url, dialect=…, keys=…)` in place of the URL.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, final

from dragoman.dialects.uuids import uuid_of
from dragoman.model.agent import Agent, Skill
from dragoman.model.errors import DragomanError, SkillNotFound
from dragoman.sdk.adapters.adapter import Answer, Chunk, Offer, Options, Piece, Turn, Usage, Wrapped
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.client.results import CallResult, parts_of_result
from dragoman.sdk.direct.card import skill_of
from dragoman.sdk.direct.direct import DirectHttp
from dragoman.sdk.errors import InputRequired

CANCEL_S: Final = 3.0  # for telling the agent; a handler has 5 s to clean up


def wrapped(obj: object, options: Options) -> Wrapped:
    """The agent at a URL, or of a client without a hub. Raises TypeError, AgentUnavailable, BadParams."""
    client = obj if isinstance(obj, A2AClient) else A2AClient.direct(str(obj))
    http = client._http  # pyright: ignore[reportPrivateUsage] - whose client it is can be seen nowhere else
    if not isinstance(http, DirectHttp):
        raise TypeError("A client of a hub is no agent: wrap the URL of one, or A2AClient.direct(url).")
    agent = _looked_at(http)
    offers = _offers(agent, client, options)
    if not offers:
        raise TypeError(
            f"{http.url} shows no card, so nobody knows its skills: register it at a hub (dragoman register), "
            "or wrap a function that calls it."
        )
    return Wrapped(
        name=agent.card.name, description=agent.card.description or None, skills=offers, conversational=False
    )


def _looked_at(http: DirectHttp) -> Agent:
    """What the agent says of itself, asked in a thread: here a loop may run already, which this holds up."""

    async def look() -> Agent:
        try:
            return await http._agent.agent()  # pyright: ignore[reportPrivateUsage] - it remembers what it saw
        finally:
            await http.close()

    with ThreadPoolExecutor(1, thread_name_prefix="dragoman-look") as threads:
        return threads.submit(asyncio.run, look()).result()


def _offers(agent: Agent, client: A2AClient, options: Options) -> tuple[Offer, ...]:
    """Its skills; and where it takes messages that name none, such messages."""
    named = [_offer(skill, client) for skill in agent.card.skills if skill.id != options.skill]
    try:
        skill_of(agent.card, None)
    except SkillNotFound:
        return tuple(named)
    return (Offer(run=_Passing(client, None).run, description=agent.card.description), *named)


def _offer(skill: Skill, client: A2AClient) -> Offer:
    return Offer(
        run=_Passing(client, skill).run,
        name=skill.id,
        description=skill.description,
        input_schema=skill.input_schema,
        output_schema=skill.output_schema,
    )


@final
class _Passing:
    """One skill of an agent somewhere else; None stands for messages that name none."""

    def __init__(self, client: A2AClient, skill: Skill | None) -> None:
        self._client = client
        self._skill = skill

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """Pass a call on, and back what it brings. Whoever cancels it cancels it there."""
        events = self._client.stream(
            skill=None if self._skill is None else self._skill.id,
            input=turn.input if self._takes_input else None,
            message=None if self._takes_input else turn.message,
            # Two callers may use the same id.
            conversation_id=f"conv_{uuid_of(*turn.conversation)}",
        )
        call_id = ""
        try:
            async with contextlib.aclosing(events) as stream:
                async for event in stream:
                    call_id = event.call_id
                    if event.type == "chunk":
                        yield Chunk(event.content)
                    elif event.type == "progress":
                        await turn.ctx.progress(event.progress, event.message)
                    elif event.result is not None:
                        for piece in _told(event.result):
                            yield piece
        except InputRequired as question:
            for piece in _told(await _answered(turn, question)):
                yield piece
        except asyncio.CancelledError:
            await self._cancel(call_id)
            raise

    @property
    def _takes_input(self) -> bool:
        return self._skill is not None and self._skill.input_schema is not None

    async def _cancel(self, call_id: str) -> None:
        with contextlib.suppress(DragomanError, TimeoutError):
            async with asyncio.timeout(CANCEL_S):
                await self._client.handle(call_id).cancel("cancelled by the caller")


async def _answered(turn: Turn, question: InputRequired) -> CallResult:
    """What follows when the caller has answered the agent's questions."""
    while True:
        answer = await turn.ctx.ask(question.question)
        try:
            return await question.handle.send(answer)
        except InputRequired as further:
            question = further


def _told(result: CallResult) -> tuple[Piece, ...]:
    used = result.usage
    usage = Usage(
        input_tokens=used.get("input_tokens") or 0,
        output_tokens=used.get("output_tokens") or 0,
        cost_usd=used.get("cost_usd") or 0.0,
        model=used.get("model"),
    )
    return usage, Answer(list(parts_of_result(result)) or None)
