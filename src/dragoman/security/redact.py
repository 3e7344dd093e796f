"""Takes secrets out of what is logged, traced, audited or told: the one function for each of text, headers and JSON.

A secret is known by the name it stands under, by its shape, or because it was handed in. What replaces it,
`[redacted:xxxx]`, is keyed: equal secrets can be told to be equal, none can be guessed and tried. The second line of
defence: the first is the type `Secret`. Does not cut lengths.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final, final
from urllib.parse import unquote_plus

from dragoman.model.http import Headers
from dragoman.model.json import Json, JsonObject
from dragoman.model.secret import Secret

# Whole words of a name, after it was split at capitals and signs: "pushToken" has one, "max_tokens" none.
SECRET_WORDS: Final = frozenset(
    {"authorization", "cookie", "token", "secret", "password", "passwd", "credential", "credentials", "assertion",
     "signature", "apikey"}
)  # fmt: skip
SECRET_KEYS: Final = frozenset({"api", "private", "root", "signing"})  # followed by the word "key"

_MARK: Final = re.compile(r"\[redacted:[0-9a-f]{4}\]")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# Shapes of secrets, most exact first. Each begins with a literal or cannot begin inside its own run, so that a long
# text costs one pass.
# A whole key is found anywhere, also after an escape such as \n; what only resembles one, at the start of a word.
_API_KEY: Final = re.compile(
    r"ap_[0-9A-Za-z]{12}_[0-9A-Za-z]{16,}+|(?<![0-9A-Za-z])ap_[0-9A-Za-z]{4,}+_[0-9A-Za-z]{8,}+"
)
_SIGNING_SECRET: Final = re.compile(r"whsec_[0-9A-Za-z+/=_-]++")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,30}?PRIVATE KEY-----[^-]*+(?:-----END [A-Z ]{0,30}?PRIVATE KEY-----)?"
)
_JOSE: Final = re.compile(r"eyJ[0-9A-Za-z_-]*+(?:\.[0-9A-Za-z_-]*+)*+")
_SCHEME: Final = re.compile(r"(?i)\b(bearer|basic)([ \t]++)([0-9a-z._~+/=-]{6,}+)")
_USERINFO: Final = re.compile(r"://([^/?#\s]*)@")
# name=value, as in queries, forms and environments; "name": "value", as in JSON; Name: value, as in header lines.
_ASSIGNED: Final = re.compile(r"(?<![\w.%-])([\w.%-]{1,64})(=)([^&\s;,\"'<>]++)", re.ASCII)
_JSON_MEMBER: Final = re.compile(r"\"([\w.-]{1,64})(\"\s{0,8}:\s{0,8}\")((?:[^\"\\]|\\.)++)", re.ASCII)
_HEADER_LINE: Final = re.compile(
    r"(?im)\b(authorization|x-api-key|(?:set-)?cookie|(?:x|webhook)-signature)(:[ \t]*+)([^\r\n]++)"
)


def is_secret_name(name: str) -> bool:
    """Whether a header, field or parameter of this name holds a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not SECRET_WORDS.isdisjoint(words):
        return True
    return any(a in SECRET_KEYS and b == "key" for a, b in pairwise(words))


@final
class Redactor:
    """Redacts with one key; `known` are secrets without a shape of their own, such as the admin token."""

    __slots__ = ("_key", "_known")

    def __init__(self, key: bytes, *, known: Iterable[Secret] = ()) -> None:
        self._key = key
        # The longest first: one may be the beginning of another.
        texts = sorted((secret.reveal() for secret in known if secret.reveal()), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, texts))) if texts else None

    def text(self, text: str) -> str:
        """The text without anything that has the shape, or stands under the name, of a secret."""
        if self._known is not None:
            text = self._known.sub(lambda found: self.mark(found[0]), text)
        text = _API_KEY.sub(lambda found: self.mark(found[0]), text)
        text = _SIGNING_SECRET.sub(lambda found: self.mark(found[0]), text)
        text = _PRIVATE_KEY.sub(lambda found: self.mark(found[0]), text)
        text = _JOSE.sub(self._jose, text)
        text = _USERINFO.sub(lambda found: f"://{self.mark(found[1])}@" if found[1] else found[0], text)
        text = _HEADER_LINE.sub(self._value, text)
        text = _SCHEME.sub(self._value, text)
        text = _JSON_MEMBER.sub(lambda found: '"' + self._named(found), text)
        return _ASSIGNED.sub(self._named, text)

    def headers(self, headers: Headers) -> dict[bytes, bytes]:
        """The headers, those with a secret's name without their value, the others redacted as text."""
        return {name: self._header(name.decode("latin-1"), value) for name, value in headers.items()}

    def json(self, value: Json) -> Json:
        """A copy of a JSON value; below a secret's name every text and number goes, true, false and null stay."""
        return self._json(value, self.text)

    def mark(self, secret: str) -> str:
        """What stands for this secret."""
        # A mark stays as it is: redacting twice, in the log and in the error it quotes, must not hide the equality.
        if _MARK.fullmatch(secret):
            return secret
        return f"[redacted:{hmac.digest(self._key, secret.encode('utf-8', 'replace'), 'sha256')[:2].hex()}]"

    def _json(self, value: Json, redact: Callable[[str], str]) -> Json:
        # By exact type: a decoder makes no others, and bool, which is an int, must stay.
        kind: object = value.__class__
        if kind is str:
            return redact(value)
        if kind is dict:
            members: JsonObject = value
            return {name: self._json(item, self._inside(name, redact)) for name, item in members.items()}
        if kind is list:
            items: list[Json] = value
            return [self._json(item, redact) for item in items]
        if kind is not bool and isinstance(value, int | float) and redact != self.text:
            return redact(str(value))
        return value

    def _inside(self, name: str, redact: Callable[[str], str]) -> Callable[[str], str]:
        return self.mark if is_secret_name(name) else redact

    def _header(self, name: str, value: bytes) -> bytes:
        text = value.decode("latin-1")
        return (self.mark(text) if is_secret_name(name) else self.text(text)).encode("latin-1")

    def _jose(self, found: re.Match[str]) -> str:
        # Three parts or five; a shorter run is an ordinary word that begins with eyJ.
        return self.mark(found[0]) if found[0].count(".") >= 2 else found[0]

    def _value(self, found: re.Match[str]) -> str:
        return found[1] + found[2] + self.mark(found[3])

    def _named(self, found: re.Match[str]) -> str:
        return self._value(found) if is_secret_name(unquote_plus(found[1])) else found[1] + found[2] + found[3]
