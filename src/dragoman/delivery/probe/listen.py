"""Hear which dialects are really spoken, place by place: those that a card claims, and those that it does not.

    what a card claims ─┐                       ┌─ the first three questions, always
    the URL given ──────┴─ one place at a time ─┴─ the others, where a card points there or nothing has answered

A place is an address as it is given, or with its final slash toggled where only that one answers.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dragoman.delivery.probe.asker import Asker
from dragoman.delivery.probe.findings import Oddity, SeenCard, Spoken
from dragoman.delivery.probe.oddities import oddity, of_frame
from dragoman.delivery.probe.places import below, each_once, real_places, same_place, toggled
from dragoman.delivery.probe.questions import (
    DOTTED,
    PLATFORM,
    V03,
    V10,
    VAULT,
    Question,
    Reaction,
    describe,
    first_three,
    frame_of,
    questions,
)
from dragoman.delivery.probe.together import understood
from dragoman.dialects.dialect import Dialect
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_object

_MOVED: Final = (307, 308)
_ELSEWHERE: Final = (404, 405, *_MOVED)
_BY_THREE: Final = frozenset({V10, V03, VAULT})


class Listener:
    """One look at the endpoints of one URL."""

    def __init__(
        self, url: str, found: SeenCard | None, *, asker: Asker, dialects: Mapping[str, Dialect], everything: bool
    ) -> None:
        self.spoken: list[Spoken] = []
        self.oddities: dict[str, Oddity] = {}
        self._url = url
        self._kind = None if found is None else found.dialect
        self._claims = () if found is None else found.card.endpoints
        self._asker = asker
        self._framed = frozenset(slug for slug, each in dialects.items() if each.methods or each.methods_begin)
        self._three = first_three(dialects)
        self._own = questions(dialects)
        self._everything = everything
        self._slashes: dict[str, str] = {}  # addresses that work only with the slash toggled
        self._asked: set[tuple[str, str]] = set()  # what was asked, and where

    async def listen(self, named: str | None) -> None:
        """Ask, and keep what answers; a dialect that is named comes first."""
        if named is not None:
            await self._ask_named(named)
        for place in self._framed_places() or [self._url]:
            await self._ask_three(place)
        for claim in self._claims:
            await self._ask_claimed(claim)
        if not self._answered:
            await self._ask_three(self._url)
        if not self._answered or self._everything:
            await self._ask_others()
        self._note_silence()

    @property
    def _answered(self) -> bool:
        return any(each.answered for each in self.spoken)

    # -- what is asked

    async def _ask_named(self, dialect: str) -> None:
        claimed = [place for each in self._claims if each.dialect == dialect for place in self._real(each)]
        for place in each_once((*claimed, self._url)):
            if dialect in _BY_THREE:
                await self._ask_three(place)
            if not self._answered:
                await self._ask_for(dialect, place)

    async def _ask_three(self, place: str) -> None:
        if self._calls_at(place) or not self._first("three", place):
            return
        one, two, three = [await self._ask(question, place) for question in self._three]
        if one.locked and two.locked and three.locked:
            self._believe(place, one)
            return
        dotted = None
        if self._kind == DOTTED and self._first(self._own[DOTTED][0].asks, place):
            dotted = await self._ask(self._own[DOTTED][0], place)
        for meant in understood(one, two, three, kind=self._kind, dotted=dotted):
            self._odd(meant.oddity)
            self._keep(
                meant.dialect,
                meant.by,
                evidence=meant.evidence,
                answered=meant.answered,
                version=meant.version,
                note=meant.note,
            )
        if (one.yes or two.yes or three.yes) and (one.broken or two.broken or three.broken):
            self._odd(oddity("Q5", "what it does not understand breaks it: HTTP 500"))

    async def _ask_claimed(self, claim: Endpoint) -> None:
        """Ask for what a card names beside the first three."""
        for place in self._real(claim):
            if claim.dialect == PLATFORM:
                await self._reach(claim, place)
            elif claim.binding is Binding.HTTP or claim.dialect not in _BY_THREE:
                await self._ask_for(claim.dialect, place, claim)

    async def _ask_for(self, dialect: str, place: str, claim: Endpoint | None = None) -> None:
        """Ask the questions that are this dialect's alone, until one is answered."""
        for question in self._own.get(dialect, ()):
            if not self._first(question.asks, place):
                continue
            tenant = None if claim is None else claim.tenant
            reaction = await self._ask(question, below(place, tenant) if question.binding is Binding.HTTP else place)
            if reaction.yes or (reaction.locked and claim is not None):
                self._keep(dialect, reaction, evidence=reaction.evidence, locked=reaction.locked, at=place)
                return

    async def _ask_others(self) -> None:
        """Ask for whatever nothing points to, until something answers."""
        for place in each_once((*self._framed_places(), self._url)):
            for dialect in self._own:
                if self._calls_at(place) or (self._answered and not self._everything):
                    return
                await self._ask_for(dialect, place)

    async def _ask(self, question: Question, place: str) -> Reaction:
        """One question, at the address or at the one that differs in its final slash."""
        url = self._slashes.get(place, place) if question.framed else place
        request = question.request(url, self._asker.nonce)
        reply = await self._asker.ask(question.asks, request, describe)
        other = toggled(url) if question.framed and url == place else None
        if reply is not None and other is not None and reply.status in _ELSEWHERE and frame_of(reply) is None:
            again = question.request(other, self._asker.nonce)
            second = await self._asker.ask(question.asks, again, describe)
            if second is not None and second.status not in _ELSEWHERE:
                self._slashes[place] = other
                self._odd(_slash(reply, place))
                request, reply, url = again, second, other
        if reply is not None and question.framed:
            self._odd(of_frame(frame_of(reply), _id_of(request)))
        return Reaction(question=question, url=url, reply=reply)

    async def _reach(self, claim: Endpoint, place: str) -> None:
        """All that can be seen of an endpoint at which every POST is a call: whether somebody is there."""
        reply = await self._asker.ask("reach", HttpRequest(method="GET", url=place), describe)
        spoken = _of_claim(claim, place, "no answer" if reply is None else f"GET → {describe(reply)}")
        note = "" if reply is None else "every POST there is a call"
        self.spoken.append(msgspec.structs.replace(spoken, answered=reply is not None, asked=False, note=note))

    # -- where

    def _framed_places(self) -> list[str]:
        claimed = [each for each in self._claims if each.binding is Binding.JSONRPC and each.dialect in self._framed]
        return each_once(place for each in claimed for place in self._real(each))

    def _real(self, claim: Endpoint) -> Iterable[str]:
        url = claim.url or ""
        if claim.binding is Binding.GRPC:
            return ()
        places = real_places(url, self._url)
        if places[0] != url:
            self._odd(oddity("Q34", f"the card names {url}"))
        return places

    def _calls_at(self, url: str) -> bool:
        """Whether every POST at an address is a call, so that nothing can be asked there."""
        return any(each.dialect == PLATFORM and same_place(each.url or "", url) for each in self._claims)

    def _claim(self, dialect: str, binding: Binding, place: str) -> Endpoint | None:
        for each in self._claims:
            if (each.dialect, each.binding) == (dialect, binding):
                named = real_places(each.url or "", self._url)
                if any(same_place(one, place) for one in named):
                    return each
        return None

    def _first(self, asks: str, place: str) -> bool:
        """Whether this was not asked there before; from now on it was."""
        key = (asks, place.rstrip("/"))
        if key in self._asked:
            return False
        self._asked.add(key)
        return True

    # -- what is kept

    def _keep(
        self,
        dialect: str,
        reaction: Reaction,
        *,
        evidence: str,
        answered: bool = True,
        locked: bool = False,
        version: str | None = None,
        note: str = "",
        at: str | None = None,
    ) -> None:
        place, binding = at or reaction.url, reaction.question.binding
        claim = self._claim(dialect, binding, place)
        self.spoken.append(
            Spoken(
                dialect=dialect,
                binding=binding,
                url=reaction.question.endpoint(reaction.url if at is None else at),
                claimed=claim is not None,
                answered=answered,
                evidence=evidence,
                version=version or (None if claim is None else claim.version),
                tenant=None if claim is None else claim.tenant,
                locked=locked,
                note=note,
            )
        )

    def _believe(self, place: str, reaction: Reaction) -> None:
        """Somebody is there and wants a credential first: what the card claims is believed for now."""
        for claim in self._claims:
            if claim.dialect in self._framed and self._claim(claim.dialect, Binding.JSONRPC, place) is claim:
                self._keep(claim.dialect, reaction, evidence=reaction.evidence, locked=True)

    def _note_silence(self) -> None:
        """What a card claims and nothing answers for."""
        known = {(each.dialect, each.binding) for each in self.spoken}
        for claim in self._claims:
            if (claim.dialect, claim.binding) not in known:
                unasked = claim.binding is Binding.GRPC
                spoken = _of_claim(claim, claim.url or "", "gRPC" if unasked else self._last_words(claim))
                self.spoken.append(msgspec.structs.replace(spoken, asked=not unasked))

    def _last_words(self, claim: Endpoint) -> str:
        names = {each.asks for each in self._own.get(claim.dialect, ()) if each.binding is claim.binding}
        if claim.binding is Binding.JSONRPC:
            names |= {each.asks for each in self._three if each.dialect == claim.dialect}
        said = [f"{each.what} → {each.says}" for each in self._asker.tried if each.what in names]
        return said[-1] if said else "no answer"

    def _odd(self, seen: Oddity | None) -> None:
        if seen is not None:
            self.oddities.setdefault(seen.id, seen)


def _of_claim(claim: Endpoint, url: str, evidence: str) -> Spoken:
    return Spoken(
        dialect=claim.dialect,
        binding=claim.binding,
        url=url,
        claimed=True,
        answered=False,
        evidence=evidence,
        version=claim.version,
        tenant=claim.tenant,
    )


def _slash(reply: HttpReply, place: str) -> Oddity:
    want = "without" if place.endswith("/") else "with"
    number = "Q16" if reply.status in _MOVED else "Q14"
    return oddity(number, f"its address answers {reply.status}, and works {want} a final slash")


def _id_of(request: HttpRequest) -> str | None:
    body: Json = msgspec.json.decode(request.body)
    found: Json = body.get("id") if is_object(body) else None
    return found if isinstance(found, str) else None
