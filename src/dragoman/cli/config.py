"""`dragoman config show`: every setting, its value, and where that came from.

Without --hub these are the settings that `serve` would use here; with it, those of a running hub.
"""

import os
from pathlib import Path
from typing import Final

import click

from dragoman.cli.fault import Exit, Fault
from dragoman.cli.find import items_of
from dragoman.cli.session import asked_hub, common, current_hub, current_output
from dragoman.cli.table import Column, Kind, show_rows
from dragoman.model.json import JsonObject, is_object

COLUMNS: Final = (Column("setting", "setting", Kind.STATE), Column("value", "value"), Column("source", "source"))


@click.group("config", epilog="Example: dragoman config show --changed")
def command() -> None:
    """Show settings and where each comes from."""


@command.command("show", epilog="Example: dragoman config show --changed")
@click.option("--all", "everything", is_flag=True, help="Also what hardly anybody changes.")
@click.option("--changed", is_flag=True, help="Only what differs from the defaults.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), metavar="FILE", help="A settings file.")
@common
def show(everything: bool, changed: bool, config_file: Path | None) -> None:
    """Show settings; secrets are masked."""
    output = current_output()
    if asked_hub() is not None:
        items = [item for item in items_of(current_hub(output).get("/v1/settings")) if is_object(item)]
    else:
        items, warnings = _local(config_file)
        for warning in warnings:
            output.warning(warning)
    shown = [item for item in items if _wanted(item, everything=everything, changed=changed)]
    if output.json:
        output.document({"items": shown, "next_cursor": None})
        return
    show_rows(output, shown, COLUMNS)
    if not shown:
        output.note("nothing differs from the defaults")


def _wanted(item: JsonObject, *, everything: bool, changed: bool) -> bool:
    differs = item.get("source") != "default"
    if changed:
        return differs
    # The settings without a section are those that people ask about.
    return everything or differs or "." not in str(item.get("setting"))


def _local(config_file: Path | None) -> tuple[list[JsonObject], tuple[str, ...]]:
    # Brings msgspec and the settings' types: not for --help.
    from dragoman.config import SettingError, load

    try:
        settings = load({}, os.environ, config_file)
    except SettingError as error:
        raise wrong_setting(error.message, error.next) from error
    items = [{"setting": name, "value": one.value, "source": one.source} for name, one in settings.sources.items()]
    return items, settings.warnings


def wrong_setting(message: str, next_step: str) -> Fault:
    """A setting that is unknown or wrong; its message says so itself."""
    return Fault(message, next=next_step, exit_code=Exit.USAGE, code="WRONG_SETTING", label="")
