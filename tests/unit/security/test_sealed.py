"""The root key and what is sealed with it."""

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from dragoman.security.private_files import SecretRefused
from dragoman.security.sealed import CannotOpen, Purpose, RootKey, Sealer, load_root_key

RAW = bytes(range(32))
ROOT = RootKey(RAW)


def seal(sealer: Sealer, plain: bytes = b"secret") -> bytes:
    return sealer.seal(plain, table="agent", column="credentials", row="agt_1", tenant="default")


def open_(sealer: Sealer, sealed: bytes) -> bytes:
    return sealer.open(sealed, table="agent", column="credentials", row="agt_1", tenant="default")


@given(st.binary(max_size=2000))
def test_what_was_sealed_opens_in_its_own_place(plain: bytes) -> None:
    sealed = seal(Sealer(ROOT), plain)
    assert open_(Sealer(RootKey(RAW)), sealed) == plain


@pytest.mark.parametrize(
    "place",
    [
        {"table": "key", "column": "credentials", "row": "agt_1", "tenant": "default"},
        {"table": "agent", "column": "secret", "row": "agt_1", "tenant": "default"},
        {"table": "agent", "column": "credentials", "row": "agt_2", "tenant": "default"},
        {"table": "agent", "column": "credentials", "row": "agt_1", "tenant": "other"},
        {"table": "agent", "column": "credentials", "row": "agt_1d", "tenant": "efault"},
    ],
)
def test_a_sealed_value_copied_elsewhere_does_not_open(place: dict[str, str]) -> None:
    sealer = Sealer(ROOT)
    with pytest.raises(CannotOpen, match="moved"):
        sealer.open(
            seal(sealer), table=place["table"], column=place["column"], row=place["row"], tenant=place["tenant"]
        )


def test_no_edited_byte_and_no_shorter_value_opens() -> None:
    sealer = Sealer(ROOT)
    sealed = seal(sealer)
    for at in range(len(sealed)):
        edited = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(CannotOpen):
            open_(sealer, edited)
        with pytest.raises(CannotOpen):
            open_(sealer, sealed[:at])


def test_equal_secrets_are_sealed_differently() -> None:
    sealer = Sealer(ROOT)
    assert seal(sealer) != seal(sealer)
    assert b"secret" not in seal(sealer)


def test_a_rotated_hub_opens_old_values_and_seals_with_the_new_key() -> None:
    old, new = ROOT, RootKey(bytes(range(1, 33)))
    rotated = Sealer(new, older=[old])
    before = seal(Sealer(old))
    assert open_(rotated, before) == b"secret"
    assert not rotated.is_current(before)
    assert rotated.is_current(seal(rotated))
    with pytest.raises(CannotOpen, match=new.id.hex()):
        open_(Sealer(old), seal(rotated))


@pytest.mark.parametrize("purpose", list(Purpose))
def test_derived_keys_are_those_of_rfc_5869(purpose: Purpose) -> None:
    oracle = HKDF(SHA256(), 32, salt=None, info=b"dragoman/" + purpose.value.encode())
    assert ROOT.subkey(purpose) == oracle.derive(RAW)


def test_every_purpose_has_its_own_key() -> None:
    assert len({ROOT.subkey(purpose) for purpose in Purpose}) == len(Purpose)


def test_a_root_key_is_not_shown_by_accident() -> None:
    assert RAW.hex() not in repr(ROOT)
    assert ROOT.subkey(Purpose.PEPPER).hex() not in repr(ROOT)


@pytest.mark.parametrize(
    "text",
    [
        RAW.hex(),
        RAW.hex().upper() + "\n",
        base64.b64encode(RAW).decode(),
        base64.b64encode(RAW).decode().rstrip("="),
        base64.urlsafe_b64encode(bytes(range(224, 256))).decode(),
    ],
)
def test_a_root_key_may_be_hex_or_base64(text: str) -> None:
    assert len(RootKey.from_text(text, source="DRAGOMAN_ROOT_KEY").id) == 8


@pytest.mark.parametrize(
    "text",
    ["", "short", RAW.hex()[:-1], RAW.hex() + "0", "g" * 64, "é" * 64, base64.b64encode(RAW[:31]).decode(), "0" * 64],
)
def test_anything_else_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(SecretRefused, match="DRAGOMAN_ROOT_KEY") as refused:
        RootKey.from_text(text, source="DRAGOMAN_ROOT_KEY")
    assert "openssl rand -hex 32" in refused.value.next


def test_the_first_start_makes_a_key_that_only_its_user_can_read(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    made = load_root_key(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "root.key").stat().st_mode) == 0o600
    assert [path.name for path in data.iterdir()] == ["root.key"]
    assert load_root_key(data).id == made.id


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_file_that_others_could_use_is_refused(tmp_path: Path, mode: int) -> None:
    load_root_key(tmp_path)
    (tmp_path / "root.key").chmod(mode)
    with pytest.raises(SecretRefused, match=r"root\.key may be read by others") as refused:
        load_root_key(tmp_path)
    assert refused.value.next == f"chmod 600 {tmp_path / 'root.key'}"


def test_a_data_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(SecretRefused, match="may be read by others"):
        load_root_key(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_place_of_the_key_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(RAW.hex())
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "root.key").symlink_to(elsewhere)
    with pytest.raises(SecretRefused, match="cannot be read"):
        load_root_key(data)


def test_a_damaged_key_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "root.key"
    path.touch(mode=0o600)
    with pytest.raises(SecretRefused, match="does not hold 32 bytes"):
        load_root_key(tmp_path)
    assert path.read_bytes() == b""


def test_cryptography_and_joserfc_are_not_loaded_before_they_are_needed() -> None:
    program = (
        "import sys, dragoman.security.sealed, dragoman.security.tokens, dragoman.security.admin\n"
        "print(sorted({'cryptography', 'joserfc'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30, env={**os.environ}
    )
    assert printed.stdout == "[]\n"
