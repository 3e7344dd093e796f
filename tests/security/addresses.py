"""Forbidden addresses, the ways to write them, and every place of the wire where somebody else's URL comes in."""

import base64
import ipaddress
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from tests.support.planted_security import NAMES
from tests.support.reach import framed

_LISTED: Final = """
127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 169.254.170.2
100.64.0.1 100.100.100.200 192.0.0.1 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1 192.52.193.1
192.175.48.1 192.31.196.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::ffff:127.0.0.1
::ffff:169.254.169.254 ::ffff:10.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::a00:1 2002:7f00:1:: 2002:a9fe:a9fe:: 2001:0:a9fe:a9fe:: 2001:db8::1 3fff::1 100::1 100:0:0:1::1 fc00::1
fd00:ec2::254 fd20:ce::254 fe80::1 fec0::1 ff02::1 5f00::1 2001:2::1 2001:10::1 2001:20::1
"""
FORBIDDEN: Final = tuple(_LISTED.split())
PUBLIC: Final = ("1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::200e")
PORTS: Final = (8443, 443, 8080, 80)  # those that public addresses have: no other rule keeps these URLs out


def hex_name(address: str) -> str:
    """The label that resolves to an address (`planted_security.tells_dials`)."""
    return f"x{ipaddress.ip_address(address).packed.hex()}"


def forms(address: str, port: int) -> Iterator[str]:
    """The URLs that lead to an address: 12 for IPv4, 8 for IPv6, where a number is written in one way only."""
    named = f"{hex_name(address)}{NAMES}"
    if ":" in address:
        written = (address, ipaddress.IPv6Address(address).exploded, address.upper())
        hosts = [*(f"[{each}]" for each in written), named, f"{hex_name('1.1.1.1')}.{named}"]
    else:
        parts, number = [int(part) for part in address.split(".")], int(ipaddress.IPv4Address(address))
        hosts = [
            address,
            f"{parts[0]}.{number & 0xFFFFFF}",
            str(number),
            hex(number),
            ".".join(f"0{part:o}" for part in parts),
            f"{address}.",
            "".join(chr(ord(digit) + 0xFEE0) if digit.isdigit() else digit for digit in address),
            f"[::ffff:{address}]",
            named,
        ]
    yield from (f"https://{host}:{port}/x" for host in hosts)
    plain = f"[{address}]" if ":" in address else address
    yield f"https://good.example@{plain}:{port}/x"
    yield f"https://{plain}:{port}#@good.example/x"
    yield f"https://{plain}:{port}\\@good.example/x"


