"""`dragoman new NAME`: a folder with an agent, its test and a README. Never overwrites anything."""

import re
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

import click

from dragoman.cli.fault import Fault, wrong_usage
from dragoman.cli.session import current_output, showing

TEMPLATES: Final = ("plain",)
FILES: Final = ("agent.py", "test_agent.py", "README.md")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")


@click.command("new", epilog="Example: dragoman new my-agent")
@click.argument("name", metavar="NAME")
@click.option("--from", "template", default="plain", show_default=True, help="What to begin with.")
@showing
def command(name: str, template: str) -> None:
    """Make a folder with an agent, a test and a README."""
    if template not in TEMPLATES:
        raise wrong_usage(
            f'there is no template "{template}"; there is: {", ".join(TEMPLATES)}', next="leave out --from"
        )
    folder = Path(name)
    if _NAME.fullmatch(folder.name) is None:
        raise wrong_usage(
            f'"{folder.name}" cannot name an agent: use letters, digits, and . _ - between them',
            next="dragoman new my-agent",
        )
    written = make(folder, template)
    output = current_output()
    if output.json:
        output.document({"folder": str(folder), "files": [str(path) for path in written]})
        return
    for path in written:
        output.answer(str(path))
    agent, quoted = shlex.quote(str(folder / "agent.py")), shlex.quote(str(folder))
    output.note(f"next: dragoman run {agent}")
    output.note("then: dragoman call greet --input name=Ada")
    output.note(f"test: python -m pytest {quoted}")


def make(folder: Path, template: str) -> list[Path]:
    """Write the files of a template; the folder's name is the agent's. Raises Fault where something is there."""
    taken = [folder / name for name in FILES if (folder / name).exists()]
    if taken or (folder.exists() and not folder.is_dir()):
        raise wrong_usage(f"{(taken or [folder])[0]} is there already", next="take another name; nothing was written")
    source = files("dragoman.cli") / "templates" / template
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            text = Template((source / f"{name}.txt").read_text(encoding="utf-8")).substitute(name=folder.name)
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise Fault(
            f"{error.filename or folder} cannot be written: {error.strerror}", next="take another folder"
        ) from error
    return [folder / name for name in FILES]
