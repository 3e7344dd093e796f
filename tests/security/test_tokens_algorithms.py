"""Every algorithm that an issuer's settings may name, with a key of its kind, and what a key alone decides."""

import warnings
from datetime import UTC, datetime
from typing import Any, Final, get_args

import pytest
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from dragoman.model.issuer import Algorithm
from dragoman.security.jwt_verify import published_keys, verified_claims

ALGORITHMS: Final[tuple[str, ...]] = get_args(Algorithm)
NOW: Final = datetime(2026, 7, 1, 12, tzinfo=UTC)
CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_RSA: Final = RSAKey.generate_key(2048)


def key_of(algorithm: str) -> ECKey | RSAKey | OKPKey:
    if algorithm in CURVES:
        return ECKey.generate_key(CURVES[algorithm])
    return OKPKey.generate_key("Ed25519") if algorithm.startswith("Ed") else _RSA


def token(key: ECKey | RSAKey | OKPKey, algorithm: str) -> str:
    issued = int(NOW.timestamp())
    claims = f'{{"iss":"i","aud":"a","sub":"s","iat":{issued},"exp":{issued + 60}}}'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        header = {"alg": algorithm, "typ": "at+jwt", "kid": "k"}
        return jws.serialize_compact(header, claims, key, algorithms=[algorithm])


def taken(key: ECKey | RSAKey | OKPKey, algorithm: str, *allowed: str, **members: Any) -> bool:
    jwk: dict[str, Any] = {**key.as_dict(private=False), "kid": "k", **members}
    keys = published_keys({"keys": [jwk]}, allowed)
    shown = token(key, algorithm)
    return verified_claims(shown, keys=keys, issuer="i", audience="a", now=NOW) is not None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_counts_where_it_is_allowed_and_its_key_is_for_it(algorithm: str) -> None:
    key = key_of(algorithm)
    others = [each for each in ALGORITHMS if each != algorithm]
    assert taken(key, algorithm, algorithm)
    assert taken(key, algorithm, *ALGORITHMS, alg=algorithm)
    assert not taken(key, algorithm, *others)
    assert not taken(key, algorithm, *ALGORITHMS, alg=next(each for each in others if each[:2] != algorithm[:2]))
    assert not taken(key, algorithm, algorithm, use="enc")
    assert not taken(key, algorithm, algorithm, key_ops=["sign"])


def test_a_key_that_names_no_algorithm_has_the_usual_one_of_its_kind() -> None:
    assert taken(_RSA, "RS256", *ALGORITHMS)
    assert not taken(_RSA, "PS256", *ALGORITHMS)


def test_an_rsa_key_that_is_too_short_is_no_key() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        short = RSAKey.generate_key(1024)
        assert not taken(short, "RS256", "RS256")
