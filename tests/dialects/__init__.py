"""Tests of the dialects alone: bytes in, operations and events out, and back."""
