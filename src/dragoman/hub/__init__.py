"""Deciding: who calls, what may happen, what is written. Speaks no dialect and opens no connection."""
