"""The only folder that opens outgoing connections."""

from dragoman.net.addresses import AddressRule, Target, judge, parse
from dragoman.net.client import Client, Streamed
from dragoman.net.dial import DialLimits, Resolver
from dragoman.net.errors import NetError, Reach
from dragoman.net.origin import ClientLimits, OriginFigures
from dragoman.net.tls import ClientIdentity, TlsProfile, TlsProfiles

__all__ = [
    "AddressRule",
    "Client",
    "ClientIdentity",
    "ClientLimits",
    "DialLimits",
    "NetError",
    "OriginFigures",
    "Reach",
    "Resolver",
    "Streamed",
    "Target",
    "TlsProfile",
    "TlsProfiles",
    "judge",
    "parse",
]
