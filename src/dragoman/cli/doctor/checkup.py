"""How this installation and its hub are: each thing that goes wrong in practice, and what mends it."""

import asyncio
import json
import os
import platform
import resource
import shutil
import stat
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dragoman import __version__
from dragoman.cli.banner import tilde
from dragoman.cli.doctor.checklist import Finding, Mark, show_end, show_findings
from dragoman.cli.exchange import exchange
from dragoman.cli.fault import Exit, Fault
from dragoman.cli.hub import Hub
from dragoman.cli.output import GREEN, RED, YELLOW, Output
from dragoman.cli.session import current_hub
from dragoman.cli.times import moment, took
from dragoman.cli.version import EXTRAS, is_there
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.net import NetError
from dragoman.ports.clock import SystemClock
from dragoman.sdk.client.reach import REASONS
from dragoman.sdk.client.settings import data_directory

WAIT_S: Final = 5.0
FREE_BYTES: Final = 1 << 30
OPEN_FILES: Final = 4096
SKEW_S: Final = 5.0
# There is nothing at this path; a hub's refusal tells its time to the millisecond.
NOWHERE: Final = "/v1/doctor"


class Checkup:
    """The findings, and how bad the worst of them is."""

    def __init__(self, output: Output, hub: Hub) -> None:
        self.findings: list[Finding] = []
        self.facts: JsonObject = {"hub": hub.url, "version": __version__}
        self.end: tuple[str, str, Exit] | None = None
        self._output = output
        self._hub = hub

    def good(self, subject: str, *cells: str) -> None:
        """Something is as it should be."""
        self.findings.append(Finding(Mark.GOOD, subject, cells))

    def note(self, subject: str, *cells: str) -> None:
        """Something works, and could be better."""
        self.findings.append(Finding(Mark.NOTE, subject, cells))

    def fault(self, subject: str, what: str, mend: str, exit_code: Exit = Exit.FAILED) -> None:
        """Something does not work; the first of them decides what to do next."""
        self.findings.append(Finding(Mark.FAULT, subject, (what, mend), red=0))
        self.end = self.end or (f"{subject}: {what}", mend, exit_code)

    def get(self, path: str) -> HttpReply:
        """What the hub answers there, without a token. Raises NetError."""
        request = HttpRequest(method="GET", url=self._hub.url + path, headers={b"accept": b"application/json"})
        return asyncio.run(exchange(request, WAIT_S, "waiting for the hub", self._output))

    def check_here(self) -> None:
        """This machine: what is installed, the data directory, and what the system allows."""
        extras = ", ".join(name for name, package in EXTRAS.items() if is_there(package)) or "none"
        self.good("here", f"dragoman {__version__}, Python {platform.python_version()}, extras: {extras}")
        if _is_strangers_alias():
            self.note("alias", "the package agentplatform here is not ours", "import dragoman in its place")
        data = data_directory(os.environ)
        self.facts["data"] = str(data)
        if not data.exists():
            self.findings.append(
                Finding(Mark.FACT, "data", (f"{tilde(data)} is not there yet: no hub of yours ran here",))
            )
        else:
            self._check_data(data)
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
            self.note("files", f"at most {soft} open at once", f"ulimit -n {OPEN_FILES}, for a hub under load")

    def check_hub(self) -> None:
        """The hub: whether it answers, is ready, is of this version, agrees on the time, and takes the token."""
        clock = SystemClock()
        try:
            since = clock.monotonic()
            root = _object(self.get("/"))
            taken = took(clock.monotonic() - since)
            ready = self.get("/readyz")
            refused = self.get(NOWHERE)
        except NetError as error:
            reason = REASONS.get(error.kind.value, error.kind.value)
            mend = "dragoman dev, or set DRAGOMAN_URL"
            self.fault("hub", f"no hub answers at {self._hub.url} ({reason})", mend, Exit.UNREACHABLE)
            return
        version = str(root.get("version") or "of an unknown version")
        self.facts["hub_version"] = version
        self.good("hub", f"{self._hub.url} answers in {taken}")
        self.facts["ready"] = ready.status == 200
        if ready.status == 200:
            self.good("ready", "it takes calls")
        else:
            checks = _object(ready).get("checks")
            self.fault("ready", f"it takes no calls (HTTP {ready.status}): {json.dumps(checks)}", "see the hub's log")
        if version == __version__:
            self.good("version", version)
        else:
            self.note("version", f"the hub is {version}, this command {__version__}", "install the same version")
        self._check_clock(refused, clock)
        self._check_token()

    def _check_data(self, data: Path) -> None:
        about = data.stat()
        mode = stat.S_IMODE(about.st_mode)
        if about.st_uid != os.getuid() or mode & 0o077:
            self.fault("data", f"others can read {tilde(data)} (mode {mode:04o})", f"chmod 700 {data}")
        else:
            self.good("data", tilde(data))
        free = shutil.disk_usage(data).free
        if free < FREE_BYTES:
            self.note(
                "disk", f"{free / FREE_BYTES:.1f} GiB free", "a full disk refuses calls; nothing accepted is lost"
            )

    def _check_clock(self, reply: HttpReply, clock: SystemClock) -> None:
        told = _time_of(reply)
        if told is None:
            return
        skew = round((told - clock.now()) / timedelta(seconds=1), 2) + 0.0  # which turns -0.0 into 0.0
        self.facts["clock_skew_s"] = skew
        if abs(skew) < SKEW_S:
            self.good("clock", f"{skew:+.2f} s to the hub's")
        else:
            self.fault(
                "clock", f"{skew:+.0f} s to the hub's", "set both clocks by NTP: tokens and signatures have times"
            )

    def _check_token(self) -> None:
        try:
            self._hub.get("/v1/agents", {"limit": "1"}, timeout_s=WAIT_S)
        except Fault as fault:
            self.facts["token"] = False
            self.fault("token", fault.message, fault.next, fault.exit_code)
            return
        self.facts["token"] = True
        self.good("token", "the hub takes it" if self._hub.has_token else "none needed")


