"""Cards are data: what a card says is bounded, and has nothing in it that people cannot see.

Done once, when a card is taken in, whatever dialect it came in: all that is shown of it later is clean. The very bytes
are kept beside, for those who check signatures. Schemas stay as they are, save for the words in them that are read.
"""

from typing import Final

import msgspec

from dragoman.dialects.text import ID_GRAMMAR, shown_text
from dragoman.model.agent import AgentCard, Extension, Original, Provider, Skill
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_array, is_object

NAME: Final = 128
TEXT: Final = 4096
WORD: Final = 256
URL: Final = 2048
VERSION: Final = 64
MOST_SKILLS: Final = 100
MOST_TAGS: Final = 50
MOST_NAMES: Final = 16  # further names of one agent
MOST_KEYS: Final = 16
SECRET_OF_KEYS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})  # RFC 7518, 6: what nobody may see

_SCHEMAS: Final = frozenset({"input_schema", "output_schema", "inputSchema", "outputSchema"})
_READ_IN_SCHEMAS: Final = frozenset({"title", "description", "$comment"})


def cleaned(card: AgentCard, came: bytes | None = None) -> AgentCard:
    """The card, fit to be kept and shown; `came` is what it was read from, where its reader did not see the bytes.

    Raises BadParams where something could only be mended by changing what the agent means by it.
    """
    if ID_GRAMMAR.fullmatch(card.id) is None:
        raise _bad("id", "letters, digits, . _ and -, at most 128")
    if len(card.skills) > MOST_SKILLS:
        raise _bad("skills", f"at most {MOST_SKILLS}")
    if len(card.aliases) > MOST_NAMES or any(shown_text(alias, NAME) != alias for alias in card.aliases):
        raise _bad("id", f"at most {MOST_NAMES} further names, of {NAME} characters that can be seen")
    if len(card.keys) > MOST_KEYS or not all(SECRET_OF_KEYS.isdisjoint(key) for key in card.keys):
        raise _bad("keys", f"public keys alone, at most {MOST_KEYS}")
    return msgspec.structs.replace(
        card,
        name=shown_text(card.name, NAME),
        description=shown_text(card.description, TEXT),
        version=shown_text(card.version, VERSION) or "1.0.0",
        skills=tuple(_skill(skill) for skill in card.skills),
        labels=_words(card.labels),
        tags=_words(card.tags),
        input_modes=_words(card.input_modes),
        output_modes=_words(card.output_modes),
        extensions=tuple(_extension(each) for each in card.extensions),
        provider=None if card.provider is None else _provider(card.provider),
        links=_links(card.links),
        metadata=_object(card.metadata),
        pricing=_object(card.pricing),
        original=None if card.original is None else _original(card.original, came),
    )


def _original(original: Original, came: bytes | None) -> Original:
    verbatim = original.as_it_came if came is None else came
    shown = msgspec.json.encode(_clean(msgspec.json.decode(original.body)))
    return Original(dialect=original.dialect, body=shown, verbatim=None if shown == verbatim else verbatim)


def _skill(skill: Skill) -> Skill:
    if not skill.id or shown_text(skill.id, NAME) != skill.id:
        # Cut or cleaned it would be another name, which the agent does not know.
        raise _bad("skills", f"a skill's name has 1 to {NAME} characters, none of them invisible")
    return msgspec.structs.replace(
        skill,
        name=shown_text(skill.name, NAME) or skill.id,
        description=shown_text(skill.description, TEXT),
        tags=_words(skill.tags),
        input_modes=_words(skill.input_modes),
        output_modes=_words(skill.output_modes),
        examples=tuple(_clean(each) for each in skill.examples),
        input_schema=None if skill.input_schema is None else _schema(skill.input_schema),
        output_schema=None if skill.output_schema is None else _schema(skill.output_schema),
        metadata=_object(skill.metadata),
    )


def _extension(extension: Extension) -> Extension:
    described = None if extension.description is None else shown_text(extension.description, TEXT)
    return msgspec.structs.replace(extension, uri=shown_text(extension.uri, URL), description=described)


def _provider(provider: Provider) -> Provider:
    return msgspec.structs.replace(
        provider,
        name=shown_text(provider.name, NAME),
        url=None if provider.url is None else shown_text(provider.url, URL),
        contact=None if provider.contact is None else shown_text(provider.contact, URL),
    )


def _links(links: dict[str, str] | None) -> dict[str, str] | None:
    """The links that people may follow: to pages, and not into whatever shows them."""
    shown = {name: shown_text(url, URL) for name, url in (links or {}).items()}
    return {name: url for name, url in shown.items() if url.lower().startswith(("https://", "http://"))} or None


def _words(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(shown_text(word, WORD) for word in words[:MOST_TAGS])


def _object(value: JsonObject | None) -> JsonObject | None:
    clean = _clean(value)
    return clean if is_object(clean) else None


def _clean(value: Json) -> Json:
    """A JSON value with nothing unseen in its texts and names."""
    if isinstance(value, str):
        return shown_text(value, len(value))
    if is_array(value):
        return [_clean(each) for each in value]
    if not is_object(value):
        return value
    clean: JsonObject = {}
    for name, each in value.items():
        if name in _SCHEMAS and is_object(each):
            clean[name] = _schema(each)
        elif name == "tags" and is_array(each):
            clean[name] = _clean(each[:MOST_TAGS])
        else:
            clean[shown_text(name, len(name))] = _clean(each)
    return clean


def _schema(value: JsonObject) -> JsonObject:
    shown = _in_schema(value)
    return shown if is_object(shown) else value


def _in_schema(value: Json) -> Json:
    """A schema whose words for people are clean; names and values are what it tests, and stay."""
    if is_array(value):
        return [_in_schema(each) for each in value]
    if not is_object(value):
        return value
    return {
        name: shown_text(each, TEXT) if name in _READ_IN_SCHEMAS and isinstance(each, str) else _in_schema(each)
        for name, each in value.items()
    }


def _bad(field: str, message: str) -> BadParams:
    path = f"agent_card.{field}"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
