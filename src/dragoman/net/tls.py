"""TLS contexts for outgoing connections, one per profile, made once (building one takes tens of milliseconds).

Always: TLS 1.2 or newer, the peer's name checked, HTTP/1.1 by ALPN. A profile may bring its own authorities, or a
client certificate. An agent whose owner stored a certificate has a context of its own, and so sessions of its own.
There is no switch that turns checking off.
"""

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from dragoman.model.secret import Secret

SESSIONS: Final = 1024
IDENTITIES: Final = 1024


class TlsProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to trust and what to show: no authority file means the system's trust store."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The client certificate for one agent; what is connected with it serves that agent alone.

    `id` names agent and certificate. The key is PEM, encrypted with the password: it lies in a file for a moment.
    `ca` holds the authorities that this agent's own certificate is checked with; without it the usual ones.
    """

    id: str
    chain: str
    key: Secret
    password: Secret
    ca: str | None = None


class ResumingContext(ssl.SSLContext):
    """A client context that offers the last session of the same name again.

    Sessions are kept per server name, because a resumed handshake does not check the certificate once more.
    """

    def __init__(self, protocol: int) -> None:
        """Start without sessions; the protocol itself is read when the object is allocated."""
        super().__init__()
        self._sessions: dict[str, ssl.SSLSession] = {}

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """What event loops call to begin a handshake."""
        if session is None and isinstance(server_hostname, str):
            session = self._sessions.get(server_hostname)
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def remember(self, name: str, spoken: object) -> None:
        """Keep the session of a connection (the loop's SSL object) for the next handshake with that name."""
        session = spoken.session if isinstance(spoken, ssl.SSLObject) else None
        if session is not None and session.has_ticket:
            if len(self._sessions) >= SESSIONS and name not in self._sessions:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[name] = session


class TlsProfiles:
    """The contexts of one client: a profile for everybody, others by origin (`https://host:port`) or for one agent."""

    __slots__ = ("_contexts", "_default", "_identified", "_origins")

    def __init__(self, default: TlsProfile | None = None, origins: Mapping[str, TlsProfile] | None = None) -> None:
        """Take the settings; contexts are made at first use."""
        self._default = default or TlsProfile()
        self._origins: dict[str, TlsProfile] = dict(origins or {})
        self._contexts: dict[TlsProfile, ResumingContext] = {}
        self._identified: dict[tuple[str, TlsProfile], ResumingContext] = {}

    def context(self, host: str, port: int) -> ResumingContext:
        """The context for an origin. Raises OSError (ssl.SSLError) if a file of its profile cannot be used."""
        profile = self._origins.get(f"https://{host}:{port}", self._default)
        context = self._contexts.get(profile)
        if context is None:
            context = self._contexts[profile] = _made(profile)
        return context

    def identified(self, host: str, port: int, identity: ClientIdentity) -> ResumingContext:
        """The context in which one agent is shown its certificate. Raises OSError as `context`; may block a while."""
        profile = self._origins.get(f"https://{host}:{port}", self._default)
        key = (identity.id, profile)
        context = self._identified.get(key)
        if context is None:
            context = _made(profile, identity)
            if len(self._identified) >= IDENTITIES:
                del self._identified[next(iter(self._identified))]
            self._identified[key] = context
        return context


def _made(profile: TlsProfile, identity: ClientIdentity | None = None) -> ResumingContext:
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if identity is not None and identity.ca is not None:
        context.load_verify_locations(cadata=identity.ca)
    elif profile.ca_file is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=profile.ca_file)
    if identity is not None:
        _show(context, identity)
    elif profile.cert_file is not None:
        context.load_cert_chain(profile.cert_file, profile.key_file)
    return context


def _show(context: ssl.SSLContext, identity: ClientIdentity) -> None:
    """Load a certificate that is not in a file: OpenSSL takes it from one alone."""
    handle, name = tempfile.mkstemp(prefix="dragoman-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(f"{identity.chain.rstrip()}\n{identity.key.reveal()}".encode())
        context.load_cert_chain(name, password=identity.password.reveal())
    finally:
        Path(name).unlink(missing_ok=True)
