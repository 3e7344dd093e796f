"""Tokens that must not open anything, and the few beside them that must: an issuer with real keys, and its forgers.

Written without the hub's own code, so that a mistake there cannot hide itself. Every forgery is as good as it can be:
but for what its name says, it would be taken.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Claims = dict[str, Any]
KID: Final = "issuer-key-1"
RSA_KID: Final = "issuer-key-2"


def b64(raw: bytes) -> str:
    """Base64url without its end."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def ec_jwk(key: ec.EllipticCurvePrivateKey, kid: str) -> Claims:
    """The public half of a P-256 key."""
    numbers = key.public_key().public_numbers()
    x, y = b64(numbers.x.to_bytes(32)), b64(numbers.y.to_bytes(32))
    return {"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "alg": "ES256", "x": x, "y": y}


def rsa_jwk(key: rsa.RSAPrivateKey, kid: str) -> Claims:
    """The public half of an RSA key."""
    numbers = key.public_key().public_numbers()
    n, e = b64(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)), b64(numbers.e.to_bytes(3))
    return {"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": n, "e": e}


class TestIssuer:
    """One who issues tokens for an audience, with two keys; `now` is when, in seconds."""

    __test__ = False

    def __init__(self, issuer: str, audience: str, now: float) -> None:
        self.issuer, self.audience, self.now = issuer, audience, int(now)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.stranger = ec.generate_private_key(ec.SECP256R1())

    @property
    def jwks(self) -> Claims:
        """What it publishes."""
        return {"keys": [ec_jwk(self.key, KID), rsa_jwk(self.rsa, RSA_KID)]}

    def claims(self, **changes: Any) -> Claims:
        """What a good token says; a change to None leaves a claim out."""
        said = {"iss": self.issuer, "sub": "alice", "aud": self.audience, "tid": "default", "scope": "a2a:call"}
        said |= {"iat": self.now, "exp": self.now + 900, "jti": "1"}
        return {name: value for name, value in (said | changes).items() if value is not None}

    def token(self, header: Claims | None = None, **changes: Any) -> str:
        """A token, signed with the first key; a header set to None is left out."""
        return self.signed(self.key, header, self.claims(**changes))

    def signed(self, key: ec.EllipticCurvePrivateKey, header: Claims | None, claims: Claims) -> str:
        """Anything, signed with any P-256 key."""
        head = _head(header or {})
        signing = f"{head}.{b64(json.dumps(claims).encode())}"
        r, s = decode_dss_signature(key.sign(signing.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signing}.{b64(r.to_bytes(32) + s.to_bytes(32))}"

    def rsa_signed(self, key: rsa.RSAPrivateKey, header: Claims, *, pss: bool = False) -> str:
        """The good claims, signed with RSA."""
        signing = f"{_head(header)}.{b64(json.dumps(self.claims()).encode())}"
        scheme = padding.PSS(padding.MGF1(hashes.SHA256()), 32) if pss else padding.PKCS1v15()
        return f"{signing}.{b64(key.sign(signing.encode(), scheme, hashes.SHA256()))}"

    def with_secret(self, secret: bytes) -> str:
        """The good claims, signed with a shared secret: what everybody knows of the public key."""
        signing = f"{_head({'alg': 'HS256'})}.{b64(json.dumps(self.claims()).encode())}"
        return f"{signing}.{b64(hmac.digest(secret, signing.encode(), hashlib.sha256))}"


def _head(header: Claims) -> str:
    said = {"alg": "ES256", "typ": "at+jwt", "kid": KID} | header
    return b64(json.dumps({name: value for name, value in said.items() if value is not None}).encode())


def good(issuer: TestIssuer) -> Mapping[str, str]:
    """Tokens that count, each at the edge of what does."""
    return {
        "plain": issuer.token(),
        "a list of audiences": issuer.token(aud=["https://else.example", issuer.audience]),
        "expired within the leeway": issuer.token(iat=issuer.now - 900, exp=issuer.now - 20),
        "begins within the leeway": issuer.token(nbf=issuer.now + 20),
        "issued a little ahead": issuer.token(iat=issuer.now + 50),
        "the second key": issuer.rsa_signed(issuer.rsa, {"alg": "RS256", "kid": RSA_KID}),
        "an unknown header": issuer.token({"x5t": "abc"}),
    }


def forged(issuer: TestIssuer, elsewhere: str) -> Mapping[str, str]:
    """Tokens that do not count, by what is wrong with each; `elsewhere` is where a forger keeps keys of its own."""
    head, body, signature = issuer.token().split(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = issuer.key.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    own = ec_jwk(issuer.stranger, "own")
    attacker_rsa = issuer.rsa_signed(rsa.generate_private_key(public_exponent=65537, key_size=2048), {"alg": "RS256"})
    more = {
        "none": f"{_head({'alg': 'none'})}.{body}.",
        "none, signed": f"{_head({'alg': 'none'})}.{body}.{signature}",
        "HS256 with the public key as PEM": issuer.with_secret(pem),
        "HS256 with the public key as a point": issuer.with_secret(point),
        "HS256 with the public key as JSON": issuer.with_secret(json.dumps(ec_jwk(issuer.key, KID)).encode()),
        "the algorithm of another key": attacker_rsa,
        "another algorithm than its key's": issuer.rsa_signed(issuer.rsa, {"alg": "PS256", "kid": RSA_KID}, pss=True),
        "a stranger's signature": issuer.signed(issuer.stranger, None, issuer.claims()),
        "signature stripped": f"{head}.{body}.",
        "signature gone": f"{head}.{body}",
        "signature cut short": f"{head}.{body}.{b64(raw[:-1])}",
        "signature in DER": f"{head}.{body}.{b64(der)}",
        "signature of zeros": f"{head}.{body}.{b64(bytes(64))}",
        "signature in another spelling": f"{head}.{body}.{_respelled(signature)}",
        "claims edited": f"{head}.{b64(json.dumps(issuer.claims(scope='a2a:admin')).encode())}.{signature}",
        "header edited": f"{_head({'x': 1})}.{body}.{signature}",
        "four parts": f"{head}.{body}.{signature}.{signature}",
        "a body that is no object": f"{head}.{b64(b'[]')}.{signature}",
        "a body of brackets": f"{head}.{b64(b'[' * 5000)}.{signature}",
        "over 8 KiB": issuer.token(padding="x" * 8192),
    }
    headers: dict[str, Claims] = {
        "kid with a path": {"kid": "../../../../dev/null"},
        "kid with SQL": {"kid": "' OR '1'='1' --"},
        "kid unknown": {"kid": "issuer-key-9"},
        "kid in other letters": {"kid": KID.upper()},
        "kid is a list": {"kid": [KID]},
        "no kid": {"kid": None},
        "no alg": {"alg": None},
        "crit": {"crit": ["exp"]},
        "crit of nothing": {"crit": []},
        "b64": {"b64": False},
        "zip": {"zip": "DEF"},
        "an ID token": {"typ": "JWT"},
        "no typ": {"typ": None},
    }
    claims: dict[str, Claims] = {
        "expired": {"iat": issuer.now - 900, "exp": issuer.now - 40},
        "never expires": {"exp": None},
        "expires in words": {"exp": str(issuer.now + 900)},
        "expires truly": {"exp": True},
        "expires beyond numbers": {"exp": 10**400},
        "begins later": {"nbf": issuer.now + 50},
        "issued in the future": {"iat": issuer.now + 90},
        "issued never": {"iat": None},
        "issued truly": {"iat": True},
        "another issuer": {"iss": "https://else.example"},
        "an issuer that begins alike": {"iss": f"{issuer.issuer}.else.example"},
        "no issuer": {"iss": None},
        "another audience": {"aud": "https://else.example"},
        "an audience that begins alike": {"aud": f"{issuer.audience}.else.example"},
        "a part of the audience": {"aud": [issuer.audience[:-1]]},
        "no audience": {"aud": None},
        "nobody": {"sub": None},
        "an empty name": {"sub": ""},
        "about who signed in": {"nonce": "n-1"},
    }
    keys: dict[str, Claims] = {
        "embedded jwk": {"jwk": own, "kid": "own"},
        "embedded jwk under a known kid": {"jwk": {**own, "kid": KID}},
        "foreign jku": {"jku": f"{elsewhere}/jwks.json", "kid": "own"},
        "foreign x5u": {"x5u": f"{elsewhere}/chain.pem", "kid": "own"},
        "embedded x5c": {"x5c": [base64.b64encode(b"no certificate").decode()], "kid": "own"},
    }
    return (
        more
        | {name: issuer.token(header) for name, header in headers.items()}
        | {name: issuer.token(**changes) for name, changes in claims.items()}
        | {name: issuer.signed(issuer.stranger, header, issuer.claims()) for name, header in keys.items()}
        | {f"{name}, by the right key": issuer.token({**header, "kid": KID}) for name, header in keys.items()}
    )


def _respelled(signature: str) -> str:
    """The same bytes in base64url, with other idle bits at the end."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(signature[-1])
    return signature[:-1] + alphabet[last ^ 1]
