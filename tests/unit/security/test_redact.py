"""Redaction: planted secrets vanish, ordinary words stay."""

import base64
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.secret import Secret
from dragoman.security.keys import new_key
from dragoman.security.redact import Redactor, is_secret_name
from dragoman.security.signing import new_signing_secret

ADMIN = "correct-horse-battery-staple-0001"
REDACTOR = Redactor(b"k" * 32, known=[Secret(ADMIN), Secret(ADMIN + "-longer")])
# Fixed, not random: they are part of the tests' names, which must be the same in every worker.
KEY = new_key(lambda count: bytes(range(1, count + 1))).key.reveal()
SIGNING = new_signing_secret(bytes(range(200, 232))).reveal()
JWT = "eyJhbGciOiJFUzI1NiJ9." + "eyJzdWIiOiJhZ3RfYSJ9." + "c2lnbmF0dXJl-_8"
JWE = "eyJhbGciOiJFQ0RILUVTIn0..aXY.Y2lwaGVy.dGFn"
BASIC = base64.b64encode(b"client:hunter22").decode()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key {KEY} was refused", KEY),
        (f"key={KEY}", KEY),
        (f"first\\n{KEY}", KEY),
        (f"%20{KEY}", KEY),
        ("a shortened ap_k7f2_abcdefgh", "abcdefgh"),
        (f"'{SIGNING}'", SIGNING),
        (f"token {JWT}.", JWT),
        (f"payload {JWE}", JWE),
        ("-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----", "MIGHAgEA"),
        (r'"key":"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n"', "MHcCAQEE"),
        (f"Authorization: Bearer {KEY}", KEY),
        ("authorization: Digest username=bob, response=8a9f", "8a9f"),
        ("sent Bearer abcdef.123~x+/= to it", "abcdef.123~x+/="),
        (f"BASIC {BASIC}", BASIC),
        ("Cookie: dragoman_console=abc; other=def", "def"),
        ("X-Api-Key: plain", "plain"),
        ("webhook-signature: v1,mdToi4/LLl9=", "mdToi4"),
        ("postgresql://hub:pa55@db/x", "pa55"),
        ("at https://user:p@ss@host/path", "p@ss"),
        ("GET /x?token=t0k&limit=3", "t0k"),
        ("GET /x?a=1&access_token=t0k", "t0k"),
        ("GET /x?to%6ben=t0k", "t0k"),
        ("client_id=me&client_secret=s3cr&scope=x", "s3cr"),
        ("password=hunter2", "hunter2"),
        ('{"password": "hunter2", "user": "bob"}', "hunter2"),
        (r'{"clientSecret":"a\"b","x":1}', r"a\"b"),
        (f"the admin token is {ADMIN}", ADMIN),
        (f"{ADMIN}-longer", "longer"),
    ],
)
def test_a_planted_secret_is_not_in_the_text(text: str, secret: str) -> None:
    redacted = REDACTOR.text(text)
    assert secret not in redacted
    assert "[redacted:" in redacted
    assert REDACTOR.text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "agent agt_a has no skill 'serch'",
        "expected a Bearer token",
        "max_tokens=20 input_tokens=30",
        "GET /x?limit=3&cursor=eyJvIjoxfQ",
        "see https://host/path@x and mail a@b.example",
        "eyJust a word. Another. One",
        "wrap_around_everything map_reduce",
        '{"skill": "signature_check", "keyid": "abc"}',
        "",
    ],
)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_what_is_not_secret_around_it_stays() -> None:
    assert REDACTOR.text(f"GET /x?limit=3&token={KEY}&z=1 by bob").startswith("GET /x?limit=3&token=[redacted:")
    assert REDACTOR.text("postgresql://hub:pa55@db/x").endswith("]@db/x")


@given(st.text(alphabet=st.sampled_from('abeyJ._-:=/@?& "{}token\\\nBrasic19'), max_size=80))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


def test_equal_secrets_have_equal_marks_under_one_key_only() -> None:
    other = Redactor(b"l" * 32)
    assert REDACTOR.text(KEY) == REDACTOR.text(KEY) != REDACTOR.text(new_key().key.reveal())
    assert [REDACTOR.mark(str(i)) for i in range(4)] != [other.mark(str(i)) for i in range(4)]


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "proxy-authorization", "X-Api-Key", "apiKey", "api_key", "APIKEY", "Cookie", "set-cookie",
        "token", "accessToken", "push_token", "X-A2A-Notification-Token", "clientSecret", "client_secret", "PASSWORD",
        "credentials",
        "client_assertion", "X-Signature", "webhook-signature", "signing_secret", "private_key", "DRAGOMAN_ROOT_KEY",
        "APIToken", "tokenURL",
    ],
)  # fmt: skip
def test_these_names_hold_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["tokens", "max_tokens", "inputTokens", "keyid", "key", "author", "skill", "host", "monkey", ""]
)
def test_these_names_hold_none(name: str) -> None:
    assert not is_secret_name(name)


def test_headers_with_a_secrets_name_lose_their_value() -> None:
    headers = {
        b"authorization": b"anything",
        b"x-signature": b"sha256=00",
        b"accept": b"*/*",
        b"referer": b"/?token=t0k&a=1",
    }
    redacted = REDACTOR.headers(headers)
    assert redacted[b"accept"] == b"*/*"
    assert redacted[b"referer"].startswith(b"/?token=[redacted:") and redacted[b"referer"].endswith(b"&a=1")
    assert b"anything" not in redacted[b"authorization"] and b"00" not in redacted[b"x-signature"][:9]
    assert list(redacted) == list(headers)
    assert REDACTOR.headers(redacted) == redacted


def test_json_keeps_its_shape_and_loses_its_secrets() -> None:
    value = {
        "skill": "echo",
        "credentials": {"kind": "basic", "parts": ["bob", 4711, True, None]},
        "headers": [{"name": "x", "note": f"Bearer {KEY}"}],
        "usage": {"tokens": 12},
        "pin": 7,
    }
    before = msgspec.json.encode(value)
    redacted = REDACTOR.json(value)
    text = msgspec.json.encode(redacted).decode()
    assert "bob" not in text and "4711" not in text and KEY not in text and '"basic"' not in text
    assert redacted["credentials"]["parts"][2:] == [True, None]
    assert (redacted["skill"], redacted["usage"], redacted["pin"]) == ("echo", {"tokens": 12}, 7)
    assert before == msgspec.json.encode(value)
    assert REDACTOR.json(redacted) == redacted


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "eyJ.",
        "a=",
        "://",
        "://a@",
        '"a":"',
        '"token',
        "ap_aaaa",
        "Bearer ",
        "\\",
        "a.b%",
        "-----BEGIN A PRIVATE KEY-----",
        "-----BEGIN ",
    ],
)
def test_a_long_hostile_text_costs_one_pass(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    started = time.process_time()
    REDACTOR.text(text)
    # One pass takes some 50 ms; a second loop inside the first would take minutes.
    assert time.process_time() - started < 5
