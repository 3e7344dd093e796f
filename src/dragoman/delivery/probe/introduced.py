"""Look at an agent that has no card: ask it, in its own dialect, what it is and has; its answers are its card."""

from collections.abc import Callable
from hashlib import sha256

import msgspec

from dragoman.delivery.probe.asker import Asker
from dragoman.delivery.probe.findings import SeenCard, Spoken
from dragoman.delivery.probe.questions import describe
from dragoman.dialects.dialect import Dialect, Introduction
from dragoman.model.agent import Binding
from dragoman.model.errors import BadAgentReply, BadParams


class Met(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: the card, and how it was answered; or why there is none."""

    found: SeenCard | None = None
    spoken: Spoken | None = None
    problem: str = ""


async def meet(url: str, dialect: Dialect, introduce: Callable[[str], Introduction], asker: Asker) -> Met:
    """The agent at a URL, as it introduces itself."""
    talk = introduce(url)
    try:
        while (request := talk.ask()) is not None:
            reply = await asker.ask(talk.what, request, describe)
            if reply is None:
                break
            talk.hear(reply)
        if talk.card is None:
            return Met()
        raw = msgspec.json.encode(talk.card)
        card = dialect.read_card(talk.card)
    except (BadAgentReply, BadParams) as error:
        return Met(problem=f"{talk.what}, {dialect.slug}: {error.message}")
    version = card.endpoints[0].version if card.endpoints else None
    spoken = Spoken(
        dialect=dialect.slug,
        binding=Binding.JSONRPC,
        url=url,
        claimed=True,
        answered=True,
        evidence=f"it introduces itself, with {len(card.skills)} skills",
        version=version,
    )
    found = SeenCard(
        url=url, path="", dialect=dialect.slug, body=talk.card, card=card, digest=sha256(raw).hexdigest(), raw=raw
    )
    return Met(found=found, spoken=spoken)
