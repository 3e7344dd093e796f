"""The agent of a stranger: tests/peers/echo_agent.py on the published a2a-sdk, on the load's core."""

from typing import Final

from benchmarks.http import Endpoint
from benchmarks.place import LOAD_CORE, Void, pin
from tests.support.peers import PeerProcess, PeerUnavailable

PEER: Final = "a2a-1.3.0"


class SdkAgent:
    """The published SDK's echo agent, from `start` until it is stopped."""

    def __init__(self) -> None:
        try:
            self.process = PeerProcess(PEER, "echo_agent.py", "--mode", "echo")
        except PeerUnavailable as error:
            raise Void(str(error)) from error
        self.endpoint = Endpoint(self.process.port)

    @property
    def server(self) -> PeerProcess:
        """What is stopped at the end."""
        return self.process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def start(self) -> None:
        """Start it and wait until it listens."""
        try:
            self.process.start()
        except PeerUnavailable as error:
            raise Void(str(error)) from error
        pin(self.process.pid, LOAD_CORE)
