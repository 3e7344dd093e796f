"""`dragoman audit verify`: whether anybody changed what was done and written, afterwards.

Asks a hub, or with --data looks into its file, whether it runs or not.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from dragoman.cli.fault import Exit, wrong_usage
from dragoman.cli.output import Output
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.times import since_time
from dragoman.cli.upkeep.upkeep import bar, data_settings, told
from dragoman.model.json import JsonObject, is_object

COUNTED = ("acts", "calls", "unvouched")


@click.group("audit", epilog="Example: dragoman audit verify --from 7d")
def command() -> None:
    """Check that nobody changed what was done and written."""


@command.command("verify", epilog="Example: dragoman audit verify --export audit.jsonl")
@click.option("--from", "since", metavar="7d|TIME", help="Only rows since then, and the calls that they cover.")
@click.option("--to", "until", metavar="1h|TIME", help="Only rows up to then.")
@click.option("--export", type=click.Path(path_type=Path), metavar="FILE", help="Write the rows there, as JSON lines.")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="Check the file in this data directory.")
@common
def verify(since: str | None, until: str | None, export: Path | None, data: Path | None) -> int:
    """Walk the chain of the audit and the calls that it covers; exit 1 where something was changed."""
    output = current_output()
    window = {"from": since_time(since), "to": since_time(until), "rows": "1" if export else None}
    asked = {name: value for name, value in window.items() if value is not None}
    pieces = _from_hub(output, asked) if data is None else _from_file(data, asked)
    found: JsonObject = dict.fromkeys(COUNTED, 0)
    try:
        kept = None if export is None else export.open("x", encoding="utf-8")
    except OSError as error:
        raise wrong_usage(f"{export} cannot be written: {error.strerror}", next="--export FILE") from error
    try:
        with bar(output, "checking") as progress:
            for piece in pieces:
                _add(found, piece, kept)
                progress(int(piece["done"]), int(piece["total"]))
    finally:
        if kept is not None:
            kept.close()
    _show(output, found)
    return Exit.DONE if found["ok"] else Exit.FAILED


def _from_hub(output: Output, asked: dict[str, str]) -> Iterator[JsonObject]:
    hub = current_hub(output)
    cursor: dict[str, str] = {}
    while True:
        piece = hub.get("/v1/audit/verify", {**asked, "part": "1", **cursor})
        yield piece
        following = piece.get("next_cursor")
        if not piece.get("ok") or not isinstance(following, str):
            return
        cursor = {"cursor": following}


def _from_file(data: Path, asked: dict[str, str]) -> Iterator[JsonObject]:
    settings = data_settings("audit verify --data", data)
    # The hub's own parts: not for who asks a hub.
    from dragoman.server.audit_file import check_file

    with told():
        yield from check_file(settings, since=asked.get("from"), until=asked.get("to"), rows="rows" in asked)


def _add(found: JsonObject, piece: JsonObject, kept: IO[str] | None) -> None:
    for name in COUNTED:
        found[name] += piece[name]
    found |= {"ok": piece["ok"], "broken": piece["broken"], "vouches_since": piece["vouches_since"]}
    if piece["signed_row"] is not None:
        found["signed_row"] = piece["signed_row"]
    if kept is not None:
        for row in piece["rows"]:
            kept.write(json.dumps(row, ensure_ascii=False) + "\n")


def _show(output: Output, found: JsonObject) -> None:
    found.setdefault("signed_row", None)
    if output.json:
        output.document(found)
        return
    broken = found["broken"]
    if is_object(broken):
        row, call = broken["row"], broken["call_id"]
        where = " ".join(f"{what} {which}" for what, which in (("row", row), ("call", call)) if which is not None)
        output.answer(f"broken at {where or 'its beginning'}: {broken['reason']}")
        output.note("next: compare with the heads in the hub's log, and with a backup")
        return
    output.answer(f"whole: {found['acts']} acts, {found['calls']} records of calls")
    if found["unvouched"]:
        output.note(f"{found['unvouched']} calls are from before {found['vouches_since']}: it cannot vouch for them")
    if found["signed_row"] is not None:
        output.note(f"signed by the hub up to row {found['signed_row']}")
    else:
        output.note("no head with a signature of this hub's keys: that its end was not cut off is not proved")
