"""The admin token: made once, or given and judged."""

import stat
from pathlib import Path

import pytest

from dragoman.model.secret import Secret
from dragoman.security.admin import load_admin_token
from dragoman.security.keys import new_key, parse_key
from dragoman.security.private_files import SecretRefused

KEY = new_key(lambda count: bytes(range(1, count + 1))).key.reveal()
RANDOM = "4f0c8e2b9d7a6153e8f1c0b2a4d69738"


def test_the_first_start_makes_a_token_and_later_ones_find_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    token, created = load_admin_token(data, None, loopback=False)
    assert created and parse_key(token.reveal()) is not None
    assert load_admin_token(data, None, loopback=False) == (token, False)
    assert stat.S_IMODE((data / "admin-token").stat().st_mode) == 0o600
    assert (data / "admin-token").read_text() == token.reveal() + "\n"


def test_two_hubs_have_two_tokens(tmp_path: Path) -> None:
    one, _ = load_admin_token(tmp_path / "one", None, loopback=True)
    other, _ = load_admin_token(tmp_path / "other", None, loopback=True)
    assert one != other


@pytest.mark.parametrize("given", [RANDOM, "Zk3/+=!~Qw9.xyB7_a-mN2pL5tRv8uEc", KEY])
def test_a_given_token_is_used_and_not_stored(tmp_path: Path, given: str) -> None:
    assert load_admin_token(tmp_path, Secret(given), loopback=False) == (Secret(given), False)
    assert list(tmp_path.iterdir()) == []


def test_on_loopback_half_the_length_is_enough(tmp_path: Path) -> None:
    short = Secret(RANDOM[:16])
    assert load_admin_token(tmp_path, short, loopback=True)[0] == short
    with pytest.raises(SecretRefused, match="at least 32 characters, got 16"):
        load_admin_token(tmp_path, short, loopback=False)
    with pytest.raises(SecretRefused, match="at least 16 characters, got 15"):
        load_admin_token(tmp_path, Secret(RANDOM[:15]), loopback=True)


@pytest.mark.parametrize("loopback", [True, False])
@pytest.mark.parametrize(
    "weak",
    [
        "", "changeme", "change-me-change-me-change-me-now", "CHANGE_ME_0123456789_0123456789_x",
        "your-token-here-your-token-here-1", "example-token-4f0c8e2b9d7a6153e8f1c0",
        "my.password.4f0c8e2b9d7a6153e8f1c",
        "dragoman-admin-4f0c8e2b9d7a6153e8", "a" * 40, "abcd1234" * 5, "01" * 20, "abcdefghijklmnopqrstuvwxyz0123456",
        "98765432109876543210987654321098", new_key(bytes).key.reveal(),
        RANDOM + "\n", RANDOM + " x", RANDOM + "é",
    ],
)  # fmt: skip
def test_weak_and_example_values_are_refused_in_one_sentence(tmp_path: Path, weak: str, loopback: bool) -> None:
    with pytest.raises(SecretRefused, match="the admin token in DRAGOMAN_ADMIN_TOKEN") as refused:
        load_admin_token(tmp_path, Secret(weak), loopback=loopback)
    assert "openssl rand -hex 32" in refused.value.next
    assert not weak or weak not in refused.value.message


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    load_admin_token(tmp_path, None, loopback=True)
    (tmp_path / "admin-token").chmod(mode)
    with pytest.raises(SecretRefused, match="may be read by others"):
        load_admin_token(tmp_path, None, loopback=True)


def test_a_token_file_edited_to_something_weak_is_refused(tmp_path: Path) -> None:
    load_admin_token(tmp_path, None, loopback=True)
    (tmp_path / "admin-token").write_text("admin\n")
    with pytest.raises(SecretRefused, match="admin-token must have at least 16"):
        load_admin_token(tmp_path, None, loopback=True)
