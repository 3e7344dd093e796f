"""An answer to a question about shell work: a script by rule, or an earlier one with something added to it.

A conversation is the fold of its questions: each either begins a new script or changes the last one, so that the
answer depends on what was asked and on nothing else.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from dragoman.cli.demo.terminal import reading
from dragoman.cli.demo.terminal.rules import RULES, rule_for
from dragoman.cli.demo.terminal.scripts import Script, written

Change = Callable[[Script, str], Script]

MOST_WORDS: Final = 4000  # characters of a question that are looked at; code in it is not counted
FENCED: Final = re.compile(r"```[\w+-]*\n(.*?)```", re.DOTALL)
_GOES_ON: Final = re.compile(
    r"^\W*(?:please\s+|can you\s+|could you\s+|and\s+|now\s+|also\s+)*"
    r"(?:add|make|let|have|extend|change|include|also|use|set|schedule|send|log|run)\b"
    r"|\b(?:that|this|the) (?:script|one|program|command)\b|\bit\b"
)
_NIGHTLY: Final = "0 3 * * *"
_CRON_TIMES: Final = (("hour", "0 * * * *"), ("week", "0 3 * * 0"), ("month", "0 3 1 * *"))
_MINUTES: Final = re.compile(r"every (\d{1,2}) minutes?")
_SETTING: Final = re.compile(r'^(threshold|size)="\$\{(\d):-[^}]*\}"$')


def solve(questions: Sequence[str], earlier: str | None = None) -> str | None:
    """The script that answers the last question, given those before it; None where no rule fits.

    `earlier` is a script that the caller refers to, where the questions that led to it are not known.
    """
    script = _given(earlier) if earlier else None
    for question in questions:
        script = _next(script, question)
    return written(script) if script is not None else None


def unknown() -> str:
    """What to say where no rule fits."""
    known = "; ".join(f"“{rule.example}”" for rule in RULES)
    return (
        "No rule of mine answers this, and no model is set (DRAGOMAN_MODEL_URL). "
        f"I can answer questions such as {known}. "
        "Then ask for e-mail alerting, a webhook, logging or a schedule in that script."
    )


def _next(script: Script | None, asked: str) -> Script | None:
    code = FENCED.search(asked)
    question = FENCED.sub(" ", asked)[:MOST_WORDS]
    lower = question.lower()
    changes = _changes(lower)
    if code is not None and changes:
        script = _given(code[1])
    elif script is None or not changes or not _GOES_ON.search(lower):
        rule = rule_for(question)
        if rule is None:
            return None
        script = rule.make(question)
    for change in changes:
        script = change(script, question)
    return script


def _changes(lower: str) -> list[Change]:
    """What a question asks for besides a script."""
    found = [change for pattern, change in CHANGES if re.search(pattern, lower)]
    return [*found, _adjusted] if reading.percent(lower, -1) >= 0 or reading.size(lower) is not None else found


def _mailed(script: Script, question: str) -> Script:
    return msgspec.structs.replace(script, mail_to=reading.address(question) or "root")


def _posted(script: Script, _question: str) -> Script:
    return msgspec.structs.replace(script, webhook=True)


def _logged(script: Script, _question: str) -> Script:
    return msgspec.structs.replace(script, log=True)


def _scheduled(script: Script, question: str) -> Script:
    lower = question.lower()
    minutes = _MINUTES.search(lower)
    if minutes is not None and 0 < int(minutes[1]) < 60:
        return msgspec.structs.replace(script, cron=f"*/{int(minutes[1])} * * * *")
    return msgspec.structs.replace(script, cron=next((cron for word, cron in _CRON_TIMES if word in lower), _NIGHTLY))


def _repeated(script: Script, question: str) -> Script:
    return msgspec.structs.replace(script, every_s=max(1, reading.seconds(question) or 60))


def _adjusted(script: Script, question: str) -> Script:
    """Another threshold, another size."""
    values = {"threshold": str(reading.percent(question, 80)), "size": reading.size(question) or "100M"}

    def adjusted(setting: str) -> str:
        found = _SETTING.match(setting)
        return f'{found[1]}="${{{found[2]}:-{values[found[1]]}}}"' if found is not None else setting

    return msgspec.structs.replace(script, settings=tuple(map(adjusted, script.settings)))


def _given(text: str) -> Script:
    return Script(name="script", purpose="Runs the script that was given, and tells what it says.", given=text)


CHANGES: Final[tuple[tuple[str, Change], ...]] = (
    (r"\be-?mails?\b|\be-?mail(?:ed|ing)\b|\bmail (?:me|us|alert|it)", _mailed),
    (r"\bwebhook|\bslack\b|\bdiscord\b|\bmattermost\b", _posted),
    (r"\blogging\b|\blogs? (?:it|its|to (?:a )?file|everything)|\b(?:to|in|into|keep) a log\b", _logged),
    (r"\bcron\b|\bschedul|\b(?:night|dai|hour|week)ly\b|\bevery (?:\d+ minutes?|night|day|hour|week)\b", _scheduled),
    (r"\bin a loop\b|\bcontinuous|\bevery \d+ seconds?\b|\bkeep (?:checking|watching)\b", _repeated),
)
