"""Settings: which place wins, what is refused and in which words, what may be shown."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from dragoman.config import (
    DEFAULT_FILE,
    HINTS,
    SettingError,
    Settings,
    is_loopback,
    load,
    mask_url,
    user_data,
    variable,
)
from dragoman.model.secret import Secret

HOME = {"HOME": "/home/bob"}


def settings(text: str = "", *, tmp_path: Path | None = None, **environ: str) -> Settings:
    if tmp_path is None:
        return load({}, {**HOME, **environ}, None)
    return load({}, {**HOME, **environ}, written(tmp_path, text))


def written(folder: Path, text: str) -> Path:
    path = folder / "hub.toml"
    path.write_text(text)
    return path


def refusal(
    flags: dict[str, str] | None = None, environ: dict[str, str] | None = None, file: Path | None = None
) -> str:
    with pytest.raises(SettingError) as refused:
        load(flags or {}, {**HOME, **(environ or {})}, file)
    assert refused.value.next and str(refused.value) == refused.value.message
    assert "\n" not in refused.value.message
    return refused.value.message


def test_without_anything_given_the_hub_is_private_to_its_machine() -> None:
    plain = settings()
    assert (plain.host, plain.port, plain.auth, plain.store, plain.bus) == (
        "127.0.0.1",
        8700,
        "token",
        "sqlite",
        "local",
    )
    assert plain.data == Path("/home/bob/.local/share/dragoman")
    assert plain.public_url == "http://localhost:8700"
    assert plain.allow_networks == ("loopback",)
    assert plain.admin_token is plain.root_key is plain.tls_cert is plain.grpc_port is plain.default_agent is None
    assert plain.on_loopback and plain.warnings == ()
    assert {given.source for given in plain.sources.values()} == {"default"}


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = written(tmp_path, "# mine\nhost = '::1'\nport = 1\n\n[calls]\ntimeout_s = 7\n")
    environ = {**HOME, "DRAGOMAN_PORT": "2", "DRAGOMAN_CALLS_TIMEOUT_S": "8.5"}
    seen = load({"port": "3"}, environ, file)
    assert (seen.host, seen.port, seen.calls.timeout_s, seen.calls.drain_s) == ("::1", 3, 8.5, 30)
    sources = {name: seen.sources[name].source for name in ("host", "port", "calls.timeout_s", "calls.drain_s")}
    assert sources == {
        "host": f"{file}:2",
        "port": "flag --port",
        "calls.timeout_s": "DRAGOMAN_CALLS_TIMEOUT_S",
        "calls.drain_s": "default",
    }


def test_every_setting_has_a_type_a_default_and_one_comment() -> None:
    text = DEFAULT_FILE.read_text()
    section, names = "", list[str]()
    for line in text.splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1] + "."
        elif key := re.match(r"(\w+) = ", line):
            names.append(section + key[1])
            assert re.search(r"  # \S.{8,}", line), f"{names[-1]} has no comment"
    assert names == list(HINTS)
    assert tomllib.loads(text)["limits"]["call_body_mib"] == settings().limits.call_body_mib


@pytest.mark.parametrize("name", list(HINTS))
def test_every_setting_can_be_given_by_variable_and_names_it(name: str) -> None:
    given = {variable(name): "\t"}
    if Secret in getattr(HINTS[name], "__args__", ()):
        assert load({}, {**HOME, **given}, None).sources[name].source == variable(name)
    elif name in ("allow_networks", "hosts", "trusted_proxies", "data", "tls_cert", "tls_key", "store", "bus"):
        assert variable(name) == f"DRAGOMAN_{name.upper()}"
    else:
        assert re.fullmatch(rf'wrong setting: {name} = "\\t" \({variable(name)}\): expected .+', refusal(environ=given))


def test_the_short_names_of_the_manual_are_the_variables() -> None:
    assert [variable(name) for name in ("port", "log.form", "log.level", "envelope.ids", "limits.depth")] == [
        "DRAGOMAN_PORT",
        "DRAGOMAN_LOG",
        "DRAGOMAN_LOG_LEVEL",
        "DRAGOMAN_ENVELOPE_IDS",
        "DRAGOMAN_LIMITS_DEPTH",
    ]
    assert load({"log": "json", "public_url": "https://hub.example/"}, HOME, None).log.form == "json"
    assert settings(DRAGOMAN_LOG="pretty").log.form == "pretty"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("PORT", "87x0", "1 to 65535"),
        ("PORT", "0", "1 to 65535"),
        ("PORT", "65536", "1 to 65535"),
        ("PORT", "8_7", "1 to 65535"),
        ("GRPC_PORT", "x", "1 to 65535"),
        ("AUTH", "nonee", "token or none"),
        ("LOG", "xml", "auto, json or pretty"),
        ("ENVELOPE_IDS", "loose", "strict or lenient"),
        ("HOST", "127.0.0.1:80", "an address or a host name"),
        ("HOST", "999.1.1.1", "an address or a host name"),
        ("HOST", "[::1]", "an address or a host name"),
        ("CALLS_TIMEOUT_S", "nan", "more than 0, at most 86400"),
        ("CALLS_TIMEOUT_S", "0", "more than 0, at most 86400"),
        ("CALLS_DRAIN_S", "-1", "0 to 3600"),
        ("LIMITS_CONNECTIONS", "many", "1 to 1000000"),
        ("PUBLIC_URL", "ftp://x", "http:// or https:// with a host, without user, query or fragment"),
        ("PUBLIC_URL", "https://", "http:// or https:// with a host, without user, query or fragment"),
        ("PUBLIC_URL", "https://h:99999", "http:// or https:// with a host, without user, query or fragment"),
        ("PUBLIC_URL", "https://h/?x", "http:// or https:// with a host, without user, query or fragment"),
        ("HOSTS", "a.example,b/c", "host names or addresses without port"),
        ("TRUSTED_PROXIES", "*", "addresses or CIDRs of proxies, never all addresses"),
        ("TRUSTED_PROXIES", "0.0.0.0/0", "addresses or CIDRs of proxies, never all addresses"),
        ("ALLOW_NETWORKS", "10.0.0.1/8", "CIDRs such as 10.0.0.0/8, loopback or private"),
        ("ALLOW_NETWORKS", "loopback,all", "CIDRs such as 10.0.0.0/8, loopback or private"),
        ("DEFAULT_AGENT", "../x", "an agent's id"),
    ],
)
def test_a_wrong_value_names_setting_source_and_what_is_allowed(name: str, value: str, expected: str) -> None:
    message = refusal(environ={f"DRAGOMAN_{name}": value})
    assert message.startswith("wrong setting: ")
    assert message.endswith(f" (DRAGOMAN_{name}): expected {expected}")


def test_the_sentence_of_a_wrong_port() -> None:
    message = refusal(environ={"DRAGOMAN_PORT": "87x0"})
    assert message == 'wrong setting: port = "87x0" (DRAGOMAN_PORT): expected 1 to 65535'
    assert refusal({"port": "x"}) == 'wrong setting: port = "x" (flag --port): expected 1 to 65535'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "unknown setting prot ({0}:1): did you mean port?"),
        ("[limits]\n\ndept = 1", "unknown setting limits.dept ({0}:3): did you mean limits.depth?"),
        ("limits.dept = 1", "unknown setting limits.dept ({0}:1): did you mean limits.depth?"),
        ("[limit]\ndepth = 1", "unknown setting limit.depth ({0}:2): did you mean limits.depth?"),
        ("log = 'json'", "unknown setting log ({0}:1): did you mean log.form?"),
        ("qqqqqq = 1", "unknown setting qqqqqq ({0}:1)"),
        ("port = true", "wrong setting: port = true ({0}:1): expected 1 to 65535"),
        ("port = 8.5", "wrong setting: port = 8.5 ({0}:1): expected 1 to 65535"),
        ("port = ''", 'wrong setting: port = "" ({0}:1): expected 1 to 65535'),
        ("data = ''", 'wrong setting: data = "" ({0}:1): expected a path'),
        ("hosts = [1]", "wrong setting: hosts = [1] ({0}:1): expected host names or addresses without port"),
        ("limits = {{depth = 1}}", "wrong setting: limits.depth = 1 ({0}): expected 8 to 512"),
        ("limits.depth.x = 1", 'wrong setting: limits.depth = {{"x":1}} ({0}): expected 8 to 512'),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text.replace("{{", "{").replace("}}", "}"))
    assert refusal(file=file) == message.format(file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert refusal(file=tmp_path / "absent.toml").startswith(
        f"wrong settings file {tmp_path / 'absent.toml'}: No such file"
    )
    assert "line 1" in refusal(file=written(tmp_path, "port = = 1"))
    broken = tmp_path / "latin.toml"
    broken.write_bytes(b"host = '\xff'")
    assert str(broken) in refusal(file=broken)


def test_an_unknown_variable_warns_and_known_families_do_not() -> None:
    seen = settings(
        DRAGOMAN_ALOW_NETWORKS="x",
        DRAGOMAN_ZZZZZZ="x",
        DRAGOMAN_KEY_OPENAI="x",
        DRAGOMAN_OAUTH_A_CLIENT_ID="x",
        DRAGOMAN_MODEL_NAME="x",
        DRAGOMAN_TEST_PEERS="x",
        DRAGOMAN_URL="x",
        DRAGOMAN_TOKEN="x",
        OTHER="x",
    )
    assert seen.warnings == (
        "unknown setting DRAGOMAN_ALOW_NETWORKS: did you mean DRAGOMAN_ALLOW_NETWORKS?",
        "unknown setting DRAGOMAN_ZZZZZZ",
    )


def test_an_empty_variable_counts_as_not_set() -> None:
    assert settings(DRAGOMAN_PORT="", DRAGOMAN_ADMIN_TOKEN="") == settings()


def test_an_unknown_flag_is_refused() -> None:
    assert refusal({"prot": "1"}) == "unknown setting --prot: did you mean port?"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "hub.example"])
def test_auth_none_needs_a_loopback_host(host: str) -> None:
    assert refusal({"auth": "none", "host": host}) == f"wrong setting: auth = none needs a loopback host, got {host}"
    assert load({"auth": "token", "host": host}, HOME, None).allow_networks == ()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_auth_none_is_taken_on_loopback(host: str) -> None:
    assert load({"auth": "none", "host": host}, HOME, None).auth == "none"


@pytest.mark.parametrize(
    "host", ["localhost.example", "127.1", "2130706433", "::ffff:127.0.0.1", "", "127.0.0.1.nip.io"]
)
def test_what_only_looks_like_loopback_is_not(host: str) -> None:
    assert not is_loopback(host)


def test_postgresql_is_refused_with_its_password_masked() -> None:
    message = refusal(environ={"DRAGOMAN_STORE": "postgresql://hub:pa55@db/x"})
    assert message == (
        'wrong setting: store = "postgresql://hub:***@db/x" (DRAGOMAN_STORE): '
        "PostgreSQL comes with a later version, this one keeps its data in sqlite"
    )


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"DRAGOMAN_STORE": "mysql"}, 'store = "mysql" (DRAGOMAN_STORE): expected sqlite'),
        ({"DRAGOMAN_BUS": "nats://n"}, 'bus = "nats://n" (DRAGOMAN_BUS): with the sqlite store only local works'),
        ({"DRAGOMAN_TLS_CERT": "c"}, 'tls_cert = "c" (DRAGOMAN_TLS_CERT): tls_cert and tls_key belong together'),
        ({"DRAGOMAN_TLS_KEY": "k"}, 'tls_key = "k" (DRAGOMAN_TLS_KEY): tls_cert and tls_key belong together'),
        (
            {"DRAGOMAN_CALLS_MAX_TIMEOUT_S": "20"},
            "calls.timeout_s = 30 (default): expected at most calls.max_timeout_s",
        ),
        (
            {"DRAGOMAN_CLIENT_CONNECTIONS": "9"},
            "client.connections_per_origin = 64 (default): expected at most client.connections",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(environ: dict[str, str], message: str) -> None:
    assert refusal(environ=environ) == f"wrong setting: {message}"


def test_what_is_worked_out_follows_what_was_given() -> None:
    seen = settings(DRAGOMAN_HOST="0.0.0.0", DRAGOMAN_PORT="9000", DRAGOMAN_TLS_CERT="c.pem", DRAGOMAN_TLS_KEY="k.pem")
    assert (seen.public_url, seen.allow_networks, seen.on_loopback) == ("https://localhost:9000", (), False)
    seen = settings(DRAGOMAN_PUBLIC_URL="https://hub.example/base/", DRAGOMAN_ALLOW_NETWORKS=" private, 10.0.0.0/8 ,")
    assert (seen.public_url, seen.allow_networks) == ("https://hub.example/base", ("private", "10.0.0.0/8"))


def test_lists_may_be_lists_or_text_in_the_file(tmp_path: Path) -> None:
    seen = settings("hosts = ['a.example', '::1']\ntrusted_proxies = '10.0.0.7'", tmp_path=tmp_path)
    assert (seen.hosts, seen.trusted_proxies) == (("a.example", "::1"), ("10.0.0.7",))


def test_secrets_are_masked_wherever_settings_are_shown(tmp_path: Path) -> None:
    seen = settings("root_key = 'r00t'", tmp_path=tmp_path, DRAGOMAN_ADMIN_TOKEN="t0k")
    assert (seen.admin_token, seen.root_key) == (Secret("t0k"), Secret("r00t"))
    shown = repr(seen) + msgspec.json.encode(seen.sources).decode()
    assert "t0k" not in shown and "r00t" not in shown
    assert seen.sources["admin_token"].value == "***"
    assert "4711" not in refusal(file=written(tmp_path, "root_key = 4711"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://hub:pa55@db", "postgresql://hub:***@db"),
        ("postgresql://hub:p@ss@db", "postgresql://hub:***@db"),
        ("nats://t0k@host:4222", "nats://***@host:4222"),
        ("postgresql://db/x?user=a&password=pa55&b=1", "postgresql://db/x?user=a&password=***&b=1"),
        ("https://host/a:b@c", "https://host/a:b@c"),
    ],
)
def test_the_user_part_of_a_url_is_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_the_data_folder_follows_the_platform() -> None:
    assert user_data(HOME, "linux") == Path("/home/bob/.local/share/dragoman")
    assert user_data({**HOME, "XDG_DATA_HOME": "/data"}, "linux") == Path("/data/dragoman")
    assert user_data({**HOME, "XDG_DATA_HOME": "data"}, "linux") == Path("/home/bob/.local/share/dragoman")
    assert user_data(HOME, "darwin") == Path("/home/bob/Library/Application Support/dragoman")


def test_settings_load_no_package_of_the_hub() -> None:
    program = (
        "import sys, dragoman.config\n"
        "names = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(names & {'asyncio', 'ssl', 'click', 'rich', 'uvicorn', 'starlette', 'cryptography'}))\n"
        "print(sorted(name for name in sys.modules if name.startswith('dragoman.') and name.count('.') == 1))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert printed.stdout == "[]\n['dragoman.config', 'dragoman.model']\n"
