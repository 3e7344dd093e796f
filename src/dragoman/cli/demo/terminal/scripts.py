"""A shell script as parts, so that a later question can add to it: alerts by mail, a log, a schedule.

Whatever a script does, it does in a function `report` that prints what it found or did. What is done with that is
the rest, and the same for all scripts:

    report ─▶ findings ─▶ shown, mailed, posted, logged; once, or again and again
"""

from typing import Final

import msgspec

INDENT: Final = "  "
MISSING: Final = 'command -v "$needed" > /dev/null || { echo "$needed is not installed" >&2; exit 1; }'


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One script: what it is for, its settings, the lines of `report`, and what was asked for besides."""

    name: str
    purpose: str
    report: tuple[str, ...] = ()
    given: str = ""  # a script of somebody else, in place of `report`
    usage: str = ""  # of its arguments
    settings: tuple[str, ...] = ()
    nothing: str | None = None  # said when there is nothing to report; None: silence is fine
    keeps_going: bool = False  # one unreadable folder or vanished process is no reason to stop
    mail_to: str | None = None
    webhook: bool = False
    log: bool = False
    every_s: int | None = None  # again and again, in one process
    cron: str | None = None  # again and again, started anew


def written(script: Script) -> str:
    """The script as text."""
    usage = f"{script.name}.sh {script.usage}".rstrip()
    head = ["#!/usr/bin/env bash", f"# {script.purpose}", f"# Usage: {usage}"]
    if script.cron is not None:
        head.append(f"# By cron (crontab -e): {script.cron} /path/to/{script.name}.sh")
    head.append("set -uo pipefail" if script.keeps_going else "set -euo pipefail")
    body = ["report() {", *(_given(script.given) if script.given else indented(script.report)), "}"]
    return "\n\n".join("\n".join(block) for block in (head, _settings(script), body, _rest(script)) if block) + "\n"


def indented(lines: tuple[str, ...] | list[str]) -> list[str]:
    """The lines, one step to the right."""
    return [INDENT + line if line else line for line in lines]


def _given(text: str) -> list[str]:
    """Lines that run a script as it is, whatever stands in it."""
    mark = "THE_SCRIPT"
    while mark in text:
        mark += "_"
    return [f"{INDENT}bash -s <<'{mark}'", *text.replace("\0", "").splitlines(), mark]


def _settings(script: Script) -> list[str]:
    settings = list(script.settings)
    if script.mail_to is not None:
        settings.append(f'recipient="${{ALERT_TO:-{script.mail_to}}}"')
    if script.webhook:
        settings.append('webhook_url="${WEBHOOK_URL:?set WEBHOOK_URL to where alerts are posted}"')
    if script.log:
        settings.append(f'log_file="${{LOG_FILE:-$HOME/{script.name}.log}}"')
    needed = ["mail"] if script.mail_to is not None else []
    needed += ["jq", "curl"] if script.webhook else []
    if needed:
        settings += [f"for needed in {' '.join(needed)}; do", *indented((MISSING,)), "done"]
    return settings


def _rest(script: Script) -> list[str]:
    told = script.mail_to is not None or script.webhook or script.log
    if not told and script.nothing is None:
        once = ["report"]
    else:
        once = ['findings="$(report)"', 'if [[ -n "$findings" ]]; then', *indented(_telling(script))]
        if script.nothing is not None:
            once += ["else", f"{INDENT}echo {script.nothing}"]
        once.append("fi")
    if script.every_s is None:
        return once
    return ["while true; do", *indented(once), f"{INDENT}sleep {script.every_s}", "done"]


def _telling(script: Script) -> list[str]:
    lines = ["printf '%s\\n' \"$findings\""]
    if script.mail_to is not None:
        lines.append(f'printf \'%s\\n\' "$findings" | mail -s "{script.name} on $(hostname)" "$recipient"')
    if script.webhook:
        lines.append(
            "printf '%s' \"$findings\" | jq -Rs '{text: .}'"
            ' | curl -fsS -H "Content-Type: application/json" -d @- "$webhook_url" > /dev/null'
        )
    if script.log:
        lines.append('printf \'%s\\n\' "$findings" | sed "s/^/$(date -Is) /" >> "$log_file"')
    return lines
