"""`dragoman register URL|FILE`: make an agent known to the hub.

The hub fetches the card and probes what the agent speaks; here is only the question and the answer.
"""

import json
import sys
from pathlib import Path

import click

from dragoman.cli.credential_file import key_file, read_credential_file
from dragoman.cli.discover import DIALECTS
from dragoman.cli.fault import Exit, Fault, wrong_usage
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.table import show_facts
from dragoman.model.json import JsonObject, is_object

FACTS = ("id", "uuid", "name", "version", "dialect", "status", "endpoint", "base_url", "token", "signing_secret")
PROBE_S = 60.0
MCP = "mcp"  # whose servers are called, and call nobody: no agent is looked for in it, nor any call made


@click.command("register", epilog="Example: dragoman register http://127.0.0.1:9753")
@click.argument("place", metavar="URL|FILE")
@click.option("--as", "dialect", type=click.Choice((*DIALECTS, MCP)), help="What it speaks; found out, save mcp.")
@click.option("--id", "agent_id", metavar="ID", help="The id it gets; else the card's own.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to find it by.")
@click.option("--open", "open_", is_flag=True, help="Anybody may find and call it, also without a key.")
@click.option("--private", is_flag=True, help="Only its owner and administrators may find it.")
@key_file
@common
def command(
    place: str,
    dialect: str | None,
    agent_id: str | None,
    tags: tuple[str, ...],
    open_: bool,
    private: bool,
    key_file: str | None,
) -> None:
    """Register an agent: by its URL, or by a card file.

    A card of any dialect will do; - reads it from stdin. With --as mcp the URL is that of an MCP server, whose tools
    become the agent's skills.
    """
    output = current_output()
    body: JsonObject = {"url": place} if "://" in place else {"agent_card": _card(place)}
    more = {"dialect": dialect, "id": agent_id, "tags": list(tags) or None, "open": open_ or None}
    more["private"] = private or None
    body.update({name: value for name, value in more.items() if value is not None})
    if key_file is not None:
        body["credentials"] = read_credential_file(key_file)
    try:
        answer = current_hub(output).ask(
            "POST",
            "/v1/a2a/registry",
            body=body,
            timeout_s=PROBE_S,
            waiting=f"looking at {place}",
            invalid=Exit.FAILED,
        )
    except Fault as fault:
        if fault.exit_code is Exit.FAILED and "url" in body:
            fault.next = f"dragoman doctor {place}"
        raise
    found = answer or {}
    if output.json:
        output.document(found)
        return
    show_facts(output, {name: found.get(name) for name in FACTS})
    if found.get("token"):
        output.note("token and signing_secret are the agent's own and shown this once")


def _card(name: str) -> JsonObject:
    """The card in a file. Raises Fault."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        card = json.loads(text)
    except OSError as error:
        advice = "dragoman register http://HOST:PORT, or the name of a card file"
        raise wrong_usage(f'"{name}" is neither a URL nor a file: {error.strerror}', next=advice) from error
    except ValueError as error:
        raise wrong_usage(f"{name} is not JSON: {error}", next="check the card") from error
    if not is_object(card):
        raise wrong_usage(f"{name} holds no card: a card is a JSON object", next="check the card")
    return card
