"""A hub in public: over TLS, behind a proxy, with the settings that the guide names."""

import http.client
import re
import shutil
import ssl
import subprocess
import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from dragoman.config import SettingError, load
from dragoman.security.private_files import SecretRefused
from dragoman.server.app import load_secrets
from dragoman.server.proxies import Proxies
from dragoman.server.run import Tls
from tests.end_to_end.world import join, tracebacks
from tests.support.hub import ADMIN_TOKEN, ROOT, HubProcess, Reply
from tests.support.platform_agent import platform_agent
from tests.support.ports import free_port
from tests.support.selfsigned import self_signed
from tests.support.stranger import ask

GUIDE: Final = ROOT / "docs" / "guides" / "security.md"
GOOD: Final = f"Authorization: Bearer {ADMIN_TOKEN}"
START_S: Final = 10.0


class TlsHub(HubProcess):
    """A hub that is asked over TLS, and waited for so."""

    trusted: Path

    def get(self, path: str, headers: Mapping[str, str] | None = None, token: str = "") -> Reply:
        """GET, without a credential."""
        said = ask(self.port, "GET", path, (), trusted=self.trusted)
        return Reply(said.status, {}, said.body)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return self_signed(tmp_path)


def test_a_hub_with_a_certificate_is_called_over_https(tmp_path: Path, tls: Tls) -> None:
    hub = TlsHub(tmp_path / "data")
    hub.trusted = tls.certificate
    hub.start({"DRAGOMAN_TLS_CERT": str(tls.certificate), "DRAGOMAN_TLS_KEY": str(tls.key)})
    try:
        status = ask(hub.port, "GET", "/", (), trusted=tls.certificate)
        assert status.status == 200
        assert status.json["links"]["api"].startswith("https://")
        assert ask(hub.port, "GET", "/v1/calls", (), trusted=tls.certificate).status == 401
        assert ask(hub.port, "GET", "/v1/calls", (GOOD,), trusted=tls.certificate).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(hub.port, "GET", "/", (), trusted=_other(tmp_path))
        with pytest.raises((AssertionError, OSError)):
            ask(hub.port, "GET", "/healthz")  # without TLS
        assert _negotiated(hub.port, tls, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        with pytest.raises((ssl.SSLError, OSError)):
            _negotiated(hub.port, tls, ssl.TLSVersion.TLSv1_1)
    finally:
        hub.stop()


def _other(folder: Path) -> Path:
    (folder / "other").mkdir(exist_ok=True)
    return self_signed(folder / "other").certificate


def _negotiated(port: int, tls: Tls, version: ssl.TLSVersion) -> str | None:
    context = ssl.create_default_context(cafile=str(tls.certificate))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that it is out of date is the point
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = version
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
    try:
        connection.connect()
        wire: ssl.SSLSocket = connection.sock
        return wire.version()
    finally:
        connection.close()


# -- what a public address changes


@pytest.mark.parametrize(
    ("settings", "networks"),
    [
        ({}, ("loopback",)),
        ({"public_url": "http://localhost:8700"}, ("loopback",)),
        ({"public_url": "https://hub.example"}, ()),
        ({"host": "0.0.0.0"}, ()),
        ({"public_url": "https://hub.example", "allow_networks": "loopback"}, ("loopback",)),
    ],
)
def test_a_hub_for_others_calls_nothing_on_its_own_machine(
    tmp_path: Path, settings: dict[str, str], networks: tuple[str, ...]
) -> None:
    """Behind a proxy it listens on loopback, and is no less public for that."""
    assert load({"data": str(tmp_path), **settings}, {}, None).allow_networks == networks


def test_a_hub_for_others_does_not_start_without_authentication(tmp_path: Path) -> None:
    for settings in ({"host": "0.0.0.0"}, {"public_url": "https://hub.example"}):
        with pytest.raises(SettingError):
            load({"data": str(tmp_path), "auth": "none", **settings}, {}, None)
    assert load({"data": str(tmp_path), "auth": "none"}, {}, None).auth == "none"


def test_a_hub_for_others_refuses_a_short_admin_token(tmp_path: Path) -> None:
    """Sixteen characters are enough on one's own machine."""
    given = {"DRAGOMAN_ADMIN_TOKEN": "k7Qx0aZ91bR4tY8u"}
    assert load_secrets(load({"data": str(tmp_path / "here")}, given, None)).admin is not None
    for number, settings in enumerate(({"host": "0.0.0.0"}, {"public_url": "https://hub.example"})):
        with pytest.raises(SecretRefused):
            load_secrets(load({"data": str(tmp_path / str(number)), **settings}, given, None))


# -- whose word on an address counts


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("127.0.0.1", b"203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", b"198.51.100.1, 203.0.113.7", "203.0.113.7"),  # what the proxy itself saw is last
        ("127.0.0.1", b"203.0.113.7, 10.0.0.9", "203.0.113.7"),  # of two proxies of ours the first saw the client
        ("127.0.0.1", b"10.0.0.9", "10.0.0.9"),
        ("127.0.0.1", b"2001:db8::7", "2001:db8::7"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("127.0.0.1", b"", "127.0.0.1"),
        ("127.0.0.1", b"rubbish", "127.0.0.1"),
        ("127.0.0.1", b"203.0.113.7, <script>", "127.0.0.1"),
        ("192.0.2.1", b"203.0.113.7", "192.0.2.1"),  # not a proxy of ours: anybody may send the header
        ("", b"203.0.113.7", ""),
    ],
)
def test_only_a_proxy_of_ours_is_believed(peer: str, forwarded: bytes | None, client: str) -> None:
    assert Proxies(["127.0.0.1", "10.0.0.0/24"]).client(peer, forwarded) == client


