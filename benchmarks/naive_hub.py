"""The control peer: naive/hub.py in its own environment, with a database in its own folder."""

import fcntl
import hashlib
import os
import secrets
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.calls import Call, accepted_call, platform_call
from benchmarks.http import Endpoint
from benchmarks.ledger import Ledger, check_naive, left_naive
from benchmarks.place import ROOT, SERVER_CORE
from benchmarks.processes import Server
from tests.support.peers import install
from tests.support.ports import free_port

RECIPE: Final = ROOT / "benchmarks" / "naive" / "requirements.txt"


def naive_python() -> Path:
    """The interpreter of the control's environment, made from its hashed requirements on first use."""
    home = Path(os.environ.get("DRAGOMAN_TEST_PEERS") or ROOT / ".peers").resolve()
    home.mkdir(parents=True, exist_ok=True)
    place = home / "naive"
    wanted = hashlib.sha256(RECIPE.read_bytes() + sys.version.encode()).hexdigest()
    stamp = place / ".stamp"
    with (home / "naive.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            install(RECIPE, place)
            stamp.write_text(wanted)
    return place / "bin" / "python"


class NaiveHub:
    """The control, from `start` until its server is stopped."""

    name = "naive"

    def __init__(self, folder: Path, agent: Endpoint) -> None:
        self.endpoint = Endpoint(free_port())
        self.file = folder / "naive.db"
        self.token = secrets.token_hex(24)
        self.server = Server(
            [
                str(naive_python()),
                str(ROOT / "benchmarks" / "naive" / "hub.py"),
                str(self.file),
                str(self.endpoint.port),
            ],
            core=SERVER_CORE,
            log=folder / "naive.log",
            environment={"NAIVE_TOKEN": self.token, "NAIVE_AGENT_URL": agent.url},
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.server.start(self.endpoint, "/readyz")

    def call(self) -> Call:
        """The call it is asked to carry."""
        return platform_call(self.endpoint, "agt_echo", self.token)

    def accepted_call(self) -> Call:
        """A call that it is to carry out later."""
        return accepted_call(self.endpoint, "agt_echo", self.token)

    def left(self) -> int:
        """How many calls it has not carried out yet."""
        return left_naive(self.file)

    def check(self, ledger: Ledger) -> dict[str, Any]:
        """What its database holds, compared with its answers; after `stop`."""
        return check_naive(self.file, ledger)
