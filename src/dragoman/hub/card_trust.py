"""How far a card is vouched for: whether a signature on it holds, and whether it is by whoever signed it before.

    a signature that holds              signed; its key is kept, and has to sign every later card
    none                                what the card's place proves: its own endpoint serves it, or nothing
    one that does not hold              the card is refused
    none any more, or by another key    doubt: the agent is quarantined until an administrator approves

A key counts if it was kept, if whoever registers the agent gave it, or if the card's own origin publishes it. What a
card is called by is read from what was signed, and from nothing beside it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import Final

import msgspec

from dragoman.hub.card_hygiene import cleaned
from dragoman.model.agent import Agent, AgentCard, AgentStatus, CardTrust, Trust
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.net.addresses import parse
from dragoman.net.errors import NetError
from dragoman.security.card_signing import canonical
from dragoman.security.card_verifying import CardSignature, SignatureRefused, public_key, read_signature, verifies

MOST_SIGNATURES: Final = 8
MOST_SETS: Final = 2
MOST_KEYS: Final = 100  # of one key set
GIVEN: Final = "the key given at registration"
THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})

Fetch = Callable[[str], Awaitable[bytes | None]]  # a document by its URL, under the rule for addresses
SignedForms = Callable[[JsonObject], tuple[JsonObject, ...]]
Payload = tuple[JsonObject, bytes]  # a form of the card, and its canonical bytes
Candidate = tuple[CardSignature, JsonObject, str]  # a signature, a key it may be by, and whose that is
_decode = msgspec.json.Decoder().decode


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A signature that holds: what it covers, and whose it is."""

    form: JsonObject
    key: JsonObject
    by: str


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A card as far as it may be believed, and how far that is."""

    card: AgentCard
    trust: CardTrust


class CardJudge:
    """Judges the cards of agents."""

    def __init__(
        self,
        *,
        fetch: Fetch,
        read_card: Callable[[JsonObject, str | None], AgentCard],
        forms: Mapping[str, SignedForms],
    ) -> None:
        self._fetch = fetch
        self._read_card = read_card
        self._forms = forms  # by dialect, of those whose cards are signed

    async def judge(
        self, card: AgentCard, before: CardTrust, *, found_at: str | None, keys: Sequence[JsonObject] = ()
    ) -> Judged:
        """What a card is worth that was found at a URL, or was handed in, after what was known before.

        Raises BadParams where it is signed and no signature holds.
        """
        held = await self._held(card, before, found_at, keys)
        if held is None:
            trust = CardTrust(level=_proved(card, found_at))
            if before.key is not None:
                trust = _doubted(trust, before, "its card is no longer signed")
        else:
            card = self._as_signed(card, held.form, found_at)
            trust = CardTrust(level=Trust.SIGNED, key=held.key, by=held.by)
            if before.key is not None and held.key != before.key:
                trust = _doubted(trust, before, "its card is signed with another key than before")
        if before.doubt and not trust.doubt:
            trust = _doubted(trust, before, before.doubt)
        return Judged(card=card, trust=trust)

    async def _held(
        self, card: AgentCard, before: CardTrust, found_at: str | None, given: Sequence[JsonObject]
    ) -> Held | None:
        """The signature that holds; None where there is none to be checked."""
        forms = None if card.original is None else self._forms.get(card.original.dialect)
        if forms is None or card.original is None:
            return None
        came: Json = _decode(card.original.as_it_came)
        listed: Json = came.get("signatures") if is_object(came) else None
        if not is_object(came) or not listed:
            return None
        signatures, problems = _read(listed)
        payloads = [(form, payload) for form in forms(came) if (payload := canonical(form)) is not None]
        known = [] if before.key is None else [(before.key, before.by)]
        known += [(key, GIVEN) for key in map(_given_key, given)]
        held = _fullest(payloads, [(signature, *key) for signature in signatures for key in known])
        if held is not None:
            return held
        origins = {origin_of(place) for place in (found_at, _called_at(card)) if place}
        published = Published(self._fetch, origins)
        found: list[Candidate] = []
        for signature in signatures:
            try:
                if signature.jku is not None:
                    found.append((signature, *await published.key(signature.jku, signature.kid)))
                elif known:
                    problems.append("it is by none of the keys that count, and names no key set")
            except SignatureRefused as refused:
                problems.append(str(refused))
        held = _fullest(payloads, found)
        if held is None and (found or problems):
            raise _bad("it does not hold: the card was changed, or another key signed it" if found else problems[0])
        return held  # None: nobody can tell, for it says neither by which key, nor where that is.

    def _as_signed(self, card: AgentCard, form: JsonObject, found_at: str | None) -> AgentCard:
        """The card read from what was signed. It is called where that says, or where it was found: nowhere else."""
        read = self._read_card(form, None if card.original is None else card.original.dialect)
        places = {origin_of(each.url or "") for each in read.endpoints} | {found_at and origin_of(found_at)}
        endpoints = tuple(each for each in card.endpoints if origin_of(each.url or "") in places)
        if not endpoints:
            raise _bad("it covers none of the card's endpoints")
        return cleaned(msgspec.structs.replace(read, id=card.id, endpoints=endpoints, original=card.original))


class Published:
    """The keys that a card's own origins publish; each set is fetched once, and no more than a few."""

    def __init__(self, fetch: Fetch, origins: Set[str | None]) -> None:
        self._fetch = fetch
        self._origins = origins
        self._sets: dict[str, JsonObject] = {}

    async def key(self, jku: str, kid: str | None) -> tuple[JsonObject, str]:
        """The key of that id, and the origin that publishes it. Raises SignatureRefused."""
        origin = origin_of(jku)
        if origin is None or origin not in self._origins:
            raise SignatureRefused(
                f"its key set is at another origin than the card ({jku[:200]}): register it with card_keys"
            )
        if jku not in self._sets:
            if len(self._sets) == MOST_SETS:
                raise SignatureRefused(f"more than {MOST_SETS} key sets")
            published = _key_set(await self._fetch(jku))
            if published is None:
                raise SignatureRefused(f"no key set can be read at {jku[:200]}")
            self._sets[jku] = published
        key = _named_key(self._sets[jku], kid)
        if key is None:
            raise SignatureRefused(f"{jku[:200]} has no key {str(kid)[:100]!r} that signs cards")
        return key, origin


