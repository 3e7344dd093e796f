"""Client certificates that are kept as text: whether certificate and key fit, and the key as it may lie in a file.

Errors never quote what was given.
"""

import os
from typing import TYPE_CHECKING, Final

from dragoman.model.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

PASSWORD_BYTES: Final = 32


class CertificateRefused(Exception):
    """A certificate or its key cannot be used; the message says which and why."""


def check_certificate(chain: str, key: Secret, ca: str | None) -> None:
    """Raises CertificateRefused where certificate, key or authorities are no PEM, or do not belong together."""
    # Imported here: only hubs that keep certificates have a use for it.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        first, *_ = x509.load_pem_x509_certificates(chain.encode())
    except ValueError:
        raise CertificateRefused("certificate: expected PEM, the agent's own first, then its chain") from None
    private = _private(key)
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != first.public_key().public_bytes(*form):
        raise CertificateRefused("key: belongs to another certificate")
    if ca is not None:
        try:
            x509.load_pem_x509_certificates(ca.encode())
        except ValueError:
            raise CertificateRefused("ca: expected PEM certificates") from None


def encrypted_key(key: Secret) -> tuple[Secret, Secret]:
    """The key as encrypted PEM, and the password it was just given. Raises CertificateRefused."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    password = os.urandom(PASSWORD_BYTES).hex()
    pem = _private(key).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    return Secret(pem.decode()), Secret(password)


def _private(key: Secret) -> "PrivateKeyTypes":
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(key.reveal().encode(), password=None)
    except (ValueError, TypeError):  # TypeError: it is encrypted
        raise CertificateRefused("key: expected PEM without a password") from None