def check_hub(output: Output) -> int:
    """Check this installation and its hub, and say what it comes to."""
    checkup = Checkup(output, current_hub(output))
    checkup.check_here()
    checkup.check_hub()
    verdict, mend, exit_code = checkup.end or ("all is well", "dragoman discover", Exit.DONE)
    if output.json:
        shown = [{"mark": one.mark.value[1], "what": one.subject, "found": list(one.cells)} for one in checkup.findings]
        output.document({**checkup.facts, "checks": shown, "verdict": verdict, "next": mend})
        return exit_code
    show_findings(output, checkup.findings)
    worst = max((one.mark for one in checkup.findings), key=[Mark.FACT, Mark.GOOD, Mark.NOTE, Mark.FAULT].index)
    show_end(output, verdict, RED if worst is Mark.FAULT else YELLOW if worst is Mark.NOTE else GREEN, mend)
    return exit_code


def _is_strangers_alias() -> bool:
    """Whether another package has taken the place of our `agentplatform`; looked at, not imported."""
    found = find_spec("agentplatform")
    return found is not None and "__dragoman__" not in Path(found.origin or os.devnull).read_text(errors="replace")


def _object(reply: HttpReply) -> JsonObject:
    try:
        body: Json = json.loads(reply.body)
    except ValueError:
        return {}
    return body if is_object(body) else {}


def _time_of(reply: HttpReply) -> datetime | None:
    timing = _object(reply).get("timing")
    told = moment(timing.get("queued_at")) if is_object(timing) else None
    if told is not None:
        return told
    try:
        return parsedate_to_datetime(reply.headers[b"date"].decode("latin-1")) + timedelta(seconds=0.5)
    except (KeyError, TypeError, ValueError):
        return None
