"""The frameworks that have an A2A server or client of their own, and how each is run.

Their programs are in `tests/peers`, each in an environment of its own; models are fakes that say what they heard, so
nothing needs a key or a network.
"""

import re
import uuid
from typing import Final

import msgspec

from tests.support.peers import RECIPES

# `langgraph dev` names its assistants by their graphs.
ASSISTANT: Final = uuid.uuid5(uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), "repeater")


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a pair: a package, the environment it is in, and the program that uses it."""

    package: str
    peer: str
    program: str
    path: str = ""  # of a server: where its agent is
    answer: str = "You said: "  # of a server: what its answer begins with, before what it heard

    @property
    def name(self) -> str:
        """The package and the version that is pinned, as people write them."""
        found = re.search(
            rf"^{re.escape(self.package)}==(\S+)", (RECIPES / f"{self.peer}.txt").read_text(), re.MULTILINE
        )
        assert found is not None, f"{self.peer}.txt does not pin {self.package}"
        return f"{self.package} {found[1]}"


def _framework(package: str, short: str, side: str, path: str = "") -> Framework:
    program = f"interop_{short.replace('-', '_')}_{side}.py"
    return Framework(package=package, peer=f"interop-{short}", program=program, path=path)


SERVERS: Final = (
    Framework(package="a2a-sdk", peer="a2a-1.3.0", program="echo_agent.py", answer=""),
    Framework(package="a2a-sdk", peer="a2a-0.3.26", program="echo_agent_v03.py", answer=""),
    _framework("pydantic-ai-slim", "pydantic-ai", "agent"),
    _framework("google-adk", "google-adk", "agent"),
    _framework("strands-agents", "strands", "agent"),
    _framework("ag2", "ag2", "agent"),
    _framework("agent-framework-core", "agent-framework", "agent"),
    _framework("beeai-framework", "beeai", "agent"),
    _framework("python-a2a", "python-a2a", "agent"),
    _framework("crewai", "crewai", "agent"),
    _framework("langgraph-api", "langgraph", "agent", f"a2a/{ASSISTANT}"),
)
CLIENTS: Final = (
    Framework(package="a2a-sdk", peer="a2a-1.3.0", program="interop_a2a_v10_client.py"),
    Framework(package="a2a-sdk", peer="a2a-0.3.26", program="interop_a2a_v03_client.py"),
    _framework("fasta2a", "pydantic-ai", "client"),
    _framework("google-adk", "google-adk", "client"),
    _framework("strands-agents", "strands", "client"),
    _framework("ag2", "ag2", "client"),
    _framework("agent-framework-core", "agent-framework", "client"),
    _framework("beeai-framework", "beeai", "client"),
)
