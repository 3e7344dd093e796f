"""Calling agents through a hub."""
