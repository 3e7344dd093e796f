"""What the pages show is what the tests run: a page's Python is a file of `examples/`, its commands exist."""

import shlex

import click
import pytest

from dragoman.cli.entry import dragoman
from tests.docs.blocks import ROOT, Block, blocks, command_lines

PYTHON = [block for block in blocks() if block.language == "python"]
COMMANDS = [(block, line) for block in blocks() for line in command_lines(block)]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"{block.page}:{block.line}")
def test_python_on_a_page_is_an_example_word_for_word(block: Block) -> None:
    assert block.file is not None, "name the file above the block: <!-- examples/hello.py -->"
    assert block.text.strip() in (ROOT / block.file).read_text()


@pytest.mark.parametrize(("block", "line"), COMMANDS, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_a_command_on_a_page_exists_with_its_flags(block: Block, line: str) -> None:
    words = _until_the_shell_takes_over(shlex.split(line, comments=True))
    group: click.Command = dragoman
    context = click.Context(dragoman, info_name="dragoman", resilient_parsing=True)
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        command = group.get_command(context, words[0])
        assert command is not None, f"{block.page}:{block.line}: dragoman has no {words[0]}"
        group, words = command, words[1:]
        context = click.Context(group, parent=context, info_name=group.name)
    if words not in (["--help"], ["--version"]):
        group.make_parser(context).parse_args(list(words))


def _until_the_shell_takes_over(words: list[str]) -> list[str]:
    ends = [place for place, word in enumerate(words) if word in ("|", ">", "&&", "&", ";", "2>")]
    return words[: ends[0]] if ends else words
