"""Look at a URL: find its card, hear what is really spoken there, and decide by what to call it.

A card alone is never believed: cards name wrong hosts, promise what is not there, and leave out what is. Nothing here
starts any work; `send.py` does, and only when it is told to.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dragoman.delivery.probe.asker import Asker, Fetch
from dragoman.delivery.probe.card import find_card
from dragoman.delivery.probe.findings import Examined, Oddity, SeenCard, Spoken
from dragoman.delivery.probe.introduced import meet
from dragoman.delivery.probe.listen import Listener
from dragoman.delivery.probe.oddities import oddity, of_card
from dragoman.delivery.probe.places import name_of
from dragoman.delivery.probe.questions import V03, V10
from dragoman.dialects.dialect import Dialect
from dragoman.dialects.text import id_of_name
from dragoman.model.agent import AgentCard, Binding, Endpoint, Skill
from dragoman.model.fit import Feature
from dragoman.model.http import NO_HEADERS, Headers
from dragoman.ports.clock import Clock

# What the hub would rather use among those that no card puts in an order; dialects that are not here come last.
_RANKS: Final = {
    (V10, Binding.JSONRPC): 0,
    (V03, Binding.JSONRPC): 1,
    (V10, Binding.HTTP): 2,
    (V03, Binding.HTTP): 3,
    (V10, Binding.GRPC): 4,
    (V03, Binding.GRPC): 5,
}
_LAST: Final = 6
_STREAMS: Final = frozenset({Feature.STREAM, Feature.SUBSCRIBE})


async def look(
    url: str,
    *,
    fetch: Fetch,
    dialects: Mapping[str, Dialect],
    clock: Clock,
    named: str | None = None,
    credentials: Headers = NO_HEADERS,
    everything: bool = False,
) -> Examined:
    """Everything that can be found out about a URL without starting work there.

    `named` is a dialect to try first. The credentials go to the URL's own origin alone, and only where one is wanted.
    `everything`: also ask for what nothing points to.
    """
    asker = Asker(fetch, clock, url=url, credentials=credentials)
    introduces = None if named is None else dialects[named].introduce
    if named is not None and introduces is not None:
        met = await meet(url, dialects[named], introduces, asker)
        return Examined(
            url=url,
            at=clock.now(),
            card=None if met.found is None else met.found.card,
            found=met.found,
            problem=met.problem,
            spoken=() if met.spoken is None else (met.spoken,),
            tried=tuple(asker.tried),
            locked=asker.locked,
            challenge=asker.challenge,
            reach=asker.reach,
            clock_skew_s=asker.clock_skew_s,
            latency_ms=asker.latency_ms,
            named=named,
        )
    search = await find_card(url, dialects, asker)
    listener = Listener(url, search.found, asker=asker, dialects=dialects, everything=everything)
    if any(each.status is not None for each in asker.tried):
        await listener.listen(named)
    spoken = _ordered(listener.spoken, search.found, named)
    odd = [*([] if search.found is None else of_card(search.found)), *listener.oddities.values()]
    if search.wanted:
        odd.append(oddity("Q21", f"it shows no card: {search.wanted}"))
    return Examined(
        url=url,
        at=clock.now(),
        card=_card(url, search.found, spoken, dialects),
        found=search.found,
        problem=search.problem,
        spoken=tuple(spoken),
        tried=tuple(asker.tried),
        oddities=tuple(sorted(_with_unclaimed(odd, search.found, spoken), key=lambda each: int(each.id[1:]))),
        locked=asker.locked,
        challenge=asker.challenge,
        reach=asker.reach,
        clock_skew_s=asker.clock_skew_s,
        latency_ms=asker.latency_ms,
        named=named,
        everything=everything,
    )


def endpoint_of(spoken: Spoken, dialects: Mapping[str, Dialect], *, streaming: bool) -> Endpoint:
    """The endpoint by which something that was answered is called."""
    dialect = dialects[spoken.dialect]
    features = dialect.features - dialect.lacks.get(spoken.binding, frozenset())
    return Endpoint(
        dialect=spoken.dialect,
        binding=spoken.binding,
        url=spoken.url,
        version=spoken.version or spoken.dialect.partition("-")[2] or None,
        tenant=spoken.tenant,
        features=features if streaming else features - _STREAMS,
    )


def bare_card(url: str) -> AgentCard:
    """The card of an agent that has none: its host for a name, and the one skill that every such agent has."""
    name = name_of(url)
    return AgentCard(id=id_of_name(name), name=name, skills=(Skill(id="default", name="default", tags=("general",)),))


def _card(
    url: str, found: SeenCard | None, spoken: Sequence[Spoken], dialects: Mapping[str, Dialect]
) -> AgentCard | None:
    """The card to call by: what was found, with the endpoints that answer and no others."""
    answering = [each for each in spoken if each.answered]
    if not answering:
        return None
    card = bare_card(url) if found is None else found.card
    claimed = {(each.dialect, each.binding): each for each in card.endpoints}
    endpoints = [
        msgspec.structs.replace(known, url=each.url, version=each.version)
        if (known := claimed.get((each.dialect, each.binding))) is not None
        else endpoint_of(each, dialects, streaming=card.streaming)
        for each in answering
    ]
    return msgspec.structs.replace(card, endpoints=tuple(endpoints))


def _ordered(spoken: Sequence[Spoken], found: SeenCard | None, named: str | None) -> list[Spoken]:
    """What the user named, then what the card lists in its order, then what the hub would rather use."""
    listed = [] if found is None else [(each.dialect, each.binding) for each in found.card.endpoints]

    def rank(each: Spoken) -> tuple[bool, bool, int]:
        pair = (each.dialect, each.binding)
        if pair in listed:
            return each.dialect != named, False, listed.index(pair)
        return each.dialect != named, True, _RANKS.get(pair, _LAST)

    return sorted(spoken, key=rank)


def _with_unclaimed(odd: list[Oddity], found: SeenCard | None, spoken: Sequence[Spoken]) -> list[Oddity]:
    more = [each.dialect for each in spoken if each.answered and not each.claimed]
    if found is None or not more:
        return odd
    told = f"it speaks {', '.join(dict.fromkeys(more))}, which its card does not say"
    return [*odd, oddity("Q14", told)]
