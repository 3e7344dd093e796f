"""AgentVault's agent card, read into the canonical one and written from it.

A card that came in this dialect is served as it came, save for what the hub must change: its address, and how callers
prove who they are. Published clients load no card whose address is neither https nor `http://localhost`.
"""

import re
from typing import Annotated, Final, Literal

import msgspec

from dragoman.dialects.agentvault.content import is_web_url
from dragoman.dialects.agentvault.wire import SLUG
from dragoman.dialects.dialect import Place
from dragoman.dialects.text import shown_text
from dragoman.dialects.times import wire_time
from dragoman.model.agent import Agent, AgentCard, AuthScheme, Endpoint, Original, Provider, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import JsonObject

FEATURES: Final = frozenset({Feature.GET, Feature.SUBSCRIBE, Feature.CANCEL, Feature.CONTINUE, Feature.PARTS})
VERSION: Final = "0.2"
# The profile is 0.2; the agents its authors publish say 1.0 and speak the same.
SPOKEN: Final = frozenset({VERSION, "1.0"})
SERVICE: Final = "dragoman"  # the name under which clients keep their key for the hub
TEE: Final = "tee"  # the label of agents that run in a trusted environment; `tee:` and its type, too
MAX_SKILLS: Final = 100
MODES: Final = {"text": "text/plain", "data": "application/json", "file": "application/octet-stream"}
_LINKS: Final = {"privacy": "privacyPolicyUrl", "terms": "termsOfServiceUrl", "icon": "iconUrl"}
_LOOPBACK: Final = re.compile(r"^(https?://)(?:127\.0\.0\.1|\[::1\])(?=[:/]|$)")
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Url = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]", max_length=2048)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=127)]


class CardProvider(msgspec.Struct, frozen=True):
    """Who stands behind an agent."""

    name: Word
    url: Url | None = None
    support_contact: str | None = None


class CardTee(msgspec.Struct, frozen=True, rename="camel"):
    """The trusted environment an agent runs in."""

    type: Word
    attestation_endpoint: Url | None = None
    public_key: str | None = None
    description: str | None = None


class CardCapabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What an agent speaks and can."""

    a2a_version: Word
    mcp_version: str | None = None
    supported_message_parts: list[str] | None = None
    supports_push_notifications: bool | None = None
    tee_details: CardTee | None = None


class CardAuthentication(msgspec.Struct, frozen=True):
    """One way to prove who one is."""

    scheme: Literal["apiKey", "bearer", "oauth2", "none"]
    description: str | None = None
    token_url: Url | None = msgspec.field(default=None, name="tokenUrl")
    scopes: list[str] | None = None
    service_identifier: str | None = None


class CardSkill(msgspec.Struct, frozen=True):
    """One skill."""

    id: Word
    name: Word
    description: Annotated[str, msgspec.Meta(max_length=4096)]
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None


class AgentVaultCard(msgspec.Struct, frozen=True, rename="camel"):
    """A card, as registration demands it."""

    schema_version: Word
    human_readable_id: Name
    agent_version: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    name: Word
    description: Annotated[str, msgspec.Meta(max_length=4096)]
    url: Url
    provider: CardProvider
    capabilities: CardCapabilities
    auth_schemes: Annotated[list[CardAuthentication], msgspec.Meta(min_length=1, max_length=20)]
    skills: Annotated[list[CardSkill], msgspec.Meta(max_length=MAX_SKILLS)] | None = None
    tags: list[str] | None = None
    privacy_policy_url: Url | None = None
    terms_of_service_url: Url | None = None
    icon_url: Url | None = None
    last_updated: str | None = None


def owns_card(card: JsonObject) -> bool:
    """Whether a card has AgentVault's shape."""
    return "humanReadableId" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card; `org/name` is an alias of the agent, and `org.name` its id.

    Raises BadParams naming the field that is missing or wrong, or the version that is not spoken.
    """
    try:
        read = msgspec.convert(card, AgentVaultCard)
    except msgspec.ValidationError as error:
        raise _bad_card(error) from None
    capabilities, tee = read.capabilities, read.capabilities.tee_details
    if ".".join(capabilities.a2a_version.split(".")[:2]) not in SPOKEN:
        raise _bad("capabilities.a2aVersion", f"{capabilities.a2a_version} is not spoken here, {VERSION} is")
    for index, scheme in enumerate(read.auth_schemes):
        if scheme.scheme == "oauth2" and scheme.token_url is None:
            raise _bad(f"authSchemes[{index}].tokenUrl", "required for oauth2")
    return AgentCard(
        id=read.human_readable_id.replace("/", "."),
        aliases=(read.human_readable_id,),
        name=shown_text(read.name, 128),
        description=shown_text(read.description, 4096),
        version=read.agent_version,
        skills=_skills(read),
        endpoints=(Endpoint(dialect=SLUG, url=read.url, version=capabilities.a2a_version, features=FEATURES),),
        auth=tuple(_scheme(scheme) for scheme in read.auth_schemes),
        streaming=True,
        push=bool(capabilities.supports_push_notifications),
        labels=() if tee is None else (TEE, tee_label(tee.type)),
        tags=tuple(shown_text(tag, 256) for tag in read.tags or ()),
        input_modes=tuple(
            MODES.get(word, shown_text(word, 256)) for word in capabilities.supported_message_parts or ()
        ),
        provider=Provider(
            name=shown_text(read.provider.name, 128), url=read.provider.url, contact=read.provider.support_contact
        ),
        links={key: card[member] for key, member in _LINKS.items() if card.get(member)} or None,
        original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
    )


def write_card(agent: Agent, place: Place) -> JsonObject:
    """The card as the hub serves it: calls go to the hub, with the hub's keys."""
    card = agent.card
    is_hub = place.base_url.rstrip("/") == place.hub_url and not place.one_agent
    ours: JsonObject = {
        "url": local_name(f"{place.base_url}{'a2a/' if is_hub else f'{SLUG}/'}"),
        "name": card.name,
        "authSchemes": _auth_schemes(card, place) if place.protected else [{"scheme": "none"}],
    }
    if card.original is not None and card.original.dialect == SLUG:
        return _as_it_came(card, msgspec.json.decode(card.original.body)) | ours
    return {
        "schemaVersion": "1.0",
        "humanReadableId": human_readable_id(agent),
        "agentVersion": card.version,
        **ours,
        "description": card.description or card.name,
        "provider": _provider(card, agent.owner_id),
        "capabilities": {
            "a2aVersion": VERSION,
            "supportedMessageParts": list(MODES),
            "supportsPushNotifications": True,
        },
        "skills": [_shown_skill(skill) for skill in card.skills],
        "tags": list(dict.fromkeys((*card.tags, *agent.tags))),
        **{member: url for key, member in _LINKS.items() if is_web_url(url := (card.links or {}).get(key, ""))},
        "lastUpdated": wire_time(agent.updated_at),
    }


