"""Calling one agent without a hub."""
