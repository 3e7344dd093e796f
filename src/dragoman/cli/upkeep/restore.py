"""`dragoman restore FILE`: a backup in the place of a stopped hub's database."""

from pathlib import Path

import click

from dragoman.cli.session import confirm, current_output, showing
from dragoman.cli.upkeep.upkeep import bar, data_settings, told


@click.command("restore", epilog="Example: dragoman restore hub-backup.db --yes")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The data directory. [$DRAGOMAN_DATA]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@showing
def command(file: Path, data: Path | None, yes: bool) -> None:
    """Put a backup in the place of a stopped hub's database.

    Needs the root key that the file was made with in the data directory.
    """
    output = current_output()
    settings = data_settings("restore", data)
    from dragoman.server.upkeep import may_restore, restore

    with told():
        may_restore(settings, file)
    confirm(f"Replace the database in {settings.data} by {file}?", yes=yes)
    with told(), bar(output, "restoring") as progress:
        kept = restore(settings, file, progress)
    if output.json:
        output.document({"data": str(settings.data), "kept": None if kept is None else str(kept)})
        return
    output.answer(str(settings.data))
    output.note("restored" if kept is None else f"restored; what was there is kept as {kept}")
