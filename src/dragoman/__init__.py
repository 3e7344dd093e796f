"""Dragoman, the interpreter and switchboard for AI agents.

Importing it costs nothing: no sockets, threads, environment reads or logging set-up, and none of the packages that
only the hub or the command line needs.
"""

__all__ = ["__version__"]

# A constant, because asking the installed package's metadata takes longer than all the rest; a test compares the two.
__version__ = "0.1.0"
