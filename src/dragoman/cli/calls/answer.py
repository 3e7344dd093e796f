"""What a call came to, shown: its answer on stdout, what it took on stderr, its files where --out says."""

import base64
import binascii
import json
from pathlib import Path
from typing import Final

from dragoman.cli.fault import Exit, Fault, wrong_usage
from dragoman.cli.hub import Hub
from dragoman.cli.output import Output
from dragoman.cli.refusals import fault_of, read
from dragoman.cli.times import moment, took
from dragoman.model.json import Json, JsonObject, is_array, is_object

ASKED: Final = "INPUT_REQUIRED"
_TAKEN: Final = 1000  # names that a folder may have already


def show_answer(
    output: Output, hub: Hub | None, answer: JsonObject, *, said: str = "", out: Path | None = None
) -> None:
    """The answer of a call that completed; `said` is what of it was shown as it came. Raises Fault for any other."""
    refuse_unfinished(answer)
    if output.json:
        output.document(answer)
    else:
        show_result(output, answer.get("result"), said=said)
    files = files_in(answer.get("result"))
    if out is not None:
        for file in files:
            output.note(f"file {_written(hub, out, file)}")
    elif not output.json:
        for file in files:
            output.note(f"file {file.get('name') or file.get('uri') or 'without a name'} (--out DIR writes it)")
    if not output.json:
        output.note(" · ".join(facts_of(answer)))


def show_result(output: Output, result: Json, *, said: str = "") -> None:
    """The result itself: a lone text as it is, all else as JSON (a lone value alone); nothing that was said already."""
    only = _lone_text(result)
    if said and only is not None and only.strip() == said.strip():
        return
    if is_object(result) and list(result) == ["text"] and isinstance(result["text"], str):
        output.answer(result["text"])
    else:
        output.document(_without_bytes(_lone_value(result)))


def refuse_unfinished(answer: JsonObject, *, interrupted: bool = False) -> None:
    """Return where the call completed. Raises Fault for what else it came to."""
    status = answer.get("status")
    if status == "completed":
        return
    if is_object(answer.get("error")):
        raise fault_of(read(200, answer))
    message = "the call was cancelled" if status == "cancelled" else f"the call is {status}, not completed"
    raise Fault(
        message,
        next="call again",
        exit_code=Exit.INTERRUPTED if interrupted else Exit.FAILED,
        code="NOT_COMPLETED",
        details={"call_id": answer.get("call_id") or answer.get("id"), "status": status},
    )


def question_of(fault: Fault) -> tuple[str, str] | None:
    """The call and the question, where a failure is that the agent asks for something that can be said."""
    details = fault.details or {}
    call_id = details.get("continue_call_id")
    if details.get("reason") != "input_required" or not isinstance(call_id, str):
        return None
    return call_id, str(details.get("question") or fault.message)


def asked(call_id: str, question: str) -> Fault:
    """The agent asks, and nobody is here to answer."""
    return Fault(
        f"the agent asks: {question}",
        next=f'dragoman call --continue {call_id} --text "…"',
        code=ASKED,
        details={"reason": "input_required", "question": question, "continue_call_id": call_id},
    )


def facts_of(answer: JsonObject) -> list[str]:
    """`completed in 2.4 s (queued 3 ms, agent 2.4 s)`, tokens, trace: what of it the answer tells."""
    timing = answer.get("timing")
    times = {name: moment(at) for name, at in timing.items()} if is_object(timing) else {}
    queued, started, done = times.get("queued_at"), times.get("started_at"), times.get("completed_at")
    facts: list[str] = []
    if queued and done:
        line = f"completed in {took((done - queued).total_seconds())}"
        if started:
            waited, worked = (started - queued).total_seconds(), (done - started).total_seconds()
            line += f" (queued {took(waited)}, agent {took(worked)})"
        facts.append(line)
    else:
        facts.append("completed")
    usage = answer.get("usage")
    if is_object(usage) and usage.get("tokens") is not None:
        facts.append(f"{usage['tokens']} tokens")
    trace = answer.get("trace")
    if is_object(trace) and trace.get("trace_id"):
        facts.append(f"trace {trace['trace_id']}")
    return facts


def files_in(result: Json) -> list[JsonObject]:
    """The files of a result, inside or by link."""
    parts = result.get("parts") if is_object(result) else None
    found = [part.get("file") for part in parts if is_object(part)] if is_array(parts) else []
    return [file for file in found if is_object(file)]


def _written(hub: Hub | None, out: Path, file: JsonObject) -> Path:
    """Where a file was written to. Raises Fault where it cannot be had, or written."""
    raw = _content(hub, file)
    # A stranger's name: only its last part counts, and it never replaces what is there.
    name = Path(str(file.get("name") or "file")).name or "file"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for count in range(_TAKEN):
            place = out / (name if not count else f"{count}-{name}")
            try:
                with place.open("xb") as opened:
                    opened.write(raw)
            except FileExistsError:
                continue
            return place
    except OSError as error:
        raise wrong_usage(f"{out} cannot be written: {error.strerror}", next="--out DIR") from error
    raise wrong_usage(f"{out} is full of files named {name}", next="--out another folder")


def _content(hub: Hub | None, file: JsonObject) -> bytes:
    inside = file.get("bytes")
    if isinstance(inside, str):
        try:
            return base64.b64decode(inside, validate=True)
        except (binascii.Error, ValueError):
            raise Fault(f"the file {file.get('name')} is not base64", next="tell the agent's owner") from None
    uri = str(file.get("uri"))
    # Only needed for links.
    from dragoman.cli.calls.fetch import fetched

    return fetched(hub, uri)


def _lone_value(result: Json) -> Json:
    """The one value that a result holds where it is no object itself; else the result."""
    match result:
        case {"parts": [{"data": value, **beside}], **rest} if not rest and beside.keys() <= {"kind"}:
            return value
        case _:
            return result


def _lone_text(result: Json) -> str | None:
    if is_object(result) and len(result) == 1:
        (only,) = result.values()
        return only if isinstance(only, str) else None
    return None


def _without_bytes(result: Json) -> Json:
    """The result with the size of each file in place of its bytes: nobody reads base64."""
    if not files_in(result):
        return result
    shown: JsonObject = json.loads(json.dumps(result))
    for file in files_in(shown):
        inside = file.get("bytes")
        if isinstance(inside, str):
            file["bytes"] = f"({len(inside) * 3 // 4} bytes)"
    return shown
