"""The test suite. A package, so that `tests.support` is always ours and never a stranger's top-level `tests`."""
