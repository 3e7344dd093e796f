"""Which IP addresses are this machine alone, the same on every Python.

Since 3.13 `ipaddress` counts `::ffff:127.0.0.1` too. Here it is none: what decides whether a token is asked for has one
way to be written.
"""

from ipaddress import ip_address


def is_loopback_address(address: str) -> bool:
    """Whether it is in 127.0.0.0/8 or is ::1. Raises ValueError where it is no address."""
    parsed = ip_address(address)
    return parsed.is_loopback and (parsed.version == 4 or int(parsed) == 1)