def changing(bad: str, after: int, number: int) -> str:
    """A URL whose name is a public address the first few times that somebody asks."""
    return f"https://{hex_name('1.1.1.1')}.{hex_name(bad)}.after{after}.n{number}{NAMES}:8443/x"


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a URL of somebody else's in it."""

    path: str
    body: Any
    method: str = "POST"
    registers: str = ""  # the agent that is there afterwards, if it is taken: it can be called
    version: bool = False


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a URL comes in."""

    name: str
    fields: tuple[str, ...]  # the names under which it stands on the wire
    send: Callable[[str, str], Sent]  # of a URL and a fresh name
    dialled: bool = True  # the hub has a reason to connect to it; what only stands on a card it never does
    taken: bool = True  # a public URL is good there


TARGET: Final = "target"  # an agent that may be reached, and asks back
TASK: Final = "TASK"  # stands for a task of its own


def _card(make: Callable[[str, str], dict[str, Any]], **beside: Any) -> Callable[[str, str], Sent]:
    def send(url: str, name: str) -> Sent:
        body = {"agent_card": make(url, name), "id": name, **beside}
        return Sent(path="/v1/a2a/registry", body=body, registers=name)

    return send


def _platform(url: str, name: str) -> dict[str, Any]:
    skills = [{"name": "echo", "description": "d", "input_schema": {"type": "object"}}]
    return {"id": name, "name": name, "description": "d", "version": "1.0.0", "endpoint": url, "skills": skills}


def _official(url: str, name: str) -> dict[str, Any]:
    skills = [{"id": "echo", "name": "Echo", "description": "d", "tags": ["t"]}]
    card: dict[str, Any] = {"name": name, "description": "d", "version": "1.0.0", "skills": skills}
    card |= {"capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
    return card | {"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}


def _v03(url: str, name: str) -> dict[str, Any]:
    card = _official(url, name)
    del card["supportedInterfaces"]
    return card | {"url": url, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


def _vault(url: str, name: str) -> dict[str, Any]:
    card = {"schemaVersion": "1.0", "humanReadableId": f"tests/{name}", "agentVersion": "1.0.0", "name": name}
    card |= {"description": "d", "url": url, "provider": {"name": "t"}, "capabilities": {"a2aVersion": "0.2"}}
    return card | {"authSchemes": [{"scheme": "none"}], "skills": [{"id": "echo", "name": "e", "description": "d"}]}


def _beside(card: Callable[[str, str], dict[str, Any]], **more: Any) -> Callable[[str, str], dict[str, Any]]:
    """A card whose endpoint is good, with hostile URLs elsewhere; URL stands for them."""

    def make(url: str, name: str) -> dict[str, Any]:
        filled: dict[str, Any] = json.loads(json.dumps(more).replace('"URL"', json.dumps(url)))
        return {**card("GOOD", name), **filled}

    return make


def _rpc(method: str, params: Any, *, version: bool = False) -> Callable[[str, str], Sent]:
    def send(url: str, _: str) -> Sent:
        filled = json.loads(json.dumps(params).replace('"URL"', json.dumps(url)))
        return Sent(path=f"/agents/{TARGET}/", body=framed(method, filled), version=version)

    return send


def _message(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}, **more}


_TEXT: Final = {"kind": "text", "text": "x"}
_CALL: Final = {"target_agent_id": TARGET, "skill": "echo", "input": {"text": "x"}}
_SAID_10: Final = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
_PUSH_10: Final = {"taskPushNotificationConfig": {"url": "URL"}, "returnImmediately": True}
_VAULT_SEND: Final = {"message": {"role": "user", "parts": [{"type": "text", "content": "x"}]}, "webhookUrl": "URL"}
_OAUTH: Final[dict[str, Any]] = {
    "oauth2": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "URL", "scopes": {}}}}
}


def _signed(url: str, name: str) -> Sent:
    """A card with a signature whose key is said to lie at that URL."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "ES256", "kid": "k", "jku": url}).encode()).rstrip(b"=").decode()
    card = {**_official("GOOD", name), "signatures": [{"protected": head, "signature": "AAAA"}]}
    return Sent(path="/v1/a2a/registry", body={"agent_card": card, "id": name}, registers=name)


