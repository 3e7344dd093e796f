"""The official agent card of A2A 1.0, read into the canonical one, as liberally as real cards need it."""

from typing import Final

import msgspec

from dragoman.dialects.text import id_of_name, shown_text
from dragoman.model.agent import AgentCard, AuthScheme, Binding, Endpoint, Extension, Original, Provider, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_array, is_object

SLUG: Final = "a2a-1.0"
FEATURES: Final = frozenset(
    {Feature.ANSWERS, Feature.GET, Feature.CANCEL, Feature.CONTINUE, Feature.PARTS, Feature.INLINE}
)
STREAMING: Final = frozenset({Feature.STREAM, Feature.SUBSCRIBE})
MAX_SKILLS: Final = 100

_BINDINGS: Final = {"JSONRPC": Binding.JSONRPC, "HTTP+JSON": Binding.HTTP, "GRPC": Binding.GRPC}
_LINKS: Final = {"documentation": "documentationUrl", "icon": "iconUrl"}


def owns_card(card: JsonObject) -> bool:
    """Whether a card has the shape of 1.0."""
    return "supportedInterfaces" in card or "supported_interfaces" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card.

    Raises BadParams naming what is missing: a name, or an interface that can be called.
    """
    name = _text(card, "name")
    if name is None:
        raise _bad("name", "required")
    capabilities = _object(card, "capabilities")
    endpoints = _endpoints(card, streaming=capabilities.get("streaming") is True)
    if not endpoints:
        raise _bad("supportedInterfaces", "none with a url and a known protocolVersion")
    metadata = card.get("metadata")
    return AgentCard(
        id=id_of_name(name),
        name=shown_text(name, 128),
        description=shown_text(_text(card, "description") or "", 4096),
        version=_text(card, "version") or "1.0.0",
        skills=_skills(card),
        endpoints=endpoints,
        auth=_schemes(card),
        streaming=capabilities.get("streaming") is True,
        push=(capabilities.get("pushNotifications") or capabilities.get("push_notifications")) is True,
        extended=(capabilities.get("extendedAgentCard") or capabilities.get("extended_agent_card")) is True,
        input_modes=_words(card.get("defaultInputModes") or card.get("default_input_modes")),
        output_modes=_words(card.get("defaultOutputModes") or card.get("default_output_modes")),
        extensions=_extensions(capabilities),
        provider=_provider(card),
        links={key: url for key, member in _LINKS.items() if (url := _text(card, member))} or None,
        metadata=metadata if is_object(metadata) and metadata else None,
        original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
    )


def _endpoints(card: JsonObject, *, streaming: bool) -> tuple[Endpoint, ...]:
    features = FEATURES | STREAMING if streaming else FEATURES
    found: list[Endpoint] = []
    for interface in _objects(card.get("supportedInterfaces") or card.get("supported_interfaces")):
        url = _text(interface, "url")
        binding = _BINDINGS.get(_text(interface, "protocolBinding", "protocol_binding") or "JSONRPC")
        version = ".".join((_text(interface, "protocolVersion", "protocol_version") or "1.0").split(".")[:2])
        if url is None or binding is None or version not in ("1.0", "0.3"):
            continue
        found.append(
            Endpoint(
                dialect=f"a2a-{version}",
                binding=binding,
                url=url,
                version=version,
                tenant=_text(interface, "tenant"),
                features=features,
            )
        )
    # The hub speaks 1.0 over JSON-RPC best: that one first, the card's own order otherwise.
    return tuple(sorted(found, key=lambda each: (each.dialect != SLUG, each.binding is not Binding.JSONRPC)))


def _skills(card: JsonObject) -> tuple[Skill, ...]:
    skills: list[Skill] = []
    for skill in _objects(card.get("skills"))[:MAX_SKILLS]:
        name = _text(skill, "id", "name")
        if name is None:
            continue
        metadata = skill.get("metadata")
        skills.append(
            Skill(
                id=shown_text(name, 128),
                name=shown_text(_text(skill, "name") or name, 128),
                description=shown_text(_text(skill, "description") or "", 4096),
                input_modes=_words(skill.get("inputModes") or skill.get("input_modes")),
                output_modes=_words(skill.get("outputModes") or skill.get("output_modes")),
                tags=_words(skill.get("tags"))[:50],
                examples=_words(skill.get("examples")),
                metadata=metadata if is_object(metadata) and metadata else None,
            )
        )
    if skills:
        return tuple(skills)
    # An agent without skills can still be talked to: it gets the one that every such agent has.
    described = shown_text(_text(card, "description") or "", 4096)
    return (Skill(id="default", name="default", description=described, tags=("general",)),)


def _schemes(card: JsonObject) -> tuple[AuthScheme, ...]:
    schemes = _object(card, "securitySchemes", "security_schemes")
    return tuple(_scheme(name, scheme) for name, scheme in schemes.items() if is_object(scheme))


def _scheme(name: str, scheme: JsonObject) -> AuthScheme:
    member = next((key for key in scheme if key.lower().endswith("securityscheme")), "")
    inner = scheme.get(member)
    value: JsonObject = inner if is_object(inner) else scheme
    kind = member.lower().removesuffix("securityscheme")
    flows = next(iter(_object(value, "flows").values()), None)
    words = {"apikey": "apiKey", "httpauth": "bearer", "oauth2": "oauth2", "openidconnect": "openIdConnect"}
    if kind == "httpauth":
        words["httpauth"] = (_text(value, "scheme") or "bearer").lower()
    return AuthScheme(
        kind=words.get(kind, "mutualTLS" if kind == "mtls" else _text(scheme, "type") or kind),
        id=name,
        description=_text(value, "description"),
        location=_text(value, "location", "in"),
        name=_text(value, "name"),
        token_url=_text(flows, "tokenUrl", "token_url") if is_object(flows) else None,
        scopes=tuple(_object(flows, "scopes")) if is_object(flows) else (),
        raw=scheme,
    )


def _extensions(capabilities: JsonObject) -> tuple[Extension, ...]:
    found: list[Extension] = []
    for extension in _objects(capabilities.get("extensions")):
        uri, params = _text(extension, "uri"), extension.get("params")
        if uri is not None:
            found.append(
                Extension(
                    uri=uri,
                    description=_text(extension, "description"),
                    required=extension.get("required") is True,
                    params=params if is_object(params) else None,
                )
            )
    return tuple(found)


def _provider(card: JsonObject) -> Provider | None:
    provider = _object(card, "provider")
    name = _text(provider, "organization", "name")
    return Provider(name=shown_text(name, 128), url=_text(provider, "url")) if name else None


def _bad(field: str, message: str) -> BadParams:
    path = f"agent_card.{field}"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def _text(value: JsonObject, *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return None


def _object(value: JsonObject, *names: str) -> JsonObject:
    for name in names:
        found = value.get(name)
        if is_object(found):
            return found
    return {}


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if is_object(item)] if is_array(value) else []


def _words(value: Json) -> tuple[str, ...]:
    return tuple(shown_text(word, 256) for word in value if isinstance(word, str)) if is_array(value) else ()