def approved(trust: CardTrust) -> CardTrust:
    """The same without a doubt: what was offered is the key from now on."""
    return CardTrust(level=trust.level, key=trust.offered, by=trust.by if trust.offered is not None else "")


def is_same_card(card: AgentCard, seen: bytes | None) -> bool:
    """Whether an agent's endpoint shows the very card that was registered, whoever signed it."""
    if card.original is None or seen is None:
        return False
    ours, theirs = _decode(card.original.as_it_came), _decode(seen)
    return is_object(ours) and is_object(theirs) and _bare(ours) == _bare(theirs)


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a URL that could be dialled; this machine has one origin, whichever of its names."""
    try:
        target = parse(url)
    except NetError:
        return None
    if target.host in THIS_MACHINE:
        return f"{target.scheme}://localhost:{target.port}"
    return f"{target.scheme}://{target.authority}"


def _proved(card: AgentCard, found_at: str | None) -> Trust:
    """What it proves that a card was found there: that its endpoint serves it, if that is where it is called."""
    if found_at is None or origin_of(found_at) is None:
        return Trust.UNVERIFIED
    return Trust.ENDPOINT if origin_of(_called_at(card)) == origin_of(found_at) else Trust.UNVERIFIED


def _doubted(trust: CardTrust, before: CardTrust, why: str) -> CardTrust:
    """What was known stays, until somebody says otherwise."""
    return msgspec.structs.replace(trust, key=before.key, offered=trust.key, doubt=why)


def _read(listed: Json) -> tuple[list[CardSignature], list[str]]:
    """The signatures that can be checked, and what is wrong with the others."""
    if not is_array(listed) or len(listed) > MOST_SIGNATURES:
        raise _bad(f"expected a list of at most {MOST_SIGNATURES}")
    signatures: list[CardSignature] = []
    problems: list[str] = []
    for each in listed:
        try:
            signatures.append(read_signature(each))
        except SignatureRefused as refused:
            problems.append(str(refused))
    return signatures, problems


def _fullest(payloads: Sequence[Payload], candidates: Sequence[Candidate]) -> Held | None:
    """The signature that holds and covers most of the card."""
    for form, payload in payloads:
        for signature, key, by in candidates:
            if verifies(signature, payload, key):
                return Held(form=form, key=key, by=by)
    return None


def _key_set(fetched: bytes | None) -> JsonObject | None:
    try:
        published: Json = None if fetched is None else _decode(fetched)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return published if is_object(published) else None


def _named_key(published: JsonObject, kid: str | None) -> JsonObject | None:
    """The key of that id; without one the only key there is."""
    listed: Json = published.get("keys")
    keys = [key for key in listed[:MOST_KEYS] if is_object(key)] if is_array(listed) else []
    named = [key for key in keys if key.get("kid") == kid] if kid is not None else keys
    return public_key(named[0]) if len(named) == 1 else None


def _given_key(given: JsonObject) -> JsonObject:
    key = public_key(given)
    if key is None:
        message = "expected public JWKs of P-256, RSA or Ed25519"
        raise BadParams(f"card_keys: {message}", errors=[{"path": "card_keys", "message": message}])
    return key


def _called_at(card: AgentCard) -> str:
    return next((each.url for each in card.endpoints if each.url is not None), "")


def _bare(card: JsonObject) -> JsonObject:
    return {name: value for name, value in card.items() if name != "signatures"}


def _bad(message: str) -> BadParams:
    path = "agent_card.signatures"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def standing(agent: Agent, trust: CardTrust, *, protected: bool) -> Agent:
    """The agent as its card is worth; in doubt it is quarantined, and stays so whatever it shows next.

    Where nobody is asked who he is, everybody is the administrator who would have to approve.
    """
    if trust.doubt and not protected:
        trust = approved(trust)
    status = AgentStatus.QUARANTINED if trust.doubt else agent.status
    return msgspec.structs.replace(agent, trust=trust, status=status)
