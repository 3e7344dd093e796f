"""`dragoman backup FILE`: a checked copy of the database, beside a running hub."""

from pathlib import Path

import click

from dragoman.cli.session import current_output, showing
from dragoman.cli.upkeep.upkeep import bar, data_settings, told


@click.command("backup", epilog="Example: dragoman backup hub-backup.db")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The data directory. [$DRAGOMAN_DATA]")
@showing
def command(file: Path, data: Path | None) -> None:
    """Copy a hub's database, running or not, into a file."""
    output = current_output()
    settings = data_settings("backup", data)
    from dragoman.server.upkeep import backup

    with told(), bar(output, "copying") as progress:
        root_key = backup(settings, file, progress)
    size = file.stat().st_size
    if output.json:
        output.document({"file": str(file), "bytes": size, "root_key": str(root_key)})
        return
    output.answer(str(file))
    output.note(f"{size / 1e6:.1f} MB, checked; it is of use only with {root_key}, which it does not hold")
