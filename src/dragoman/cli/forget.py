"""`dragoman forget`: what people and agents wrote in calls is removed; that the calls were made stays on record."""

import sys

import click

from dragoman.cli.fault import wrong_usage
from dragoman.cli.find import pages
from dragoman.cli.session import common, confirm, current_hub, current_output

AT_ONCE = 20  # calls that one request forgets, so that the bar moves
COUNTED = 10_000  # calls that are counted beforehand; more are forgotten all the same


@click.command("forget", epilog="Example: dragoman forget --context conv_1 --yes")
@click.option("--context", metavar="ID", help="The calls of this conversation.")
@click.option("--caller", metavar="ID", help="The calls that this caller made.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def command(context: str | None, caller: str | None, yes: bool) -> None:
    """Remove what was written in calls; ids, times and the audit stay."""
    output = current_output()
    if (context is None) == (caller is None):
        raise wrong_usage("say whose: --context or --caller", next="dragoman forget --context ID")
    hub = current_hub(output)
    asked = {"context": context} if context is not None else {"caller": caller or ""}
    listed = {"conversation": context} if context is not None else asked
    found, more = pages(hub, "/v1/calls", listed, limit=COUNTED)
    count = f"{'more than ' if more else ''}{len(found)} {'call' if len(found) == 1 else 'calls'}"
    if found:
        confirm(f"Remove for ever what was written in {count}?", yes=yes)
    forgotten = cancelled = 0
    note = ""
    shown = sys.stderr.isatty() and not output.quiet and not output.json
    with click.progressbar(length=max(len(found), 1), label="forgetting", file=sys.stderr, hidden=not shown) as bar:
        cursor: dict[str, str] = {}
        while found:
            done = hub.ask("DELETE", "/v1/calls", query={**asked, "limit": str(AT_ONCE), **cursor}) or {}
            forgotten, cancelled = forgotten + int(done["forgotten"]), cancelled + int(done["cancelled"])
            note = str(done["note"])
            bar.update(AT_ONCE)
            if not isinstance(done.get("next_cursor"), str):
                break
            cursor = {"cursor": str(done["next_cursor"])}
    if output.json:
        output.document({"forgotten": forgotten, "cancelled": cancelled, "note": note, "next_cursor": None})
        return
    output.answer(str(forgotten))
    if not found:
        output.note("no call matches\nnext: dragoman tasks ls")
        return
    if cancelled:
        output.note(f"{cancelled} of them were open and were cancelled first")
    output.note(note)
