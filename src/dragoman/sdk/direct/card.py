"""What a look at an agent's URL comes to for a client without a hub: the card to call by, and the skill meant."""

import msgspec

from dragoman.delivery.probe import Examined, Spoken, Verdict
from dragoman.delivery.probe.look import bare_card, endpoint_of
from dragoman.delivery.probe.report import why_not
from dragoman.dialects import DIALECTS
from dragoman.model.agent import AgentCard, AuthScheme, Binding, Skill
from dragoman.model.errors import AgentUnavailable, BadParams, NotSupported, SkillNotFound
from dragoman.model.fit import Feature
from dragoman.sdk.errors import put_into_words


def usable_card(seen: Examined) -> AgentCard:
    """The card with the endpoint to call: of the dialect that was named, else the first that we have words for."""
    card, named = seen.card, seen.named
    if card is None:
        return _unseen(seen)
    for endpoint in card.endpoints:
        spoken = DIALECTS.get(endpoint.dialect)
        if spoken is not None and endpoint.binding in spoken.bindings and named in (None, endpoint.dialect):
            auth = card.auth or ((AuthScheme(kind="bearer"),) if seen.locked else ())
            return msgspec.structs.replace(card, endpoints=(endpoint,), auth=auth)
    found = ", ".join(dict.fromkeys(each.dialect for each in card.endpoints)) or "nothing that is known"
    raise NotSupported(f"{card.name} does not speak {named or 'any dialect that is known'}; it speaks {found}.")


def _unseen(seen: Examined) -> AgentCard:
    """The card of an agent that shows none and answers no question: whoever names its dialect knows it."""
    if seen.named is None:
        why = why_not(seen)
        if seen.verdict is Verdict.SILENT:
            raise AgentUnavailable(f"Nothing answers at {seen.url[:200]}.", reason=seen.reach or "silent")
        error = BadParams(f"{seen.url[:200]}: {why}", seen=[each.line for each in seen.tried])
        raise put_into_words(error, f"Where you know what it speaks, say so: dialect= one of {', '.join(DIALECTS)}.")
    card = _bare(seen, seen.named) if seen.found is None else seen.found.card
    for endpoint in card.endpoints:
        if endpoint.dialect == seen.named and endpoint.binding in DIALECTS[seen.named].bindings:
            return msgspec.structs.replace(card, endpoints=(endpoint,))
    return _bare(seen, seen.named)


def _bare(seen: Examined, named: str) -> AgentCard:
    """What it can do is not known: it is asked for whatever skill the caller names, and for streams."""
    dialect = DIALECTS[named]
    spoken = Spoken(
        dialect=named,
        binding=next(each for each in Binding if each in dialect.bindings),
        url=seen.url,
        claimed=True,
        answered=True,
        evidence="named",
    )
    endpoint = endpoint_of(spoken, DIALECTS, streaming=True)
    if dialect.listen is not None:
        endpoint = msgspec.structs.replace(endpoint, features=endpoint.features | {Feature.STREAM})
    # Whoever has a key for it shows it.
    auth = (AuthScheme(kind="bearer"),)
    return msgspec.structs.replace(bare_card(seen.url), skills=(), endpoints=(endpoint,), auth=auth)


def skill_of(card: AgentCard, asked: str | None) -> Skill | None:
    """The skill that is meant: the one asked for, the agent's default, or its only one. Raises SkillNotFound."""
    supported = [each.id for each in card.skills]
    if asked is not None:
        skill = card.skill(asked)
        if skill is None and supported:
            listed = ", ".join(supported)
            raise SkillNotFound(
                f"{card.name} has no skill {asked!r}. It has: {listed}.", skill=asked, supported=supported
            )
        return skill
    if card.default_skill is not None:
        return card.skill(card.default_skill)
    if len(card.skills) == 1:
        return card.skills[0]
    if Feature.PARTS not in card.endpoints[0].features:
        listed = f": {', '.join(supported)}" if supported else ""
        raise SkillNotFound(f"Name one of the skills of {card.name}{listed}.", supported=supported)
    return None


def takes_text_only(card: AgentCard, skill: Skill | None) -> bool:
    """Whether the skill takes no JSON."""
    modes = (skill.input_modes if skill is not None else ()) or card.input_modes
    return bool(modes) and all(mode.startswith("text") for mode in modes)
