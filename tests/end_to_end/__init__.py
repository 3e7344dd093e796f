"""Tests of a real hub in a process of its own, over real sockets."""
