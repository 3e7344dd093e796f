"""`dragoman migrate`: the schema of a stopped hub's data; `serve` does the same when it starts."""

from pathlib import Path

import click

from dragoman.cli.fault import Exit
from dragoman.cli.session import current_output, showing
from dragoman.cli.upkeep.upkeep import bar, data_settings, told


@click.command("migrate", epilog="Example: dragoman migrate --check")
@click.option("--check", is_flag=True, help="Only say what is pending; exit 1 where something is.")
@click.option("--pre", "kind", flag_value="pre", help="Only what older versions can still run on.")
@click.option("--post", "kind", flag_value="post", help="Everything, once no older version runs.")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The data directory. [$DRAGOMAN_DATA]")
@showing
def command(check: bool, kind: str | None, data: Path | None) -> int:
    """Bring the schema of a hub's data up to date."""
    output = current_output()
    settings = data_settings("migrate", data)
    from dragoman.ports.clock import SystemClock
    from dragoman.server.upkeep import PRE, bring_up, pending

    with told():
        steps = pending(settings)
        new = not (settings.data / "hub.db").exists()
    if kind == "pre":
        # In order: what comes after the first that older versions cannot run on waits for it.
        last = next((number for number, step in enumerate(steps) if PRE not in step.name), len(steps))
        steps = steps[:last]
    if not check:
        with told(), bar(output, "migrating") as progress:
            for done, step in enumerate(steps, 1):
                bring_up(settings, SystemClock(), step)
                progress(done, len(steps))
    if output.json:
        output.document({"items": [{"version": step.version, "name": step.name} for step in steps]})
    else:
        for step in steps:
            output.answer(step.name)
        state = "pending" if check else "applied"
        output.note("nothing to do" if not steps else f"{len(steps)} {state}")
        if check and new and steps:
            output.note(f"there is no data in {settings.data} yet: dragoman serve makes it")
    return Exit.FAILED if check and steps and not new else Exit.DONE