PLACES: Final = (
    Place(name="endpoint", fields=("endpoint",), send=_card(_platform)),
    Place(name="supportedInterfaces", fields=("url",), send=_card(_official)),
    Place(name="url of a 0.3 card", fields=("url",), send=_card(_v03)),
    Place(
        name="additionalInterfaces",
        dialled=False,
        fields=("url",),
        send=_card(_beside(_v03, additionalInterfaces=[{"url": "URL", "transport": "JSONRPC"}])),
    ),
    Place(name="url of an AgentVault card", fields=("url",), send=_card(_vault)),
    Place(
        name="an AgentVault registry",
        fields=("url",),
        send=lambda url, name: Sent(
            path="/api/v1/agent-cards", body={"card_data": _vault(url, name)}, registers=f"tests/{name}"
        ),
    ),
    Place(
        name="the directory",
        fields=("endpoint",),
        send=lambda url, name: Sent(
            path="/a2a/register",
            body={"agentId": name, "name": name, "capabilities": ["echo"], "endpoint": url},
            registers=name,
        ),
    ),
    Place(
        name="the envelope's card",
        fields=("endpoint",),
        send=_card(
            lambda url, name: {
                "id": name,
                "name": name,
                "version": "1.0.0",
                "supported_tasks": ["echo"],
                "endpoint": url,
            }
        ),
    ),
    Place(
        name="a dotted card",
        fields=("url",),
        send=_card(
            lambda url, name: {"name": name, "url": url, "version": "1", "skills": [{"id": "echo", "name": "echo"}]}
        ),
    ),
    Place(
        name="registry url",
        taken=False,
        fields=("url",),
        send=lambda url, name: Sent(path="/v1/a2a/registry", body={"url": url, "id": name}, registers=name),
    ),
    Place(
        name="iconUrl, documentationUrl, tokenUrl",
        dialled=False,
        fields=("iconUrl", "icon_url", "documentationUrl", "documentation_url", "tokenUrl", "token_url", "uri"),
        send=_card(
            _beside(
                _official,
                iconUrl="URL",
                documentationUrl="URL",
                provider={"organization": "o", "url": "URL"},
                securitySchemes={"one": {"oauth2SecurityScheme": _OAUTH["oauth2"]}},
            )
        ),
    ),
    Place(
        name="attestationEndpoint and the other links of an AgentVault card",
        dialled=False,
        fields=("attestationEndpoint", "iconUrl", "privacyPolicyUrl", "termsOfServiceUrl", "tokenUrl"),
        send=_card(
            _beside(
                _vault,
                iconUrl="URL",
                privacyPolicyUrl="URL",
                termsOfServiceUrl="URL",
                authSchemes=[{"scheme": "oauth2", "tokenUrl": "URL"}],
                capabilities={"a2aVersion": "0.2", "teeDetails": {"type": "t", "attestationEndpoint": "URL"}},
            )
        ),
    ),
    Place(
        name="jku of a signature",
        dialled=False,
        taken=False,
        fields=("jku",),
        send=_signed,
    ),
    Place(
        name="token_url of a credential",
        fields=("token_url",),
        send=lambda url, name: Sent(
            path="/v1/a2a/registry",
            body={
                "agent_card": _platform("GOOD", name),
                "id": name,
                "credentials": {"type": "oauth2", "client_id": "c", "client_secret": "s", "token_url": url},
            },
            registers=name,
        ),
    ),
    Place(
        name="callback_url",
        fields=("callback_url",),
        send=lambda url, _: Sent(path="/v1/a2a/call", body={**_CALL, "options": {"callback_url": url}}),
    ),
    Place(
        name="callback.url",
        fields=("url",),
        send=lambda url, _: Sent(path="/v1/a2a/call/async", body={**_CALL, "callback": {"url": url}}),
    ),
    Place(name="webhookUrl", fields=("webhookUrl", "webhook_url"), send=_rpc("tasks/send", _VAULT_SEND)),
    Place(
        name="push url, 1.0",
        fields=("url",),
        send=_rpc("CreateTaskPushNotificationConfig", {"taskId": TASK, "url": "URL"}, version=True),
    ),
    Place(
        name="push url with a message, 1.0",
        fields=("url",),
        send=_rpc("SendMessage", {"message": _SAID_10, "configuration": _PUSH_10}, version=True),
    ),
    Place(
        name="push url, 0.3",
        fields=("url",),
        send=_rpc("tasks/pushNotificationConfig/set", {"taskId": TASK, "pushNotificationConfig": {"url": "URL"}}),
    ),
    Place(
        name="push url with a message, 0.3",
        fields=("url",),
        send=_rpc("message/send", _message(_TEXT, configuration={"pushNotificationConfig": {"url": "URL"}})),
    ),
    Place(
        name="push url with a message, dotted",
        fields=("url",),
        send=_rpc("message.send", _message(_TEXT, configuration={"pushNotificationConfig": {"url": "URL"}})),
    ),
    Place(
        name="file uri",
        dialled=False,
        fields=("uri", "fileWithUri"),
        send=_rpc("message/send", _message({"kind": "file", "file": {"uri": "URL", "mimeType": "text/plain"}})),
    ),
)
