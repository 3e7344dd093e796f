"""Official cards of both versions read into the canonical one, as liberally as real cards need it.

A card that says it in both versions at once is read as one of 1.0: its endpoints of 0.3 are found all the same.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.dialects.official_card.members import bad_card, flag, member, objects, text, words
from dragoman.dialects.official_card.security import read_schemes
from dragoman.dialects.text import id_of_name, shown_text
from dragoman.model.agent import AgentCard, Binding, Endpoint, Extension, Original, Provider, Skill
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_object

V10: Final = "a2a-1.0"
V03: Final = "a2a-0.3"
FEATURES: Final = frozenset(
    {Feature.ANSWERS, Feature.GET, Feature.CANCEL, Feature.CONTINUE, Feature.PARTS, Feature.INLINE}
)
MAX_SKILLS: Final = 100
MAX_TAGS: Final = 50
MAX_EXAMPLE: Final = 4096

_BINDINGS: Final = {"JSONRPC": Binding.JSONRPC, "HTTP+JSON": Binding.HTTP, "GRPC": Binding.GRPC}
_LINKS: Final = {"documentation": ("documentationUrl", "documentation_url"), "icon": ("iconUrl", "icon_url")}
_V03_KEYS: Final = ("protocolVersion", "preferredTransport", "additionalInterfaces")
# Among endpoints of one version: which the hub would rather use. 0.3 over HTTP has bodies that can be misread.
_RANKS: Final = {
    (V10, Binding.JSONRPC): 0,
    (V10, Binding.HTTP): 0,
    (V03, Binding.JSONRPC): 1,
    (V03, Binding.HTTP): 2,
    (V10, Binding.GRPC): 3,
    (V03, Binding.GRPC): 4,
}


def features_of(dialect: str, *, streaming: bool) -> frozenset[Feature]:
    """What an official agent of that version offers, given what its card says of streams."""
    if not streaming:
        return FEATURES
    if dialect == V03:
        # Not subscribed to: in the published SDK every subscriber is one more who writes what is said into the task,
        # which then has it twice. A task whose stream broke off is asked for instead.
        return FEATURES | {Feature.STREAM}
    return FEATURES | {Feature.STREAM, Feature.SUBSCRIBE}


def owns_v10_card(card: JsonObject) -> bool:
    """Whether a card has the shape of 1.0."""
    return "supportedInterfaces" in card or "supported_interfaces" in card


def owns_v03_card(card: JsonObject) -> bool:
    """Whether a card has the shape of 0.3, and not that of 1.0."""
    return any(key in card for key in _V03_KEYS) and not owns_v10_card(card)


def read_v10_card(card: JsonObject) -> AgentCard:
    """The canonical card of one of 1.0, or of both versions merged.

    Raises BadParams naming what is missing: a name, or an interface that can be called.
    """
    endpoints = _ranked((*_v10_endpoints(card), *_v03_endpoints(card)))
    if not endpoints:
        raise bad_card("supportedInterfaces", "none with a url and a known protocolVersion")
    return _read(card, endpoints, V10)


def read_v03_card(card: JsonObject) -> AgentCard:
    """The canonical card of one of 0.3.

    Raises BadParams naming what is missing: a name, or a url that can be called.
    """
    endpoints = _ranked(_v03_endpoints(card))
    if not endpoints:
        raise bad_card("url", "required")
    return _read(card, endpoints, V03)


def _read(card: JsonObject, endpoints: tuple[Endpoint, ...], dialect: str) -> AgentCard:
    name = text(card, "name")
    if name is None:
        raise bad_card("name", "required")
    capabilities = member(card, "capabilities")
    extended = flag(capabilities, "extendedAgentCard", "extended_agent_card") or flag(
        card, "supportsAuthenticatedExtendedCard", "supports_authenticated_extended_card"
    )
    metadata = card.get("metadata")
    return AgentCard(
        id=id_of_name(name),
        name=shown_text(name, 128),
        description=shown_text(text(card, "description") or "", 4096),
        version=text(card, "version") or "1.0.0",
        skills=read_skills(card, _skill),
        endpoints=endpoints,
        auth=read_schemes(card),
        streaming=flag(capabilities, "streaming"),
        push=flag(capabilities, "pushNotifications", "push_notifications"),
        extended=extended,
        input_modes=words(card.get("defaultInputModes") or card.get("default_input_modes")),
        output_modes=words(card.get("defaultOutputModes") or card.get("default_output_modes")),
        extensions=_extensions(capabilities),
        provider=_provider(card),
        links={key: url for key, names in _LINKS.items() if (url := text(card, *names))} or None,
        metadata=metadata if is_object(metadata) and metadata else None,
        original=Original(dialect=dialect, body=msgspec.json.encode(card)),
    )


def _v10_endpoints(card: JsonObject) -> list[Endpoint]:
    found: list[Endpoint] = []
    for interface in objects(card.get("supportedInterfaces") or card.get("supported_interfaces")):
        url = text(interface, "url")
        binding = _BINDINGS.get(text(interface, "protocolBinding", "protocol_binding") or "JSONRPC")
        version = ".".join((text(interface, "protocolVersion", "protocol_version") or "1.0").split(".")[:2])
        if url is not None and binding is not None and f"a2a-{version}" in (V10, V03):
            found.append(_endpoint(card, version, binding, url, text(interface, "tenant")))
    return found


def _v03_endpoints(card: JsonObject) -> list[Endpoint]:
    """Where a card of 0.3 is reached: its main url first, then the other interfaces; none twice."""
    listed: list[tuple[str | None, str]] = []
    if text(card, "url") is not None:
        listed.append((text(card, "url"), text(card, "preferredTransport", "preferred_transport") or "JSONRPC"))
    for interface in objects(card.get("additionalInterfaces") or card.get("additional_interfaces")):
        listed.append((text(interface, "url"), text(interface, "transport") or "JSONRPC"))
    return [
        _endpoint(card, "0.3", _BINDINGS[transport], url, None)
        for url, transport in dict.fromkeys(listed)
        if url is not None and transport in _BINDINGS
    ]


def _endpoint(card: JsonObject, version: str, binding: Binding, url: str, tenant: str | None) -> Endpoint:
    dialect = f"a2a-{version}"
    features = features_of(dialect, streaming=flag(member(card, "capabilities"), "streaming"))
    if (dialect, binding) == (V03, Binding.HTTP):
        # Its SDKs disagree about how bytes are encoded there, and nothing tells them apart; all of them read links.
        features -= {Feature.INLINE}
    return Endpoint(dialect=dialect, binding=binding, url=url, version=version, tenant=tenant, features=features)


def _ranked(endpoints: tuple[Endpoint, ...] | list[Endpoint]) -> tuple[Endpoint, ...]:
    """Each endpoint once, those the hub would rather use first, in the card's own order otherwise."""
    return tuple(sorted(dict.fromkeys(endpoints), key=lambda each: _RANKS[each.dialect, each.binding]))


