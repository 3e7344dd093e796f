"""What a signature over an official card covers: the forms of one card that signers of either version put under theirs.

The specification signs a card without its signatures and without what only repeats a default. Published software drops
every empty value besides, and signs the members that 1.0 knows and no others. A card that the hub writes has no empty
value, so that all of them read the same.
"""

from collections.abc import Mapping
from typing import Final

from dragoman.model.json import Json, JsonObject, is_array, is_object

SIGNATURES: Final = "signatures"

# The members of 1.0, and what is in them: None is taken as it is, a string names a message, a one-element tuple a list
# of those, "{}name" a map of them. `!` behind a member: it is there even when it is empty (the specification's
# REQUIRED, and optional members that were set).
_Kind = str | tuple[str] | None
_MESSAGES: Final[Mapping[str, Mapping[str, _Kind]]] = {
    "card": {
        "name!": None,
        "description!": None,
        "supportedInterfaces!": ("interface",),
        "provider": "provider",
        "version!": None,
        "documentationUrl!": None,
        "capabilities!": "capabilities",
        "securitySchemes": "{}scheme",
        "securityRequirements": ("requirement",),
        "defaultInputModes!": None,
        "defaultOutputModes!": None,
        "skills!": ("skill",),
        "iconUrl!": None,
    },
    "interface": {"url!": None, "protocolBinding!": None, "tenant": None, "protocolVersion!": None},
    "provider": {"url!": None, "organization!": None},
    "capabilities": {
        "streaming!": None,
        "pushNotifications!": None,
        "extensions": ("extension",),
        "extendedAgentCard!": None,
    },
    "extension": {"uri": None, "description": None, "required": None, "params": None},
    "skill": {
        "id!": None,
        "name!": None,
        "description!": None,
        "tags!": None,
        "examples": None,
        "inputModes": None,
        "outputModes": None,
        "securityRequirements": ("requirement",),
    },
    "requirement": {"schemes": "{}words"},
    "words": {"list": None},
    "scheme": {
        "apiKeySecurityScheme": "api_key",
        "httpAuthSecurityScheme": "http",
        "oauth2SecurityScheme": "oauth2",
        "openIdConnectSecurityScheme": "open_id",
        "mtlsSecurityScheme": "mtls",
    },
    "api_key": {"description": None, "location!": None, "name!": None},
    "http": {"description": None, "scheme!": None, "bearerFormat": None},
    "oauth2": {"description": None, "flows!": "flows", "oauth2MetadataUrl": None},
    "open_id": {"description": None, "openIdConnectUrl!": None},
    "mtls": {"description": None},
    "flows": {
        "authorizationCode": "flow",
        "clientCredentials": "flow",
        "implicit": "flow",
        "password": "flow",
        "deviceCode": "flow",
    },
    "flow": {
        "authorizationUrl": None,
        "tokenUrl": None,
        "deviceAuthorizationUrl": None,
        "refreshUrl": None,
        "scopes!": None,
        "pkceRequired": None,
    },
}
# What the published SDK of 0.3 takes for defaults, and therefore leaves out.
_V03_DEFAULTS: Final[JsonObject] = {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


def signing_forms(card: JsonObject) -> tuple[JsonObject, ...]:
    """What the hub signs of a card it serves: all of it and, where that is less, what published software signs."""
    whole = _unsigned(card)
    known = _full(v10_form(card)) if "supportedInterfaces" in card else _full(_v03_form(card))
    return (known,) if known == whole else (known, whole)


def v10_signed_forms(card: JsonObject) -> tuple[JsonObject, ...]:
    """What a signature on a card of 1.0 may cover, the fullest form first."""
    whole, known = _unsigned(card), v10_form(card)
    return _each_once(whole, _full(whole), known, _full(known))


def v03_signed_forms(card: JsonObject) -> tuple[JsonObject, ...]:
    """What a signature on a card of 0.3 may cover, the fullest form first; that version defines none."""
    whole = _unsigned(card)
    return _each_once(whole, _full(whole), _full(_v03_form(card)))


def v10_form(card: JsonObject) -> JsonObject:
    """A card as the specification has it signed: the members that 1.0 knows, without what only repeats a default."""
    return _message(card, "card")


def _v03_form(card: JsonObject) -> JsonObject:
    """A card as the published SDK of 0.3 signs it: without its defaults, among which is what kind a scheme is."""
    bare = {name: value for name, value in _unsigned(card).items() if _V03_DEFAULTS.get(name) != value}
    schemes = bare.get("securitySchemes")
    if is_object(schemes):
        bare["securitySchemes"] = {
            name: {key: value for key, value in scheme.items() if key != "type"} if is_object(scheme) else scheme
            for name, scheme in schemes.items()
        }
    return bare


def _message(given: JsonObject, name: str) -> JsonObject:
    shown: JsonObject = {}
    for member, kind in _MESSAGES[name].items():
        key = member.rstrip("!")
        value = given.get(key, given.get(_snake(key)))
        if value is None:
            continue
        value = _member(value, kind)
        if member != key or value not in ("", [], {}, False):
            shown[key] = value
    return shown


def _member(value: Json, kind: _Kind) -> Json:
    if kind is None:
        return value
    if isinstance(kind, tuple):
        return [_message(each, kind[0]) for each in value if is_object(each)] if is_array(value) else []
    if not is_object(value):
        return {}
    if kind.startswith("{}"):
        return {name: _message(each, kind[2:]) for name, each in value.items() if is_object(each)}
    return _message(value, kind)


def _unsigned(card: JsonObject) -> JsonObject:
    return {name: value for name, value in card.items() if name != SIGNATURES}


def _full(card: JsonObject) -> JsonObject:
    """The same without any empty value, wherever it is."""
    full = _not_empty(card)
    return full if is_object(full) else {}


def _not_empty(value: Json) -> Json:
    if is_object(value):
        return {name: kept for name, each in value.items() if (kept := _not_empty(each)) is not None} or None
    if is_array(value):
        return [kept for each in value if (kept := _not_empty(each)) is not None] or None
    return None if value == "" else value


def _each_once(*forms: JsonObject) -> tuple[JsonObject, ...]:
    found: list[JsonObject] = []
    for form in forms:
        if form not in found:
            found.append(form)
    return tuple(found)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
