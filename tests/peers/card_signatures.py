"""The published SDK's own signing of cards: signs one, or says whether one verifies.

Reads a JSON list from standard input, of objects: `card`, and `private` (a JWK) with `protected` to sign it with, or
`keys` (a JWKS) to verify it by. Writes a list: for each the signed card, or `{"verified": ...}` with why not.
"""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.api_jwk import PyJWK


def signed(asked: dict) -> dict:
    card = ParseDict(asked["card"], AgentCard(), ignore_unknown_fields=True)
    signer = create_agent_card_signer(PyJWK(asked["private"]), asked["protected"])
    return MessageToDict(signer(card))


def verified(asked: dict) -> dict:
    # As the SDK's own resolver reads a card that it fetched.
    card = ParseDict(asked["card"], AgentCard(), ignore_unknown_fields=True)
    keys = {key["kid"]: key for key in asked["keys"]["keys"]}
    jkus: list = []

    def key_of(kid: str | None, jku: str | None) -> PyJWK:
        jkus.append(jku)
        return PyJWK(keys[kid])

    try:
        create_signature_verifier(key_of, ["ES256", "RS256", "EdDSA"])(card)
    except SignatureVerificationError as error:
        return {"verified": False, "why": type(error).__name__, "jkus": jkus}
    return {"verified": True, "jkus": jkus}


def main() -> None:
    json.dump([signed(asked) if "private" in asked else verified(asked) for asked in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