def read_skills(card: JsonObject, read_skill: Callable[[JsonObject], Skill | None]) -> tuple[Skill, ...]:
    """The skills of a card, each read in its own way."""
    skills = [skill for each in objects(card.get("skills"))[:MAX_SKILLS] if (skill := read_skill(each)) is not None]
    if skills:
        return tuple(skills)
    # An agent without skills can still be talked to: it gets the one that every such agent has.
    described = shown_text(text(card, "description") or "", 4096)
    return (Skill(id="default", name="default", description=described, tags=("general",)),)


def _skill(skill: JsonObject) -> Skill | None:
    name = text(skill, "id", "name")
    if name is None:
        return None
    metadata: Json = skill.get("metadata")
    return Skill(
        id=shown_text(name, 128),
        name=shown_text(text(skill, "name") or name, 128),
        description=shown_text(text(skill, "description") or "", 4096),
        input_modes=words(skill.get("inputModes") or skill.get("input_modes")),
        output_modes=words(skill.get("outputModes") or skill.get("output_modes")),
        tags=words(skill.get("tags"))[:MAX_TAGS],
        examples=words(skill.get("examples"), MAX_EXAMPLE),
        metadata=metadata if is_object(metadata) and metadata else None,
    )


def _extensions(capabilities: JsonObject) -> tuple[Extension, ...]:
    found: list[Extension] = []
    for extension in objects(capabilities.get("extensions")):
        uri, params = text(extension, "uri"), extension.get("params")
        if uri is not None:
            found.append(
                Extension(
                    uri=uri,
                    description=text(extension, "description"),
                    required=extension.get("required") is True,
                    params=params if is_object(params) else None,
                )
            )
    return tuple(found)


def _provider(card: JsonObject) -> Provider | None:
    provider = member(card, "provider")
    name = text(provider, "organization", "name") or text(card, "provider")
    return Provider(name=shown_text(name, 128), url=text(provider, "url")) if name else None
