"""What a look at an agent found, line by line, and what it comes to."""

from typing import Final, NamedTuple

from dragoman.cli.doctor.checklist import Finding, Mark
from dragoman.cli.fault import Exit
from dragoman.cli.output import GREEN, RED, YELLOW
from dragoman.cli.times import took
from dragoman.delivery.probe import Examined, Said, Spoken, Verdict
from dragoman.delivery.probe.report import auth_of, tls_of, why_not
from dragoman.model.agent import Binding
from dragoman.model.json import Json, is_array
from dragoman.sdk.client.reach import REASONS

IN_STEP_S: Final = 2.0  # whole seconds are all that a server tells
FRAMINGS: Final = {Binding.JSONRPC: "JSON-RPC", Binding.HTTP: "HTTP+JSON", Binding.GRPC: "gRPC"}
OWN_FRAME: Final = frozenset({"envelope", "platform"})  # they post their own bodies, and frame nothing
SHOWN_TEXT: Final = 60


class End(NamedTuple):
    """What it comes to, and what to do next."""

    verdict: str
    next: str
    exit_code: Exit
    style: str


def findings_of(examined: Examined, *, sending: bool) -> list[Finding]:
    """Everything that was found, best known first."""
    if examined.verdict is Verdict.SILENT:
        reason = REASONS.get(examined.reach, examined.reach or "no answer")
        return [Finding(Mark.FAULT, "reach", (examined.url, reason))]
    found = [_card(examined), *(_spoken(each) for each in examined.spoken)]
    if not examined.everything and any(each.answered for each in examined.spoken):
        found.append(Finding(Mark.FACT, "others", ("not asked: nothing points to them (--all asks)",)))
    found += _sent(examined, sending)
    found.append(Finding(Mark.FACT, "facts", (" · ".join(_facts(examined)),)))
    found += [
        Finding(Mark.NOTE, "quirks", (odd.id, odd.seen, odd.consequence), group="quirks") for odd in examined.oddities
    ]
    return found


def requests_of(examined: Examined) -> list[Finding]:
    """Every request and its answer: the whole of the evidence."""
    return [Finding(Mark.FACT, "asked", (each.what, each.request, each.says), group="asked") for each in examined.tried]


def end_of(examined: Examined) -> End:
    """What it comes to."""
    said = examined.said
    match examined.verdict:
        case Verdict.USABLE if said is not None and said.problem and said.state != "submitted":
            verdict = f"it answers, but the message failed: {said.problem}"
            return End(verdict, f"dragoman doctor {examined.url} -v --send TEXT", Exit.FAILED, RED)
        case Verdict.USABLE:
            register = f"dragoman register {examined.url}"
            return End("works through the hub in every dialect", register, Exit.DONE, GREEN)
        case Verdict.LOCKED:
            verdict = f"it answers, and wants a credential{_scheme(examined)}"
            return End(verdict, "ask its owner for one, and register the agent with it", Exit.REFUSED, YELLOW)
        case Verdict.UNUSABLE:
            advice = f"dragoman doctor {examined.url} --send hello, or ask its owner where it is called"
            return End(f"nothing usable: {why_not(examined)}", advice, Exit.FAILED, RED)
        case Verdict.NO_AGENT:
            advice = f"dragoman doctor {examined.url} --all, or give the address of one agent"
            return End(why_not(examined), advice, Exit.NOT_FOUND, RED)
        case Verdict.SILENT:
            return End(f"nothing answers at {examined.url}", "start it, or check the address", Exit.UNREACHABLE, RED)


def _card(examined: Examined) -> Finding:
    found = examined.found
    if found is None:
        if examined.problem:
            return Finding(Mark.FAULT, "card", ("cannot be used", examined.problem), red=0)
        return Finding(Mark.NOTE, "card", ("none found", "it is registered under its host's name"))
    kind = "a2a-1.0 + a2a-0.3" if found.merged else found.dialect
    listed: Json = found.body.get("skills")
    count = len(listed) if is_array(listed) else len(found.card.skills)
    about = f'"{found.card.name}" {found.card.version}, {count or "no"} skill{"" if count == 1 else "s"}'
    return Finding(Mark.GOOD, "card", (found.path or found.url, kind, about))


