"""`dragoman call [AGENT] SKILL`: one call, its answer on stdout, what it took on stderr.

The input is converted and checked by the skill's schema before anything is sent.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dragoman.cli.calls.answer import question_of, show_answer
from dragoman.cli.calls.explain import explain, route_of
from dragoman.cli.calls.skill import input_schema, target_of
from dragoman.cli.calls.wanted import Wanted, asked_back, content_of
from dragoman.cli.completion import agents_and_skills
from dragoman.cli.fault import Fault, wrong_usage
from dragoman.cli.hub import Hub
from dragoman.cli.output import Output
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.tasks import DIALECTS, call_of
from dragoman.cli.times import DURATION
from dragoman.model.json import JsonObject

if TYPE_CHECKING:
    from dragoman.cli.calls.calling import Answered, Asked

LONGEST_TIMEOUT_S: Final = 3600.0
LONGEST_ACCEPTED_S: Final = 86400.0


@click.command("call", epilog='Example: dragoman call summarize --input content="Tides rise. They fall."')
@click.argument("names", nargs=-1, metavar="[AGENT|URL] SKILL", shell_complete=agents_and_skills)
@click.option(
    "--input",
    "given",
    multiple=True,
    metavar="K=V|@FILE|-",
    help="A value; or all of it as JSON, by file or stdin. K=@FILE reads a text, @@ is a plain @.",
)
@click.option("--text", metavar="TEXT", help="A text, for skills that take one.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file to send along; may be repeated.")
@click.option("--stream", is_flag=True, help="Show what the agent says as it comes.")
@click.option("--async", "accepted", is_flag=True, help="Hand it over and print its id.")
@click.option("--wait", is_flag=True, help="With --async: wait for its answer.")
@click.option("--timeout", "timeout_s", type=DURATION, metavar="30s", help="How long it may take, up to 1h.")
@click.option(
    "--priority", type=click.Choice(["low", "normal", "high", "urgent"]), help="Which waiting call goes first."
)
@click.option("--conversation", metavar="ID", help="The conversation it belongs to.")
@click.option("--continue", "continued", metavar="CALL", help="Answer what the agent of that call asked.")
@click.option("--callback", metavar="URL", help="Where the outcome is told, too.")
@click.option("--as", "dialect", type=click.Choice(DIALECTS), help="Call in this dialect and print its answer.")
@click.option("--idempotency-key", metavar="KEY", help="The same key and input never run twice within 24 h.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the answer's files there.")
@click.option("--explain", is_flag=True, help="Say how the hub chose the agent, and among whom.")
@common
def command(**options: Any) -> None:
    """Call a skill and print its answer.

    With SKILL alone the hub picks the best agent that has it. With a URL the agent there is called without a hub.
    """
    wanted = Wanted(**options)
    _refuse_together(wanted)
    output = current_output()
    if wanted.names and wanted.names[0].startswith(("http://", "https://")):
        # It brings the dialects and what probes agents.
        from dragoman.cli.calls.directly import call_directly

        call_directly(output, wanted)
        return
    hub = current_hub(output)
    call = _asked(hub, wanted)
    if wanted.dialect is not None:
        from dragoman.cli.calls.in_dialect import call_in

        output.document(call_in(hub, output, call, wanted.dialect))
    elif wanted.accepted and not wanted.wait:
        _hand_over(output, hub, call)
    else:
        _carry(output, hub, call, wanted)


def _asked(hub: Hub, wanted: Wanted) -> "Asked":
    """The call, as the hub takes it. Raises Fault for what can be known to be wrong before it is sent."""
    from dragoman.cli.calls.calling import Asked  # brings the HTTP client

    body = wanted.body()
    context: JsonObject = {"conversation_id": wanted.conversation} if wanted.conversation else {}
    if wanted.continued is not None:
        found = _continued(hub, wanted)
        context["continue_call_id"] = found["id"]
        agent, skill, schema = str(found.get("agent")), str(found.get("skill") or "the call"), dict[str, Any]()
    else:
        agent, skill, schema = _new(hub, wanted.names, body)
    if context:
        body["context"] = context
    body |= content_of(wanted, schema, agent)
    return Asked(body, _key_header(wanted.idempotency_key), wanted.seconds, skill, agent)


def _carry(output: Output, hub: Hub, call: "Asked", wanted: Wanted) -> None:
    """Make the call, answer what its agent asks where somebody is here to do so, and show what it came to."""
    while True:
        try:
            answered = _made(output, hub, call, wanted)
        except Fault as fault:
            question = question_of(fault)
            if question is None:
                raise
            call = asked_back(call, *question)
            continue
        if wanted.explain and output.json:
            output.document({**answered.answer, "route": route_of(hub, answered.answer)})
            return
        if not (output.json and wanted.stream):
            show_answer(output, hub, answered.answer, said=answered.said, out=wanted.out)
        if wanted.explain:
            explain(output, hub, answered.answer)
        return


def _made(output: Output, hub: Hub, call: "Asked", wanted: Wanted) -> "Answered":
    # They bring the HTTP client.
    from dragoman.cli.calls.calling import hand_over_and_wait, hear, wait_for
    from dragoman.cli.calls.headline import show_headline

    if wanted.accepted:
        return hand_over_and_wait(hub, output, call)
    return hear(hub, output, call, partial(show_headline, output)) if wanted.stream else wait_for(hub, call)


def _hand_over(output: Output, hub: Hub, call: "Asked") -> None:
    from dragoman.cli.calls.calling import hand_over

    answer = hand_over(hub, call)
    if output.json:
        output.document(answer)
        return
    output.answer(str(answer.get("call_id")))
    output.note(f"next: dragoman tasks show {answer.get('call_id')}")


def _new(hub: Hub, names: tuple[str, ...], body: JsonObject) -> tuple[str, str, JsonObject]:
    """Whom a new call is for, its skill and the schema of its input."""
    match names:
        case ():
            raise click.UsageError("Missing argument '[AGENT] SKILL'.", click.get_current_context())
        case (skill,):
            agent = None
        case (agent, skill):
            pass
        case _:
            raise wrong_usage(f"expected [AGENT] SKILL, got {len(names)} words", next="dragoman call --help")
    agent_id, card = target_of(hub, agent, skill)
    body["skill"] = skill
    if agent_id is not None:
        body["target_agent_id"] = agent_id
    return str(card.get("id") or agent_id or ""), skill, input_schema(card, skill)


def _continued(hub: Hub, wanted: Wanted) -> JsonObject:
    """The call that goes on."""
    if wanted.names:
        raise wrong_usage("--continue goes on with a call: it names no agent and no skill", next="leave them out")
    return call_of(hub, wanted.continued or "")


def _refuse_together(wanted: Wanted) -> None:
    longest = LONGEST_ACCEPTED_S if wanted.accepted else LONGEST_TIMEOUT_S
    if wanted.timeout_s is not None and not 0 < wanted.timeout_s <= longest:
        raise wrong_usage(f"--timeout is more than nothing and at most {longest / 3600:g}h", next="--timeout 5m")
    if wanted.wait and not wanted.accepted:
        raise wrong_usage("--wait goes with --async", next="leave it out: a call is waited for")
    ways = [name for name, on in (("--stream", wanted.stream), ("--async", wanted.accepted)) if on]
    if wanted.dialect is not None:
        ways.append("--as")
    if len(ways) > 1:
        raise wrong_usage(f"{' and '.join(ways)} exclude each other", next="leave one of them out")


def _key_header(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not key or not key.isascii() or not key.isprintable():
        raise wrong_usage("--idempotency-key is plain ASCII text", next="--idempotency-key order-4711")
    return {"idempotency-key": key}
