"""What is this machine alone."""

import pytest

from dragoman.model.loopback import is_loopback_address


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1"])
def test_loopback_is_this_machine(address: str) -> None:
    assert is_loopback_address(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "::2", "::127.0.0.1", "::ffff:127.0.0.1"])
def test_another_address_is_not_nor_is_loopback_written_as_ipv6(address: str) -> None:
    assert not is_loopback_address(address)