def human_readable_id(agent: Agent) -> str:
    """The name of the form `org/name` that an agent goes by: its own, or owner and id."""
    for alias in agent.card.aliases:
        if alias.count("/") == 1:
            return alias
    return f"{_NOT_NAME.sub('-', agent.owner_id).strip('-._') or SERVICE}/{agent.card.id}"


def local_name(url: str) -> str:
    """The same address, of this machine by its name: the published client takes no number."""
    return _LOOPBACK.sub(r"\1localhost", url)


def tee_label(kind: str) -> str:
    """The label by which agents in this kind of trusted environment are found, in whatever case it is written."""
    return f"{TEE}:{shown_text(kind, 128).lower()}"


def _skills(card: AgentVaultCard) -> tuple[Skill, ...]:
    if card.skills:
        return tuple(
            Skill(
                id=shown_text(skill.id, 128),
                name=shown_text(skill.name, 128),
                description=shown_text(skill.description, 4096),
                input_schema=skill.input_schema,
                output_schema=skill.output_schema,
            )
            for skill in card.skills
        )
    # An agent without skills can still be talked to: it gets the one that every such agent has.
    return (Skill(id="default", name="default", description=shown_text(card.description, 4096)),)


def _scheme(scheme: CardAuthentication) -> AuthScheme:
    return AuthScheme(
        kind=scheme.scheme,
        description=scheme.description,
        token_url=scheme.token_url,
        scopes=tuple(scheme.scopes or ()),
        service_identifier=scheme.service_identifier,
    )


def _auth_schemes(card: AgentCard, place: Place) -> list[JsonObject]:
    """All that the hub takes; published clients can use the first two."""
    scopes = list(card.scopes_required) or ["a2a:call"]
    token_url = local_name(f"{place.hub_url}/oauth/token")
    return [
        {"scheme": "apiKey", "service_identifier": SERVICE},
        {"scheme": "oauth2", "tokenUrl": token_url, "scopes": scopes, "service_identifier": SERVICE},
        {"scheme": "bearer", "service_identifier": SERVICE},
    ]


def _as_it_came(card: AgentCard, shown: JsonObject) -> JsonObject:
    """A card of this dialect; what people read is shown as it was cleaned, not as it came."""
    shown["description"] = card.description
    shown["capabilities"]["supportsPushNotifications"] = True  # the hub does it
    for each, skill in zip(shown.get("skills") or (), card.skills, strict=False):
        each |= {"name": skill.name, "description": skill.description}
    return shown


def _provider(card: AgentCard, owner_id: str) -> JsonObject:
    provider = card.provider or Provider(name=owner_id)
    shown: JsonObject = {"name": provider.name}
    if provider.url is not None and is_web_url(provider.url):
        shown["url"] = provider.url
    if provider.contact is not None:
        shown["support_contact"] = provider.contact
    return shown


def _shown_skill(skill: Skill) -> JsonObject:
    shown: JsonObject = {"id": skill.id, "name": skill.name, "description": skill.description or skill.name}
    if skill.input_schema is not None:
        shown["input_schema"] = skill.input_schema
    if skill.output_schema is not None:
        shown["output_schema"] = skill.output_schema
    return shown


def _bad(field: str, message: str) -> BadParams:
    path = f"agent_card.{field}"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def _bad_card(error: msgspec.ValidationError) -> BadParams:
    message, _, at = str(error).partition(" - at `")
    path = at.rstrip("`").removeprefix("$").removeprefix(".")
    if message.startswith("Object missing required field `"):
        path, message = f"{path}.{message[31:-1]}" if path else message[31:-1], "required"
    elif "matching regex" in message:
        message = "expected org/name" if path == "humanReadableId" else "expected an http or https address"
    return _bad(path, message.replace("`", ""))
