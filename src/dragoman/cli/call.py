"""`dragoman call [AGENT] SKILL`: one call, its answer on stdout, what it took on stderr.

The input is converted and checked by the skill's schema before anything is sent.
"""

from typing import Final

import click

from dragoman.cli.completion import agents_and_skills
from dragoman.cli.fault import Exit, Fault, not_found, wrong_usage
from dragoman.cli.find import SEARCHED, agent_card, did_you_mean, pages, skills_of
from dragoman.cli.hub import Hub
from dragoman.cli.inputs import read_input
from dragoman.cli.output import Output
from dragoman.cli.refusals import fault_of, read
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.times import DURATION, moment, took
from dragoman.model.json import JsonObject, is_array, is_object

DEFAULT_TIMEOUT_S: Final = 30.0  # what the hub allows a call that says nothing
LONGEST_TIMEOUT_S: Final = 3600.0
GRACE_S: Final = 10.0  # for the hub to say that the time is over


@click.command("call", epilog='Example: dragoman call summarize --input content="Tides rise. They fall."')
@click.argument("names", nargs=-1, required=True, metavar="[AGENT] SKILL", shell_complete=agents_and_skills)
@click.option(
    "--input",
    "given",
    multiple=True,
    metavar="K=V|@FILE|-",
    help="A value; or all of it as JSON, by file or stdin. K=@FILE reads a text, @@ is a plain @.",
)
@click.option("--text", metavar="TEXT", help="A text, for skills that take one.")
@click.option("--timeout", "timeout_s", type=DURATION, metavar="30s", help="How long it may take, up to 1h.")
@click.option(
    "--priority", type=click.Choice(["low", "normal", "high", "urgent"]), help="Which waiting call goes first."
)
@click.option("--conversation", metavar="ID", help="The conversation it belongs to.")
@click.option("--idempotency-key", metavar="KEY", help="The same key and input never run twice within 24 h.")
@common
def command(
    names: tuple[str, ...],
    given: tuple[str, ...],
    text: str | None,
    timeout_s: float | None,
    priority: str | None,
    conversation: str | None,
    idempotency_key: str | None,
) -> None:
    """Call a skill and print its answer.

    With SKILL alone the hub picks the best agent that has it.
    """
    agent, skill = _words(names)
    if timeout_s is not None and not 0 < timeout_s <= LONGEST_TIMEOUT_S:
        raise wrong_usage("--timeout is more than nothing and at most 1h", next="--timeout 5m")
    output = current_output()
    hub = current_hub(output)
    agent_id, card = _target(hub, agent, skill)
    known = str(card.get("id") or agent_id or "")
    value = read_input(given, text, _input_schema(card, skill), advice=f"dragoman agents show {known}")
    options: JsonObject = {}
    if timeout_s is not None:
        options["timeout_ms"] = max(1, round(timeout_s * 1000))
    if priority is not None:
        options["priority"] = priority
    body: JsonObject = {"skill": skill, "input": value}
    if options:
        body["options"] = options
    if agent_id is not None:
        body["target_agent_id"] = agent_id
    if conversation is not None:
        body["context"] = {"conversation_id": conversation}
    answer = hub.ask(
        "POST",
        "/v1/a2a/call",
        body=body,
        headers=_key_header(idempotency_key),
        timeout_s=(timeout_s or DEFAULT_TIMEOUT_S) + GRACE_S,
        waiting=f"calling {skill}",
        agent=known,
    )
    _show(output, answer or {})


def _words(names: tuple[str, ...]) -> tuple[str | None, str]:
    match names:
        case (skill,):
            return None, skill
        case (agent, skill):
            return agent, skill
        case _:
            raise wrong_usage(f"expected [AGENT] SKILL, got {len(names)} words", next="dragoman call --help")


def _target(hub: Hub, agent: str | None, skill: str) -> tuple[str | None, JsonObject]:
    """Whom to name in the call (nobody, when the hub is to pick), and the card that has the schema. Raises Fault."""
    if agent is not None:
        agent_id, card = agent_card(hub, agent)
        names = _skill_names(card)
        if names and skill not in names:
            message = f'{agent_id} has no skill "{skill}"; it has: {", ".join(names)}'
            near = did_you_mean(skill, names).removeprefix("; did you mean ").rstrip("?")
            raise not_found("SKILL_NOT_FOUND", message, next=f"dragoman call {agent_id} {near or names[0]}")
        return agent_id, card
    found, _ = pages(hub, "/v1/a2a/discover", {"skill": skill}, items="agents", limit=1)
    if not found:
        _refuse_resting(hub, skill)
        everybody, _ = pages(hub, "/v1/a2a/discover", {}, items="agents", limit=SEARCHED)
        message = f'no agent has the skill "{skill}"{did_you_mean(skill, skills_of(everybody))}'
        raise not_found("SKILL_NOT_FOUND", message, next="dragoman discover")
    return None, agent_card(hub, str(found[0]["id"]))[1]


def _refuse_resting(hub: Hub, skill: str) -> None:
    """Return unless somebody has the skill, but takes no calls now. Raises Fault then."""
    for status, next_step in (("paused", "dragoman agents resume"), ("unreachable", "dragoman agents show")):
        found, _ = pages(hub, "/v1/a2a/discover", {"skill": skill, "status": status}, items="agents", limit=1)
        if found:
            agent_id = found[0]["id"]
            message = f'{agent_id} has the skill "{skill}", but is {status}'
            raise Fault(message, next=f"{next_step} {agent_id}", code="AGENT_UNAVAILABLE", retryable=True)


def _skills(card: JsonObject) -> list[JsonObject]:
    skills = card.get("skills")
    return [skill for skill in skills if is_object(skill)] if is_array(skills) else []


def _skill_names(card: JsonObject) -> list[str]:
    return [str(skill.get("name") or skill.get("id")) for skill in _skills(card)]


def _input_schema(card: JsonObject, skill: str) -> JsonObject:
    for one in _skills(card):
        if skill in (one.get("name"), one.get("id")):
            schema = one.get("input_schema")
            return schema if is_object(schema) else {}
    return {}


def _key_header(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not key or not key.isascii() or not key.isprintable():
        raise wrong_usage("--idempotency-key is plain ASCII text", next="--idempotency-key order-4711")
    return {"idempotency-key": key}


def _show(output: Output, answer: JsonObject) -> None:
    status = answer.get("status")
    if status != "completed":
        raise _unfinished(answer, str(status))
    if output.json:
        output.document(answer)
    else:
        result = answer.get("result")
        if is_object(result) and list(result) == ["text"] and isinstance(result["text"], str):
            output.answer(result["text"])
        else:
            output.document(result)
    if not output.json:
        output.note(" · ".join(_took(answer)))


def _unfinished(answer: JsonObject, status: str) -> Fault:
    if is_object(answer.get("error")):
        return fault_of(read(200, answer))
    call_id = answer.get("call_id") or answer.get("id")
    message = "the call was cancelled" if status == "cancelled" else f"the call is {status}, not completed"
    details: JsonObject = {"call_id": call_id, "status": status}
    return Fault(message, next="call again", exit_code=Exit.FAILED, code="NOT_COMPLETED", details=details)


def _took(answer: JsonObject) -> list[str]:
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
