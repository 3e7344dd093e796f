"""Implementations of the ports: stores and buses. Nothing above imports them but the composition root."""
