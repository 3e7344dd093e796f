"""TLS: a name that fits, a certificate that is trusted and in date, and nothing less."""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dragoman.net import ClientLimits, DialLimits, Reach, TlsProfile, TlsProfiles
from tests.unit.net.servers import (
    CLOSING,
    Line,
    Run,
    always,
    client_of,
    failure,
    get,
    serving,
    silent,
    sockets_open,
    soon,
    until,
)

NOW = datetime.now(UTC)


async def resolve(_: str) -> list[str]:
    return ["127.0.0.1"]


class Authority:
    """A certificate authority of our own, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed("authority", self._key.public_key(), [], NOW + timedelta(days=1), ca=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, days: int = 1) -> Path:
        """A certificate and its key in one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name), x509.IPAddress(IPv4Address("127.0.0.9"))]
        made = self._signed(name, key.public_key(), names, NOW + timedelta(days=days), ca=False)
        file = self._folder / f"{name}-{days}.pem"
        file.write_bytes(
            made.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return file

    def _signed(
        self, name: str, key: ec.EllipticCurvePublicKey, names: Sequence[x509.GeneralName], until: datetime, *, ca: bool
    ) -> x509.Certificate:
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=9))
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def server_context(file: Path, trusted: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if trusted is not None:
        context.load_verify_locations(trusted)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def trusting(authority: Authority) -> TlsProfiles:
    return TlsProfiles(TlsProfile(ca_file=str(authority.file)))


def test_a_trusted_certificate_with_the_right_name_passes(run: Run, authority: Authority) -> None:
    chosen: list[tuple[str | None, str | None]] = []

    async def script(line: Line) -> None:
        spoken = line.writer.get_extra_info("ssl_object")
        chosen.append((spoken.version(), spoken.selected_alpn_protocol()))
        while await line.request():
            line.answer()

    async def scenario() -> None:
        context = server_context(authority.issue("good.example"))
        context.set_alpn_protocols(["h2", "http/1.1"])
        async with serving(script, context) as server, client_of(tls=trusting(authority), resolve=resolve) as client:
            for _ in range(3):
                reply = await client.send(get(f"https://good.example:{server.port}/"), deadline=soon())
                assert reply.body == b"ok"
            assert chosen == [("TLSv1.3", "http/1.1")]
            big = get(f"https://good.example.:{server.port}/")
            assert (await client.send(big, deadline=soon())).body == b"ok"

    run(scenario())


@pytest.mark.parametrize("case", ["wrong name", "address not named", "expired", "self-signed", "old protocol"])
def test_a_certificate_that_does_not_fit_is_refused_before_anything_is_sent(
    run: Run, authority: Authority, case: str
) -> None:
    heard: list[bytes] = []

    async def script(line: Line) -> None:
        heard.append(await line.request())

    async def scenario() -> None:
        before = sockets_open()
        context = server_context(authority.issue("good.example", days=-1 if case == "expired" else 1))
        if case == "old protocol":
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        host = {"wrong name": "other.example", "address not named": "127.0.0.1"}.get(case, "good.example")
        tls = TlsProfiles() if case == "self-signed" else trusting(authority)
        async with serving(script, context) as server, client_of(tls=tls, resolve=resolve) as client:
            error = await failure(client.send(get(f"https://{host}:{server.port}/"), deadline=soon()))
            assert (error.kind, error.sent, str(error)) == (Reach.TLS, False, "not reachable")
            assert [shown.open for shown in client.figures().values()] == [0]
            assert heard == []
        await until(lambda: sockets_open() == before)

    with pytest.warns(DeprecationWarning) if case == "old protocol" else nullcontext():
        run(scenario())


def test_an_origin_may_have_its_own_authority_and_client_certificate(run: Run, authority: Authority) -> None:
    async def scenario() -> None:
        file = authority.issue("good.example")
        mine = authority.issue("hub.example")
        context = server_context(file, trusted=authority.file)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        async with serving(always(), context) as server:
            origin = f"https://good.example:{server.port}"
            shown = TlsProfile(ca_file=str(authority.file), cert_file=str(mine))
            async with client_of(tls=TlsProfiles(origins={origin: shown}), resolve=resolve) as client:
                assert (await client.send(get(origin), deadline=soon())).body == b"ok"
            async with client_of(tls=trusting(authority), resolve=resolve) as client:
                assert (await failure(client.send(get(origin), deadline=soon()))).kind is Reach.TLS
            lost = TlsProfile(cert_file=str(mine) + ".lost")
            async with client_of(tls=TlsProfiles(lost), resolve=resolve) as client:
                assert (await failure(client.send(get(origin), deadline=soon()))).kind is Reach.TLS

    run(scenario())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_second_handshake_resumes_the_session_of_the_same_name(
    run: Run, authority: Authority, version: ssl.TLSVersion
) -> None:
    resumed: list[bool] = []

    async def script(line: Line) -> None:
        resumed.append(line.writer.get_extra_info("ssl_object").session_reused)
        while await line.request():
            line.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=1\r\n\r\nok")

    async def scenario() -> None:
        context = server_context(authority.issue("good.example"))
        context.maximum_version = version
        async with serving(script, context) as server, client_of(tls=trusting(authority), resolve=resolve) as client:
            for _ in range(2):
                await client.send(get(f"https://good.example:{server.port}/"), deadline=soon())
            assert resumed == [False, True]
            other = await failure(client.send(get(f"https://other.example:{server.port}/"), deadline=soon()))
            assert other.kind is Reach.TLS

    run(scenario())


def test_a_peer_that_never_shakes_hands_is_given_up(run: Run, authority: Authority) -> None:
    async def scenario() -> None:
        before = sockets_open()
        limits = ClientLimits(dial=DialLimits(handshake_s=0.1))
        async with serving(silent) as server, client_of(tls=trusting(authority), limits=limits) as client:
            url = f"https://127.0.0.1:{server.port}/"
            error = await failure(client.send(get(url), deadline=soon()))
            assert (error.kind, error.sent) == (Reach.TIMEOUT, False)
            await until(lambda: server.open == 0)
        async with serving(silent) as server, client_of(tls=trusting(authority)) as client:
            url = f"https://127.0.0.1:{server.port}/"
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(client.send(get(url), deadline=soon()))
                await until(lambda: server.open == 1)
                sending.cancel()
            await until(lambda: server.open == 0)
            assert client.figures()[url[:-1]].open == 0
        await until(lambda: sockets_open() == before)

    run(scenario())


def test_a_plain_server_and_a_closing_one_are_told_apart(run: Run, authority: Authority) -> None:
    async def plainly(line: Line) -> None:
        await line.reader.read(1)
        line.answer(CLOSING)
        await line.closed()

    async def scenario() -> None:
        async with serving(plainly) as plain, client_of(tls=trusting(authority)) as client:
            error = await failure(client.send(get(f"https://127.0.0.1:{plain.port}/"), deadline=soon()))
            assert (error.kind, error.sent) == (Reach.TLS, False)
        context = server_context(authority.issue("good.example"))
        async with (
            serving(always(CLOSING), context) as server,
            client_of(tls=trusting(authority), resolve=resolve) as client,
        ):
            for _ in range(2):
                reply = await client.send(get(f"https://good.example:{server.port}/"), deadline=soon())
                assert reply.body == b"ok"
            assert server.accepted == 2

    run(scenario())