def _spoken(spoken: Spoken) -> Finding:
    framing = "own form" if spoken.dialect in OWN_FRAME else FRAMINGS.get(spoken.binding, spoken.binding.value)
    claimed = "claimed" if spoken.claimed else "not claimed"
    if not spoken.asked and not spoken.answered:
        answers, mark = "not asked", Mark.FACT
    elif spoken.locked:
        answers, mark = "wants a credential", Mark.NOTE
    elif not spoken.asked:
        answers, mark = "reached", Mark.GOOD
    elif spoken.answered:
        answers, mark = "answers", Mark.GOOD if spoken.claimed and not spoken.note else Mark.NOTE
    else:
        answers, mark = ("silent", Mark.FAULT) if spoken.claimed else ("odd", Mark.NOTE)
    differs = spoken.asked and spoken.claimed != spoken.answered
    said = f"{spoken.evidence}: {spoken.note}" if spoken.note else spoken.evidence
    cells = (framing, f"{claimed}, {answers}", said)
    return Finding(mark, spoken.dialect, cells, group="dialects", red=1 if differs else None)


def _sent(examined: Examined, sending: bool) -> list[Finding]:
    claimed = "claimed" if examined.found is not None and examined.found.card.streaming else "not claimed"
    stream = Finding(Mark.FACT, "stream", (f"{claimed}, not tried",), group="send")
    if sending:
        return [_message(examined.said), stream]
    return [Finding(Mark.FACT, "send", ("not tried (--send TEXT)",), group="send"), stream]


def _message(said: Said | None) -> Finding:
    if said is None:
        return Finding(Mark.FAULT, "send", ("not tried: there is no dialect to say it in",), group="send")
    after = f" after {said.polls} poll{'' if said.polls == 1 else 's'}" if said.polls else ""
    if said.state is None or (said.problem and said.state != "completed"):
        mark = Mark.NOTE if said.state == "submitted" else Mark.FAULT
        return Finding(mark, "send", (f"{said.state or 'no answer'}{after}", said.problem), group="send")
    first, *others = said.places or ("no place at all",)
    also = f" (also in {', '.join(others)})" if others else ""
    text = said.text if len(said.text) <= SHOWN_TEXT else f"{said.text[:SHOWN_TEXT]}…"
    told = f"{_precise(said.ms)}, answer in {first}{also}{text and ': '}{text}"
    return Finding(Mark.GOOD, "send", (f"{said.state}{after}", told), group="send")


def _facts(examined: Examined) -> list[str]:
    auth = auth_of(examined)
    asked = f"asked for{_scheme(examined)}" if auth["asked"] else "none"
    by_card = [scheme["scheme"] for scheme in auth["card"] if scheme["scheme"] != "none"]
    card = f" (card: {', '.join(by_card)})" if by_card else ""
    facts = [f"auth {asked}{card}", f"tls {tls_of(examined.url)}"]
    if examined.clock_skew_s is not None:
        skew = examined.clock_skew_s
        facts.append("clock in step" if abs(skew) < IN_STEP_S else f"clock {skew:+.0f} s")
    if examined.latency_ms is not None:
        facts.append(f"latency {_precise(examined.latency_ms)}")
    if examined.found is not None:
        facts.append("card signed, not checked" if examined.found.signed else "card not signed")
    facts.append(f"{len(examined.tried)} requests")
    return facts


def _precise(ms: float) -> str:
    return f"{ms:.1f} ms" if ms < 10 else took(ms / 1000)


def _scheme(examined: Examined) -> str:
    named = [each.service_identifier for each in (examined.found.card.auth if examined.found else ())]
    service = next((f", service {name}" for name in named if name), "")
    return f" ({examined.challenge}{service})" if examined.challenge else f" ({service[2:]})" if service else ""
