"""A waterfall in a terminal: one line for each span of a trace, its name, how long it took, and where it lies.

trace 4bf9… · completed · 412 ms · 3 calls to 3 agents
                            0          206 ms          412 ms
Newsroom · brief    412 ms  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
  attempt 1         410 ms  ╺━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
  Archive · search  120 ms     ━━━━━━━━━━
"""

import sys
from typing import Final, NamedTuple

from dragoman.cli.find import items_of
from dragoman.cli.output import BOLD, DIM, GREEN, RED, YELLOW, Output, one_line, visible
from dragoman.cli.times import took
from dragoman.model.json import Json, JsonObject, is_array, is_object

TOOK: Final = 9
GAP: Final = 2
LABEL_SHARE: Final = 45  # of the width, in percent, that names may take
INVOKED: Final = "invoke_agent "
DELIVERS: Final = "deliver "
FULL, FIRST_HALF, SECOND_HALF, OPEN = "━", "╸", "╺", "┄"


class Axis(NamedTuple):
    """How wide the parts of a line are, and how long the whole trace is."""

    label: int
    bar: int
    total_ms: float


def draw(output: Output, found: JsonObject, width: int) -> None:
    """Print a trace: a line for what it is, a scale, a line for each span, and one for what went wrong in it."""
    spans = [span for span in items_of(found, "spans") if is_object(span)]
    total = max((_end(span) for span in spans), default=0.0)
    labels = [f"{'  ' * int(span.get('depth') or 0)}{_label(span)}" for span in spans]
    label = min(max(map(len, labels), default=0), width * LABEL_SHARE // 100)
    axis = Axis(label, width - label - TOOK - 2 * GAP, total)
    print(visible(_headline(found, width)))
    print(output.paint(_ruler(axis), DIM, sys.stdout))
    explained = {
        span.get("call_id") for span in spans if span.get("error_code") and not _is_call(span) and not _delivers(span)
    }
    for text, span in zip(labels, spans, strict=True):
        print(_line(output, text, span, axis))
        problem = "" if _is_call(span) and span.get("call_id") in explained else _problem(span)
        if problem:
            indent = "  " * (int(span.get("depth") or 0) + 1)
            style = RED if span.get("error_code") else YELLOW
            print(output.paint(visible(f"{indent}{problem}"[:width]), style, sys.stdout))
    if found.get("truncated"):
        output.note("only the newest 200 calls of this trace are shown")


def bar(start_ms: float, length_ms: float | None, total_ms: float, width: int) -> str:
    """Where a span lies in the trace, in halves of a character; at least one half. Without a length it goes on."""
    halves = width * 2
    scale = halves / total_ms if total_ms > 0 else 0.0
    begin = min(halves - 1, max(0, int(start_ms * scale)))
    if length_ms is None:
        return " " * (begin // 2) + OPEN * (width - begin // 2)
    end = max(begin + 1, min(halves, round((start_ms + length_ms) * scale)))
    drawn: list[str] = []
    for cell in range(width):
        first, second = begin <= cell * 2 < end, begin <= cell * 2 + 1 < end
        drawn.append(FULL if first and second else FIRST_HALF if first else SECOND_HALF if second else " ")
    return "".join(drawn).rstrip()


def span_took(ms: Json) -> str:
    """`0.4 ms`, `412 ms`, `2.4 s`; nothing for what goes on."""
    if not isinstance(ms, int | float):
        return "running"
    return f"{ms:.1f} ms" if ms < 9.95 else took(ms / 1000)


def _headline(found: JsonObject, width: int) -> str:
    calls, agents = found.get("calls"), found.get("agents")
    counted = f"{calls} call{'' if calls == 1 else 's'}"
    if is_array(agents) and len(agents) > 1:
        counted += f" to {len(agents)} agents"
    facts = [f"trace {found.get('given_id') or found.get('trace_id')}", str(found.get("status"))]
    facts += [span_took(found.get("duration_ms")), counted]
    return " · ".join(facts)[:width]


def _ruler(axis: Axis) -> str:
    middle, end = span_took(axis.total_ms / 2), span_took(axis.total_ms)
    before = axis.bar // 2 - len(middle) // 2
    scale = f"{'0':<{before}}{middle}".ljust(axis.bar - len(end)) + end
    return " " * (axis.label + TOOK + 2 * GAP) + scale


def _line(output: Output, text: str, span: JsonObject, axis: Axis) -> str:
    text = visible(_kept(text))
    shown = text if len(text) <= axis.label else f"{text[: axis.label - 1]}…"
    length = span.get("duration_ms")
    drawn = bar(
        float(span.get("offset_ms") or 0.0),
        float(length) if isinstance(length, int | float) else None,
        axis.total_ms,
        axis.bar,
    )
    call = _is_call(span)
    named = output.paint(f"{shown:<{axis.label}}", BOLD, sys.stdout) if call else f"{shown:<{axis.label}}"
    style = RED if span.get("status") == "error" else YELLOW if span.get("status") == "running" else GREEN
    painted = output.paint(drawn, style if call or style != GREEN else DIM, sys.stdout)
    return f"{named}{' ' * GAP}{span_took(length):>{TOOK}}{' ' * GAP}{painted}"


def _kept(text: str) -> str:
    """The text without line ends and tabs, its indentation kept."""
    bare = text.lstrip(" ")
    return " " * (len(text) - len(bare)) + one_line(bare)


def _is_call(span: JsonObject) -> bool:
    return span.get("kind") == "server"


def _label(span: JsonObject) -> str:
    """A span as people read it: the agent and its skill, or what the hub did."""
    name = str(span.get("name"))
    told = span.get("attributes")
    attributes: JsonObject = told if is_object(told) else {}
    if name.startswith(INVOKED):
        skill = attributes.get("a2a.skill")
        return name.removeprefix(INVOKED) + (f" · {skill}" if skill else "")
    if name == "attempt":
        way = attributes.get("a2a.dialect.out") or ""
        if attributes.get("a2a.via") == "connected":
            way = "connected"
        return f"attempt {attributes.get('a2a.attempt')} {way}".rstrip()
    return name


def _problem(span: JsonObject) -> str:
    """Why a span failed, or a callback is tried again, in a line of its own."""
    code = span.get("error_code")
    told = span.get("attributes")
    attributes: JsonObject = told if is_object(told) else {}
    if _delivers(span):
        return _undelivered(code, attributes)
    if not code:
        return ""
    status = attributes.get("http.response.status_code")
    return f"✘ {code}" + (f", HTTP {status}" if status else "")


def _undelivered(code: Json, attributes: JsonObject) -> str:
    """What a callback that has not arrived has come to so far."""
    tries, answer = attributes.get("a2a.attempt"), attributes.get("a2a.delivery.answer")
    if not code and (not tries or attributes.get("a2a.status") == "delivered"):
        return ""
    stands = f"✘ {code}" if code else "tried again"
    after = f" after {tries} attempt{'' if tries == 1 else 's'}" if tries else ""
    return stands + after + (f": {answer}" if answer else "")


def _delivers(span: JsonObject) -> bool:
    """Whether it is a callback's."""
    return str(span.get("name")).startswith(DELIVERS)


def _end(span: JsonObject) -> float:
    length = span.get("duration_ms")
    return float(span.get("offset_ms") or 0.0) + (float(length) if isinstance(length, int | float) else 0.0)
