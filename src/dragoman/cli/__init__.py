"""The command `dragoman`.

    entry.py                    the group; each command's module is imported when that command is called
    serve dev register discover agents call doctor translate keys config version    one file each, named as the command
    session.py hub.py exchange.py    who am I; the hub's HTTP API; one request, with a spinner
    fault.py refusals.py        what goes wrong: message, next step, exit code
    output.py table.py times.py inputs.py fitting.py find.py    showing and reading values
    examine.py findings.py checkup.py checklist.py    doctor: the look, what it found, the hub, lines with marks
    banner.py listening.py demo/     what a starting hub tells; ports; the demo agent
    completion.py               names from the hub, scripts for shells

stdout is the answer; stderr is everything else.
"""

from dragoman.cli.entry import main

__all__ = ["main"]
