"""Completion: names of agents and skills from the hub, and the scripts that shells need for it.

A key press waits 300 ms at most and fails in silence; answers are kept for 5 s, because people press it repeatedly.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from dragoman.cli.fault import Fault, wrong_usage
from dragoman.cli.find import items_of, skills_of
from dragoman.cli.output import Output, say
from dragoman.cli.session import current_hub, named_hub
from dragoman.model.json import JsonObject, is_array, is_object
from dragoman.sdk.client.settings import DEFAULT_HUB

WAIT_S: Final = 0.3
KEPT_S: Final = 5.0
NAMES: Final = 100
VARIABLE: Final = "_DRAGOMAN_COMPLETE"


def agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of agents that begin so."""
    return [text for text in _ids(_known(ctx)) if text.startswith(incomplete)]


def skills(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of skills that begin so."""
    return [text for text in skills_of(_known(ctx)) if text.startswith(incomplete)]


def agents_and_skills(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What the first word of `call` may be; after an agent, its skills."""
    before = ctx.params.get("names") or ()
    found = _known(ctx)
    if before:
        mine = [item for item in found if item.get("id") == before[0]]
        return [text for text in skills_of(mine) if text.startswith(incomplete)]
    return [text for text in [*skills_of(found), *_ids(found)] if text.startswith(incomplete)]


def install(shell: str) -> None:
    """Write the completion script where the shell looks for it. Raises Fault for a shell that is not known."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    places = {
        "bash": _home("XDG_DATA_HOME", ".local/share") / "bash-completion" / "completions" / "dragoman",
        "zsh": _home("XDG_DATA_HOME", ".local/share") / "zsh" / "site-functions" / "_dragoman",
        "fish": _home("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "dragoman.fish",
    }
    made = get_completion_class(name) if name in places else None
    if made is None:
        raise wrong_usage(
            f'completion is not known for the shell "{name}"', next="--install-completion bash, or zsh, or fish"
        )
    place = places[name]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(made(click.Command("dragoman"), {}, "dragoman", VARIABLE).source_template % _words())
    except OSError as error:
        raise Fault(f"{place} cannot be written: {error.strerror}", next="check the folder's owner") from error
    print(place)
    if name == "zsh":
        say(f"next: put this line into ~/.zshrc, before compinit: fpath+=({place.parent})")
    else:
        say("next: start a new shell")


def _words() -> dict[str, str]:
    return {"complete_func": "_dragoman_completion", "complete_var": VARIABLE, "prog_name": "dragoman"}


def _known(ctx: click.Context) -> list[JsonObject]:
    """What the hub knows of agents, or nothing."""
    with ctx.scope(cleanup=False):
        url = named_hub() or DEFAULT_HUB
        try:
            kept = _kept(url)
            if kept is not None:
                return kept
            answer = current_hub(Output(quiet=True)).get("/v1/a2a/discover", {"limit": str(NAMES)}, timeout_s=WAIT_S)
            found = [item for item in items_of(answer, "agents") if is_object(item)]
            _keep(url, found)
        except (Fault, OSError):
            return []
        return found


def _ids(items: list[JsonObject]) -> list[str]:
    return [str(item["id"]) for item in items if item.get("id")]


def _kept(url: str) -> list[JsonObject] | None:
    # Only where the hub is asked at all.
    from dragoman.ports.clock import SystemClock

    path = _cache(url)
    try:
        if SystemClock().now().timestamp() - path.stat().st_mtime > KEPT_S:
            return None
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return [item for item in value if is_object(item)] if is_array(value) else None


def _keep(url: str, found: list[JsonObject]) -> None:
    path = _cache(url)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps([{"id": item.get("id"), "skills": item.get("skills")} for item in found]))


def _cache(url: str) -> Path:
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    return _home("XDG_CACHE_HOME", ".cache") / "dragoman" / f"names-{name}.json"


def _home(variable: str, usual: str) -> Path:
    given = os.environ.get(variable, "")
    return Path(given) if given.startswith("/") else Path.home() / usual
