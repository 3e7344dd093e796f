"""An agent of A2A 1.0 that publishes a signed card and the keys that sign it; a test changes either as it likes."""

import contextlib
import json
import re
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator
from copy import deepcopy
from typing import Any, Final

import rfc8785
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from tests.support.peers import RECIPES, peer_python
from tests.support.stub_server import StubHandler, on_free_port

Key = ECKey | OKPKey | RSAKey
JWKS: Final = "/keys.json"
CARD: Final = "/.well-known/agent-card.json"


def new_key(alg: str = "ES256") -> Key:
    """A fresh key pair of the kind that an algorithm takes."""
    if alg == "RS256":
        return RSAKey.generate_key(2048)
    return ECKey.generate_key("P-256") if alg == "ES256" else OKPKey.generate_key("Ed25519")


def jwk(key: Key, kid: str) -> dict[str, Any]:
    """The public half."""
    return {**key.as_dict(private=False), "kid": kid}


def private_jwk(key: Key, kid: str) -> dict[str, Any]:
    """The whole."""
    return {**key.as_dict(private=True), "kid": kid}


def b64(data: bytes) -> str:
    """Base64 as JOSE writes it."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def signature(card: dict[str, Any], key: Key, header: dict[str, Any], *, by: str = "") -> dict[str, Any]:
    """A signature over a card as it is; `by`: in the algorithm of another name than the header says."""
    payload = rfc8785.dumps({name: value for name, value in card.items() if name != "signatures"})
    protected = b64(json.dumps(header).encode())
    name: str = by or ("Ed25519" if header["alg"] == "EdDSA" else header["alg"])
    made = JWSRegistry.algorithms[name].sign(f"{protected}.{b64(payload)}".encode(), key)
    return {"protected": protected, "signature": b64(made)}


def official(*asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What the published SDK says to each of these: a card that it signed, or whether one verifies."""
    done = subprocess.run(
        [str(peer_python("a2a-signing")), str(RECIPES / "card_signatures.py")],
        input=json.dumps(asked).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


class CardMaker:
    """The agent: its key, the card that it shows and the key set beside it."""

    def __init__(self, url: str, alg: str = "ES256") -> None:
        self.url = url
        self.alg = alg
        self.key = new_key(alg)
        self.kid = "key-1"
        self.jwks: dict[str, Any] = {"keys": [jwk(self.key, self.kid)]}
        self.shown: bytes | None = None
        self.asked: list[str] = []  # the paths that were fetched
        self.calls = 0

    @property
    def jku(self) -> str:
        """Where its keys are."""
        return f"{self.url}{JWKS}"

    def card(self, **more: Any) -> dict[str, Any]:
        """Its card, unsigned."""
        return {
            "name": f"Signed {self.url[-5:]}",
            "description": "Says it again",
            "version": "1.0.0",
            "supportedInterfaces": [
                {"url": f"{self.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            ],
            "capabilities": {"streaming": False},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["chat"]}],
            **more,
        }

    def header(self, **more: Any) -> dict[str, Any]:
        """The protected header of its signatures."""
        return {"alg": self.alg, "typ": "JOSE", "kid": self.kid, "jku": self.jku, **more}

    def signed(self, card: dict[str, Any] | None = None, **header: Any) -> dict[str, Any]:
        """Its card, signed with its own key."""
        shown = deepcopy(self.card() if card is None else card)
        return {**shown, "signatures": [signature(shown, self.key, self.header(**header))]}

    def show(self, card: dict[str, Any]) -> None:
        """Publish this card from now on, as people write it."""
        self.shown = json.dumps(card, indent=2).encode()

    def new_key(self) -> None:
        """Sign with another key from now on, and publish that one in its place."""
        self.key = new_key(self.alg)
        self.kid = "key-2"
        self.jwks = {"keys": [jwk(self.key, self.kid)]}


def _handler(maker: Callable[[], CardMaker]) -> type[StubHandler]:
    class Handler(StubHandler):
        def do_GET(self) -> None:  # noqa: N802 - the server's own name
            """The card and the keys; nothing else is there."""
            found = {CARD: maker().shown, JWKS: json.dumps(maker().jwks).encode()}.get(self.path)
            maker().asked.append(self.path)
            self.say(404 if found is None else 200, {}, found or b"{}")

        def do_POST(self) -> None:  # noqa: N802 - the server's own name
            """A message is said again; tasks are not known."""
            body = self.read_body()
            found = re.search(rb'"method":\s*"(\w+)"', body)
            frame: dict[str, Any] = {"jsonrpc": "2.0", "id": json.loads(body or b"{}").get("id")}
            if found and found[1] == b"SendMessage":
                maker().calls += 1
                part = {"text": "said"}
                frame["result"] = {"message": {"messageId": "m1", "role": "ROLE_AGENT", "parts": [part]}}
            elif found and found[1] == b"GetTask":
                frame["error"] = {"code": -32001, "message": "There is no such task."}
            else:
                frame["error"] = {"code": -32601, "message": "There is no such method."}
            self.say(200, {}, json.dumps(frame).encode())

    return Handler


@contextlib.contextmanager
def card_maker(alg: str = "ES256") -> Generator[CardMaker]:
    """Such an agent, listening within the block."""
    held: list[CardMaker] = []
    with on_free_port(_handler(lambda: held[0])) as url:
        held.append(CardMaker(url, alg))
        yield held[0]