def _guess(hub: HubProcess, lines: tuple[str, ...], times: int) -> list[int]:
    wrong = (*lines, "Authorization: Bearer wrong")
    return [ask(hub.port, "GET", "/v1/calls", wrong, source="127.0.0.1").status for _ in range(times)]


def test_who_guesses_behind_a_proxy_locks_out_nobody_else(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start({"DRAGOMAN_TRUSTED_PROXIES": "127.0.0.1"})
    try:
        guessed = _guess(hub, ("X-Forwarded-For: 203.0.113.7",), 25)
        assert guessed[:20] == [401] * 20
        assert guessed[-1] == 429
        fresh_key = hub.new_key("a2a:call")  # asked without the header: the proxy itself
        lines = ("X-Forwarded-For: 203.0.113.8", f"Authorization: Bearer {fresh_key}")
        assert ask(hub.port, "GET", "/v1/calls", lines, source="127.0.0.1").status == 200
    finally:
        hub.stop()


def test_nobody_escapes_by_naming_another_address(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        statuses = [_guess(hub, (f"X-Forwarded-For: 203.0.113.{number}",), 1)[0] for number in range(25)]
        assert statuses[-1] == 429
    finally:
        hub.stop()


# -- the configuration of the guide


def nginx_configuration() -> str:
    """The one block of the guide that nginx reads."""
    found = re.search(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_guides_configuration_says_what_the_hub_needs() -> None:
    text = nginx_configuration()
    for needed in ("proxy_buffering off", "Host $host", "X-Forwarded-For $remote_addr", "Upgrade $http_upgrade"):
        assert needed in text
    size = re.search(r"client_max_body_size (\d+)m", text)
    assert size is not None
    assert int(size[1]) > 10
    assert "proxy_add_x_forwarded_for" not in text, "what a caller sends must not stand before what the proxy saw"


@contextmanager
def _nginx(folder: Path, tls: Tls, hub_port: int) -> Generator[int]:
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    assert Path(program).exists(), "install nginx to test the guide's configuration: apt install nginx"
    port = free_port()
    text = nginx_configuration()
    for written, here in {
        "127.0.0.1:8700": f"127.0.0.1:{hub_port}",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/dragoman/fullchain.pem": str(tls.certificate),
        "/etc/dragoman/privkey.pem": str(tls.key),
    }.items():
        assert written in text
        text = text.replace(written, here)
    temporary = "".join(
        f"    {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {\n", f"http {{\n    access_log off;\n{temporary}", 1)
    place = folder / "nginx.conf"
    place.write_text(f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n{text}")
    process = subprocess.Popen([program, "-p", str(folder), "-e", f"{folder}/first.log", "-c", str(place)])
    try:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with suppress(OSError):
                ask(port, "GET", "/healthz", (), host="hub.example.com", trusted=tls.certificate)
                break
            time.sleep(0.02)  # the only way to wait for another process to listen
        yield port
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.full
def test_a_hub_behind_nginx_as_the_guide_has_it(tmp_path: Path, tls: Tls) -> None:
    environ = {"DRAGOMAN_PUBLIC_URL": "https://hub.example.com", "DRAGOMAN_TRUSTED_PROXIES": "127.0.0.1"}
    environ["DRAGOMAN_ALLOW_NETWORKS"] = "loopback"  # where the test's agent is
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data").start(environ)
        stack.callback(hub.stop)
        agent = stack.enter_context(platform_agent())
        agent_id = join(hub, agent)["id"]
        port = stack.enter_context(_nginx(tmp_path, tls, hub.port))

        def through(
            method: str, path: str, lines: tuple[str, ...] = (GOOD,), body: bytes = b"", host: str = "hub.example.com"
        ) -> int:
            return ask(port, method, path, lines, body, host=host, trusted=tls.certificate).status

        call = f'{{"target_agent_id":"{agent_id}","skill":"echo","input":{{"text":"x"}}}}'.encode()
        assert through("GET", "/healthz", ()) == 200
        assert through("GET", "/v1/calls", ()) == 401
        assert through("POST", "/v1/a2a/call", body=call) == 200
        assert through("POST", "/v1/a2a/call/stream", body=call) == 200
        assert through("POST", "/v1/a2a/call", body=call[:-2] + b'"' + b"x" * (10 * 1024 * 1024) + b'"}') == 413
        # A foreign Host reaches the hub as it is, and is refused there.
        assert through("GET", "/healthz", (), host="evil.example") == 421
        # Wrong credentials count for who sent them, whatever they say of themselves.
        wrong = ("Authorization: Bearer wrong", "X-Forwarded-For: 203.0.113.9")
        assert [through("GET", "/v1/calls", wrong) for _ in range(3)] == [401] * 3
        giver = {"id": "ws", "name": "G", "version": "1.0.0", "supported_tasks": ["listen"]}
        key = hub.post("/v1/a2a/registry", {"agent_card": giver}).json["token"]
        assert through("WS", "/a2a/messages/ws?agent=ws", (f"Authorization: Bearer {key}",)) == 101
        assert tracebacks(hub) == []
