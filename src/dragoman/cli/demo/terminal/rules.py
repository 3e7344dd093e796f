"""Which question means which script: the first rule whose words are all in the question."""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.cli.demo.terminal import files, machine
from dragoman.cli.demo.terminal.scripts import Script


class Rule(msgspec.Struct, frozen=True):
    """One kind of question: what it is called, an example, the words it is known by, and what answers it."""

    about: str
    example: str
    words: tuple[str, ...]  # regular expressions; every one has to be found
    make: Callable[[str], Script]

    def fits(self, question: str) -> bool:
        """Whether a question, in small letters, is of this kind."""
        return all(re.search(pattern, question) for pattern in self.words)


# From the special to the general: of two rules that fit, the first is meant.
RULES: Final = (
    Rule(
        "equal files",
        "Find duplicate files in ~/photos",
        (r"duplicat|identical|same content", r"file"),
        files.duplicates,
    ),
    Rule("replacing text", "Replace 'colour' with 'color' in all .md files", (r"\breplac|substitut",), files.replaced),
    Rule(
        "old logs",
        "Compress log files older than 7 days",
        (r"\blogs?\b", r"compress|rotate|gzip"),
        machine.rotated_logs,
    ),
    Rule(
        "old files",
        "Delete files older than 30 days in /tmp",
        (r"files?", r"older than|\bold files?\b|not (?:been )?(?:modified|changed|accessed)"),
        files.old_files,
    ),
    Rule(
        "busy addresses",
        "Show the top 10 IP addresses in access.log",
        (r"\bips?\b|addresses|visitors", r"log|request|access"),
        machine.log_addresses,
    ),
    Rule(
        "following a log",
        "Follow app.log and show errors as they come",
        (r"\blogs?\b", r"follow|\btail\b|live|real.?time|as they (?:come|happen)"),
        machine.followed_log,
    ),
    Rule(
        "errors in logs",
        "Count the errors in /var/log/syslog",
        (r"\blogs?\b|syslog", r"error|fail|critical|pars|analy[sz]|common|frequent"),
        machine.log_errors,
    ),
    Rule(
        "open permissions",
        "Find world-writable files",
        (r"world.writable|writable by (?:everyone|anybody|everybody|others)",),
        files.writable,
    ),
    Rule(
        "backups",
        "Back up /etc every night and keep the last 14",
        (r"\bback.?up|\barchive (?:of )?(?:the )?(?:folder|directory|~|/)",),
        files.backup,
    ),
    Rule(
        "line counts",
        "Count the lines of all Python files",
        (r"\bcount|how many|number of", r"\blines\b|\bloc\b"),
        files.line_count,
    ),
    Rule(
        "text in files",
        "Find all files that contain 'TODO'",
        (r"contain|search for|grep|look for|occurrence|mention", r"files?|text|string|code|\bfolder|director"),
        files.containing,
    ),
    Rule(
        "folder sizes",
        "Which folders in /var take the most space?",
        (r"folder|director", r"size|space|usage|large|big"),
        files.folder_sizes,
    ),
    Rule(
        "large files",
        "Write a bash script to find all files larger than 100MB",
        (r"files?\b", r"larg|\bbig|huge|heaviest|size|space|over \d|above \d|more than \d"),
        files.large_files,
    ),
    Rule(
        "disk usage",
        "Write a bash script to monitor disk usage",
        (r"\bdisks?\b|file ?systems?|storage|partition", r"usage|space|full|monitor|check|watch|free"),
        machine.disk_usage,
    ),
    Rule("ports", "Which process listens on port 8080?", (r"\bports?\b|listening",), machine.on_port),
    Rule(
        "ending a process",
        "Kill the process called 'runaway'",
        (r"\bkill|\bstop|terminat|\bend\b", r"process|program|\bpids?\b"),
        machine.ended,
    ),
    Rule(
        "keeping a service running",
        "Restart 'nginx' when it is down",
        (r"restart|keep .*running|is (?:it )?down|goes down|crash", r"service|server|daemon|nginx|process|['\"`]"),
        machine.kept_running,
    ),
    Rule(
        "a URL's health",
        "Check that https://example.org answers",
        (r"https?://|\burl\b|\bwebsite|\bweb ?site|\bendpoint", r"check|up\b|down|monitor|answer|respon|health|reach"),
        machine.url_check,
    ),
    Rule(
        "memory",
        "Monitor memory usage and warn above 90%",
        (r"\bmemory\b|\bram\b", r"monitor|warn|alert|threshold|above|%|percent|usage|free|available"),
        machine.memory,
    ),
    Rule(
        "busy processes",
        "Show the 5 processes that use the most memory",
        (r"process|\bcpu\b|\bmemory\b|\bram\b|running",),
        machine.busiest,
    ),
    Rule("load", "Is the load of this machine too high?", (r"\bload\b",), machine.load),
    Rule(
        "sums of columns", "Sum the third column of sales.csv", (r"\bsum|add up|total", r"column|csv"), files.column_sum
    ),
)


def rule_for(question: str) -> Rule | None:
    """The rule that fits, if one does."""
    lower = question.lower()
    return next((rule for rule in RULES if rule.fits(lower)), None)
