"""Credentials by service: where they are looked for, in which order, and that they show nowhere."""

import io
import json
import logging
import os
import stat
import traceback
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.extras import MissingExtra
from dragoman.model.secret import Secret
from dragoman.security.key_manager import KeyManager, KeysRefused, OAuthClient

PLANTED = "sk-planted-secret-71f3"
VALUES = st.text(st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(" '\"\\#=$"), min_size=1, max_size=40)


def shown(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()


def pair(client: OAuthClient | None) -> tuple[str, str] | None:
    return None if client is None else (client.client_id.reveal(), client.client_secret.reveal())


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.startswith(("DRAGOMAN_KEY_", "DRAGOMAN_OAUTH_", "AGENTVAULT_")):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.req("V-10")
def test_the_key_file_goes_before_the_environment_and_ids_have_no_case(
    tmp_path: Path, clean: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.env"
    file.write_text("OpenAI=of-the-file\n")
    clean.setenv("DRAGOMAN_KEY_OPENAI", "of-the-environment")
    clean.setenv("DRAGOMAN_KEY_OTHER", "of-the-environment")
    keys = KeyManager(file)
    assert shown(keys.get_key("openAI")) == "of-the-file"
    assert shown(keys.get_key("OTHER")) == "of-the-environment"
    assert keys.get_key("nobody") is None
    assert keys.get_oauth("openai") is None


@pytest.mark.req("V-31")
@pytest.mark.parametrize("prefix", ["DRAGOMAN", "AGENTVAULT"])
@pytest.mark.parametrize(
    ("id", "spelling"),
    [
        ("weather", "WEATHER"),
        ("my-org/agent.2", "MY_ORG_AGENT_2"),
        ("my-org/agent.2", "MY-ORG/AGENT.2"),
        ("a-b", "a_b"),
    ],
)
def test_the_environment_is_read_under_both_names_and_with_underscores(
    prefix: str, id: str, spelling: str, clean: pytest.MonkeyPatch
) -> None:
    clean.setenv(f"{prefix}_KEY_{spelling}", "the-key")
    clean.setenv(f"{prefix}_OAUTH_{spelling}_CLIENT_ID", "the-client")
    clean.setenv(f"{prefix}_OAUTH_{spelling}_CLIENT_SECRET", "the-secret")
    keys = KeyManager()
    assert shown(keys.get_key(id)) == "the-key"
    assert pair(keys.get_oauth(id)) == ("the-client", "the-secret")


@pytest.mark.req("V-31")
def test_our_own_names_go_before_agentvaults_and_an_exact_id_before_its_underscores(clean: pytest.MonkeyPatch) -> None:
    clean.setenv("AGENTVAULT_KEY_A-B", "3")
    clean.setenv("DRAGOMAN_KEY_A_B", "2")
    assert shown(KeyManager().get_key("a-b")) == "2"
    clean.setenv("DRAGOMAN_KEY_A-B", "1")
    assert shown(KeyManager().get_key("a-b")) == "1"
    # Half a client is none, and the halves of two places are not put together.
    clean.setenv("DRAGOMAN_OAUTH_X_CLIENT_ID", "ours")
    clean.setenv("AGENTVAULT_OAUTH_X_CLIENT_SECRET", "theirs")
    assert KeyManager().get_oauth("x") is None


@pytest.mark.req("V-31")
def test_an_env_file_is_read_as_agentvault_writes_it(tmp_path: Path, clean: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".env"
    file.write_text(
        '# keys\n\nplain=one\nexport shell=two\n\'quoted id\'=three\norg/agent = "fo\\"ur"   # a comment\n'
        "single='fi\\'ve'\nempty=\nAGENTVAULT_KEY_NAMED=six\nAGENTVAULT_OAUTH_svc_CLIENT_ID=cid\n"
        "AGENTVAULT_OAUTH_svc_CLIENT_SECRET=a=b==\nplain=last\nno equals sign\n"
    )
    keys = KeyManager(file)
    assert shown(keys.get_key("plain")) == "last"
    assert shown(keys.get_key("shell")) == "two"
    assert shown(keys.get_key("quoted id")) == "three"
    assert shown(keys.get_key("org/agent")) == 'fo"ur'
    assert shown(keys.get_key("single")) == "fi've"
    assert keys.get_key("empty") is None
    assert shown(keys.get_key("named")) == "six"
    assert shown(keys.get_key("agentvault_key_named")) == "six"
    assert pair(keys.get_oauth("SVC")) == ("cid", "a=b==")


@pytest.mark.req("V-31")
def test_a_json_file_is_read_in_both_its_forms(tmp_path: Path, clean: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.json"
    file.write_text(
        json.dumps(
            {
                "Short": "one",
                "long": {"apiKey": "two", "oauth": {"clientId": "cid", "clientSecret": "sec"}},
                "half": {"oauth": {"clientId": "cid"}},
                "odd": 7,
            }
        )
    )
    keys = KeyManager(file)
    assert shown(keys.get_key("short")) == "one"
    assert shown(keys.get_key("LONG")) == "two"
    assert pair(keys.get_oauth("long")) == ("cid", "sec")
    assert keys.get_oauth("half") is None
    assert keys.get_key("half") is None
    assert keys.get_key("odd") is None


@pytest.mark.req("V-10")
@pytest.mark.parametrize("name", ["keys.env", "keys.json", ".env"])
def test_what_is_set_is_found_again_and_the_file_is_its_owners_alone(
    name: str, tmp_path: Path, clean: pytest.MonkeyPatch
) -> None:
    file = tmp_path / name
    keys = KeyManager(file)
    assert keys.get_key("svc") is None  # no file yet
    keys.set_key("Svc", "first")
    keys.set_key("svc", Secret('it\'s # "odd" \\ and $long'))
    keys.set_key("org/agent", "other")
    keys.set_oauth("svc", "cid", "s e c")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [name]  # nothing is left beside it
    again = KeyManager(file)
    assert shown(again.get_key("SVC")) == 'it\'s # "odd" \\ and $long'
    assert shown(again.get_key("org/agent")) == "other"
    assert pair(again.get_oauth("svc")) == ("cid", "s e c")
    assert "first" not in file.read_text()


@pytest.mark.parametrize("name", ["keys.env", "keys.json"])
@given(key=VALUES, client=VALUES, secret=VALUES)
def test_any_line_that_is_set_is_read_back_as_it_was(
    name: str, key: str, client: str, secret: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys = KeyManager(tmp_path_factory.mktemp("keys") / name)
    keys.set_key("no-such-service", key)
    keys.set_oauth("no-such-service", client, secret)
    assert shown(keys.get_key("no-such-service")) == key
    assert pair(keys.get_oauth("no-such-service")) == (client, secret)


def test_writing_keeps_what_else_the_file_holds(tmp_path: Path, clean: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.env"
    file.write_text("# mine\nother=kept\nsvc=old\n")
    file.chmod(0o600)
    KeyManager(file).set_key("svc", "new")
    assert file.read_text() == "# mine\nother=kept\nsvc=new\n"
    kept = tmp_path / "keys.json"
    kept.write_text('{"Svc": "old", "x": {"apiKey": "kept", "note": 1}}')
    kept.chmod(0o600)
    KeyManager(kept).set_oauth("svc", "cid", "sec")
    assert json.loads(kept.read_text()) == {
        "Svc": {"apiKey": "old", "oauth": {"clientId": "cid", "clientSecret": "sec"}},
        "x": {"apiKey": "kept", "note": 1},
    }


def test_a_file_that_others_may_read_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    file.write_text("svc=old\n")
    file.chmod(0o644)
    with pytest.raises(KeysRefused, match=r"may be read by others.*chmod 600"):
        KeyManager(file).set_key("svc", PLANTED)
    assert file.read_text() == "svc=old\n"


def test_a_link_leads_to_the_file_that_is_written(tmp_path: Path) -> None:
    real, link = tmp_path / "real.env", tmp_path / "link.env"
    real.touch(mode=0o600)
    link.symlink_to(real)
    KeyManager(link).set_key("svc", "new")
    assert link.is_symlink()
    assert real.read_text() == "svc=new\n"


def test_without_a_place_nothing_is_kept_and_the_error_says_how() -> None:
    with pytest.raises(KeysRefused, match="key_file="):
        KeyManager().set_key("svc", PLANTED)
    with pytest.raises(KeysRefused, match=r"\.env or \.json"):
        KeyManager("keys.toml")


@pytest.mark.req("V-10")
def test_the_keyring_is_only_asked_for_on_demand_and_says_what_to_install() -> None:
    KeyManager()
    with pytest.raises(MissingExtra, match=r'pip install "dragoman\[keyring\]"'):
        KeyManager(use_keyring=True)


@pytest.mark.req("V-10")
def test_a_planted_secret_shows_in_no_repr_log_error_or_encoding(tmp_path: Path, clean: pytest.MonkeyPatch) -> None:
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        file = tmp_path / "keys.json"
        keys = KeyManager(file)
        keys.set_key("svc", PLANTED)
        keys.set_oauth("svc", "cid", PLANTED)
        found, client = keys.get_key("svc"), keys.get_oauth("svc")
        told = [repr(keys), repr(found), str(found), f"{found}", repr(client), str(client)]
        logging.getLogger("somebody").info("%s %r %s %r", found, found, client, keys)
        for wrong in (f'{{"svc": "{PLANTED}"', f'["{PLANTED}"]'):
            file.write_text(wrong)
            told.append(error_of(lambda: keys.get_key("svc")))
        env = tmp_path / "keys.env"
        env.write_text(f"svc={PLANTED}\n")
        env.chmod(0o644)
        told.append(error_of(lambda: KeyManager(env).set_key("svc", PLANTED)))
        told.append(error_of(lambda: KeyManager(env).set_key("has space", PLANTED)))
        told.append(error_of(lambda: KeyManager(env).set_key("svc", f"{PLANTED}\n")))
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    assert all(told)
    assert not any(PLANTED in each for each in told)
    assert PLANTED not in heard.getvalue()
    for encode in (msgspec.json.encode, msgspec.msgpack.encode, json.dumps):
        with pytest.raises(TypeError):
            encode(found)


def error_of(question: object) -> str:
    """The whole traceback of the refusal."""
    assert callable(question)
    with pytest.raises(KeysRefused) as raised:
        question()
    return "".join(traceback.format_exception(raised.value)) + repr(raised.value.details)
