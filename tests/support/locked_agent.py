"""An A2A 1.0 agent that answers whoever proves who it is, its token endpoint, and certificates made on the fly."""

import contextlib
import json
import ssl
import threading
from base64 import b64decode
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.stub_server import StubHandler

CLIENT: Final = "the-client"
HOUR: Final = timedelta(hours=1)

Takes = Callable[[Mapping[str, str]], bool]  # by the headers of a request


class TokenEndpoint:
    """Gives a token to one client: what it was asked, and which of its tokens still count."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.lasts_s: int | None = 3600
        self.broken = False
        self.asked: list[tuple[Mapping[str, str], dict[str, list[str]]]] = []
        self.valid: set[str] = set()
        self._lock = threading.Lock()

    def answer(self, headers: Mapping[str, str], form: str) -> tuple[int, dict[str, Any]]:
        """What is said to one request."""
        with self._lock:
            said = parse_qs(form)
            self.asked.append((headers, said))
            if self.broken or self._shown(headers, said) != (CLIENT, self.secret):
                return 401, {"error": "invalid_client", "error_description": f"wrong: {form}"}
            token = f"token-{len(self.asked)}-of-{self.secret}"
            self.valid.add(token)
            lasts = {} if self.lasts_s is None else {"expires_in": self.lasts_s}
            return 200, {"access_token": token, "token_type": "Bearer", **lasts}

    def takes(self, headers: Mapping[str, str]) -> bool:
        """Whether a request to the agent shows a token that counts."""
        return headers.get("authorization", "").removeprefix("Bearer ") in self.valid

    @staticmethod
    def _shown(headers: Mapping[str, str], form: dict[str, list[str]]) -> tuple[str, str]:
        basic = headers.get("authorization", "")
        if basic.startswith("Basic "):
            client, _, secret = b64decode(basic[6:]).decode().partition(":")
            return unquote(client), unquote(secret)
        return form.get("client_id", [""])[0], form.get("client_secret", [""])[0]


class LockedAgent:
    """Where it is, whom it takes, and what it was sent."""

    def __init__(self, takes: Takes, tokens: TokenEndpoint | None) -> None:
        self.takes = takes
        self.tokens = tokens
        self.url = ""
        self.requests: list[tuple[Mapping[str, str], Any]] = []  # headers in small letters, and the body
        self.peers: list[str] = []  # the names in the certificates that callers showed

    def card(self, **more: Any) -> dict[str, Any]:
        """Its card."""
        interface = {"url": f"{self.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        skills = [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["chat"]}]
        card = {"name": "Locked", "version": "1.0.0", "supportedInterfaces": [interface], "skills": skills}
        return {**card, "capabilities": {"streaming": True}, **more}


@contextlib.contextmanager
def locked_agent(
    takes: Takes, *, tokens: TokenEndpoint | None = None, tls: ssl.SSLContext | None = None
) -> Generator[LockedAgent]:
    """An agent that runs within the block; with `tokens`, their endpoint is its `/token`."""
    agent = LockedAgent(takes, tokens)

    class Handler(StubHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name the parent calls
            found = self.path == "/.well-known/agent-card.json"
            self.say_json(200 if found else 404, agent.card() if found else {})

        def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
            raw, headers = self.read_body(), self.read_headers()
            if self.path == "/token" and agent.tokens is not None:
                self.say_json(*agent.tokens.answer(headers, raw.decode()))
                return
            asked = json.loads(raw)
            agent.requests.append((headers, asked))
            if isinstance(self.connection, ssl.SSLSocket):
                agent.peers.append(_name_of(self.connection))
            if not agent.takes(headers):
                self.say(401, {"WWW-Authenticate": "Bearer"}, b'{"detail": "Not authenticated"}')
                return
            self._talk(asked)

        def _talk(self, asked: dict[str, Any]) -> None:
            frame: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
            if "message" not in asked.get("params", {}):
                self.say_json(200, {**frame, "error": {"code": -32001, "message": "Task not found"}})
                return
            said = {"messageId": "m1", "role": "ROLE_AGENT", "parts": asked["params"]["message"]["parts"]}
            frame["result"] = {"message": said}
            if asked["method"] != "SendStreamingMessage":
                self.say_json(200, frame)
                return
            self.begin_stream()
            self.wfile.write(f"data: {json.dumps(frame)}\n\n".encode())
            self.close_connection = True

    server = _Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    agent.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield agent
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """A handshake that fails is the caller's affair."""


def _name_of(wire: ssl.SSLSocket) -> str:
    shown: Any = wire.getpeercert() or {}
    return next((value for ((name, value),) in shown.get("subject", ()) if name == "commonName"), "")


class Authority:
    """A certificate authority of our own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.pem = _pem(self._signed("authority", self._key.public_key(), ca=True))

    def issue(self, name: str) -> tuple[str, str]:
        """A certificate for the loopback address, and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return _pem(self._signed(name, key.public_key(), ca=False)), key.private_bytes(*form).decode()

    def serving(self) -> ssl.SSLContext:
        """The context of a server that takes clients with a certificate of this authority alone."""
        file = self._folder / "server.pem"
        file.write_text("\n".join(self.issue("server")))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=self.pem)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _signed(self, name: str, key: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - HOUR)
            .not_valid_after(now + HOUR)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
