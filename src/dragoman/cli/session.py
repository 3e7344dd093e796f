"""Who am I: the common options of client commands, the hub they mean and the token they show.

Hub: --hub, DRAGOMAN_URL, http://127.0.0.1:8700. Token: --token-file, DRAGOMAN_TOKEN, and for a hub on this machine the
admin token in the data directory. There is no --token: it would show in `ps` and in the shell's history.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from dragoman.cli.fault import Fault, wrong_usage
from dragoman.cli.hub import Hub
from dragoman.cli.output import Output
from dragoman.sdk.client.settings import DEFAULT_HUB, is_hub_url, tokens_for

Decorated = TypeVar("Decorated", bound=Callable[..., object])


def common(function: Decorated) -> Decorated:
    """The options that every client command has."""
    options = (
        click.option("--hub", metavar="URL", expose_value=False, callback=_keep, help="The hub. [$DRAGOMAN_URL]"),
        click.option(
            "--token-file", type=click.Path(path_type=Path), expose_value=False, callback=_keep, metavar="FILE",
            help="A file that holds the token. [else $DRAGOMAN_TOKEN]",
        ),
    )  # fmt: skip
    return _with(showing(function), options)


def showing(function: Decorated) -> Decorated:
    """The options about output, for commands that ask no hub."""
    options = (
        click.option("--json", is_flag=True, expose_value=False, callback=_keep, help="One JSON document."),
        click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_keep, help="No notes."),
        click.option(
            "-v", "--verbose", count=True, expose_value=False, callback=_keep, help="Show the wire; -vv more."
        ),
        click.option("--no-color", is_flag=True, expose_value=False, callback=_keep, help="No colour."),
    )
    return _with(function, options)


def current_output() -> Output:
    """How the running command shows things."""
    meta = click.get_current_context().meta
    output = Output(
        json=bool(meta.get(_key("json"))),
        quiet=bool(meta.get(_key("quiet"))),
        verbose=int(meta.get(_key("verbose")) or 0),
        color=not meta.get(_key("no_color")),
    )
    if output.verbose > 1:
        # Only here: nobody else needs it, and it takes a while to import.
        import logging

        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    return output


def current_hub(output: Output) -> Hub:
    """The hub that the running command talks to. Raises Fault for a wrong URL or an unreadable token."""
    url = named_hub() or DEFAULT_HUB
    token_file = click.get_current_context().meta.get(_key("token_file"))
    tokens = _tokens(token_file if isinstance(token_file, Path) else None, os.environ, url, output)
    return Hub(_checked(url), tokens, output)


def named_hub() -> str | None:
    """The hub's URL where one was given, by --hub or DRAGOMAN_URL."""
    given = click.get_current_context().meta.get(_key("hub"))
    return str(given) if given else os.environ.get("DRAGOMAN_URL") or None


def asked_hub() -> str | None:
    """The hub's URL where --hub was given."""
    given = click.get_current_context().meta.get(_key("hub"))
    return str(given) if given else None


def confirm(question: str, *, yes: bool) -> None:
    """Return when the user agrees. Raises Fault where nobody can be asked, or the answer is no."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise wrong_usage(f"nobody can be asked here: {question}", next="--yes, if it is meant")
    if not click.confirm(question, err=True):
        raise Fault("nothing was changed", next="--yes answers the question beforehand", code="DECLINED")


def _tokens(file: Path | None, environ: Mapping[str, str], url: str, output: Output) -> list[str]:
    if file is not None:
        try:
            text = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise wrong_usage(f"{file} cannot be read: {error}", next="--token-file FILE") from error
        if not text:
            raise wrong_usage(f"{file} is empty", next="--token-file FILE")
        return [text]
    tokens = tokens_for(url, environ)
    for problem in tokens.refused:
        output.warning(f"{problem}; it is not used")
    return tokens.usable


def _checked(url: str) -> str:
    if not is_hub_url(url):
        source = "--hub" if asked_hub() else "DRAGOMAN_URL"
        raise wrong_usage(f'"{url}" is no URL of a hub ({source})', next=f"{source} {DEFAULT_HUB}")
    return url.rstrip("/")


def _with(function: Decorated, options: tuple[Callable[[Decorated], Decorated], ...]) -> Decorated:
    for option in reversed(options):
        function = option(function)
    return function


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    ctx.meta[_key(param.name)] = value


def _key(name: str) -> str:
    return f"dragoman.cli.{name}"
