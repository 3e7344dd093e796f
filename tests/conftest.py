"""What every test has: the requirements ledger and the choice of tests."""

pytest_plugins = [
    "pytester",
    "tests.requirements.plugin",
    "tests.support.selection",
    "tests.support.security_figures",
    "tests.interop.table",
]
