"""Closed-loop load by wrk, with a script that checks every answer.

The script keeps the ids it sent; an answer must name one of them, everywhere it names any, and takes it off the list.
wrk does not tell a script which connection an answer came on; `pairing.py` checks that.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.calls import PLACEHOLDER, SPREAD, Call, new_prefix
from benchmarks.place import LOAD_CORE, Void
from benchmarks.processes import confine

SCRIPT: Final = """
local pieces, ids, texts, prefix, call_id = {@pieces}, {@ids}, {@texts}, @prefix, @call_id
local names
local sent, number, known = {}, 0, {}
answered, wrong, fault = 0, 0, ""
local threads = {}
function setup(thread) threads[#threads + 1] = thread end
function request()
  number = number + 1
  local id = prefix .. string.format("%08x%08x", number * @spread % 4294967296, number)
  sent[id] = true
  return table.concat(pieces, id)
end
local function check(status, body)
  if status ~= @status then return "status " .. status end
  if #ids > 0 then
    local id = string.match(body, ids[1])
    if not id or not sent[id] then return "an id that was not asked, or twice" end
    for i = 2, #ids do
      if string.match(body, ids[i]) ~= id then return "two ids in one answer" end
    end
    sent[id] = nil
  end
  for i = 1, #texts do
    if not string.find(body, texts[i]) then return "missing " .. texts[i] end
  end
  if call_id then
    local name = string.match(body, call_id)
    if not name or (#ids == 0 and known[name]) then return "a call without a name, or two with one" end
    if #ids == 0 then known[name] = true end
    names = names or io.open(@names, "w")
    names:write(name, "\\n")
  end
end
function response(status, headers, body)
  local why = check(status, body)
  if why then
    wrong = wrong + 1
    if fault == "" then fault = why .. ": " .. string.sub(body or "", 1, 300) end
  else
    answered = answered + 1
  end
end
function done(summary, latency, requests)
  local e = summary.errors
  local broken = e.connect + e.read + e.write + e.timeout
  io.write(string.format("\\nfigures %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    threads[1]:get("answered"), threads[1]:get("wrong"), broken, latency:percentile(50), latency:percentile(99)))
  io.write("fault " .. string.gsub(threads[1]:get("fault"), "%s+", " ") .. "\\n")
end
"""


class Load(NamedTuple):
    """What one round of wrk did; every answer was checked and right. `names`: the calls' ids, where they have some."""

    answered: int
    names: list[str]
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_s(self) -> float:
        """Answers per second."""
        return self.answered / self.seconds


def available() -> bool:
    """Whether wrk is here."""
    return shutil.which("wrk") is not None


def run(call: Call, connections: int, seconds: float, folder: Path) -> Load:
    """Load one server for that long; Void when a single answer is wrong or a connection breaks."""
    script, names = folder / "load.lua", folder / "answered.txt"
    names.unlink(missing_ok=True)
    script.write_text(_script(call, names))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:.0f}s", "--timeout", "10s", "-s", str(script)]
    done = subprocess.run(
        [*command, call.endpoint.url],
        capture_output=True,
        text=True,
        timeout=seconds + 30,
        check=False,
        preexec_fn=lambda: confine(LOAD_CORE),
    )
    figures = next((line.split()[1:] for line in done.stdout.splitlines() if line.startswith("figures ")), None)
    if figures is None:
        raise Void(f"wrk reported nothing: {done.stdout} {done.stderr}")
    requests, duration, answered, wrong, broken, p50, p99 = (int(value) for value in figures)
    if wrong or broken or answered == 0 or answered < requests:
        fault = done.stdout.partition("\nfault ")[2].strip()
        raise Void(f"{wrong} wrong answers, {broken} broken connections, {answered} right ones of {requests}. {fault}")
    found = names.read_text().split("\n")[:-1] if names.exists() else []
    if call.wanted.call_id and len(found) != answered:
        raise Void(f"{len(found)} names of calls for {answered} answers")
    return Load(answered, found, duration / 1e6, p50 / 1e3, p99 / 1e3)


def _script(call: Call, names: Path) -> str:
    pieces = call.template.decode().split(PLACEHOLDER.decode())
    values = {
        "@pieces": ",".join(map(_lua, pieces)),
        "@ids": ",".join(_lua(_pattern(each)) for each in call.wanted.ids),
        "@texts": ",".join(_lua(_pattern(each)) for each in call.wanted.texts),
        "@prefix": _lua(new_prefix()),
        "@spread": str(SPREAD),
        "@call_id": _lua(_pattern(call.wanted.call_id)) if call.wanted.call_id else "nil",
        "@names": _lua(str(names)),
        "@status": str(call.wanted.status),
    }
    script = SCRIPT
    for name, value in values.items():
        script = script.replace(name, value)
    return script


def _lua(text: str) -> str:
    # JSON escapes control characters with \\u, which Lua 5.1 lacks; there are none but line ends here.
    return json.dumps(text)


def _pattern(expression: str) -> str:
    """A regular expression of `calls.py` as a Lua pattern; only what is used there is known here."""
    known = (("(trace_[0-9a-f]{32})", "(trace_%x+)"), (".*?", ".-"), (r"\s*", "%s*"))
    for ours, theirs in known:
        expression = expression.replace(ours, theirs)
    # What is left of the backslashes escapes one character, as the percent sign does in Lua.
    return expression.replace("\\", "%")
