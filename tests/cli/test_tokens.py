"""Who am I: where the hub's address and the token come from."""

from pathlib import Path

from tests.cli.stub_hub import StubHub
from tests.cli.terminal import environment, piped

TOKEN = "a-token-of-the-operator-0123456789"


def private(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


def test_a_token_comes_from_a_file_then_from_the_environment(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    hub.token = TOKEN
    file = private(tmp_path / "token", TOKEN)
    assert piped("discover", env=env).code == 3
    assert piped("discover", env={**env, "DRAGOMAN_TOKEN": TOKEN}).code == 0
    assert piped("discover", "--token-file", str(file), env={**env, "DRAGOMAN_TOKEN": "another"}).code == 0


def test_a_missing_and_a_wrong_token_are_told_apart(hub: StubHub, env: dict[str, str]) -> None:
    hub.token = TOKEN
    assert piped("discover", env=env).err == (
        "error: the hub wants a token and none was given\n"
        "next: set DRAGOMAN_TOKEN, or ask its operator: dragoman keys create\n"
    )
    wrong = piped("discover", env={**env, "DRAGOMAN_TOKEN": "ap_wrong_0f3a"})
    assert (wrong.code, wrong.err.splitlines()[0]) == (3, "error: the hub refused the token (it ends in …f3a)")


def test_a_hub_on_this_machine_is_opened_with_the_token_of_its_data_directory(
    hub: StubHub, env: dict[str, str], tmp_path: Path
) -> None:
    hub.token = TOKEN
    private(tmp_path / ".local/share/dragoman/admin-token", TOKEN)
    assert piped("discover", env=env).code == 0


def test_of_two_hubs_the_right_token_is_found(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    hub.token = TOKEN
    private(tmp_path / "data/admin-token", "the-token-of-dragoman-serve-0123456789")
    private(tmp_path / "data/dev/admin-token", TOKEN)
    assert piped("discover", env={**env, "DRAGOMAN_DATA": str(tmp_path / "data")}).code == 0


def test_a_token_that_others_can_read_is_not_used(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    hub.token = TOKEN
    private(tmp_path / ".local/share/dragoman/admin-token", TOKEN).chmod(0o644)
    ran = piped("discover", env=env)
    assert ran.code == 3
    assert "may be read by others (mode 644); it is not used" in ran.err


def test_a_hub_elsewhere_never_sees_the_local_token(tmp_path: Path) -> None:
    private(tmp_path / ".local/share/dragoman/admin-token", TOKEN)
    # The documentation network: nobody is there, and the request is shown before it is sent.
    ran = piped("version", "-v", "--hub", "http://192.0.2.1:8700", env=environment(tmp_path))
    assert "> GET http://192.0.2.1:8700/" in ran.err
    assert "authorization" not in ran.err
