"""`dragoman call URL SKILL`: an agent called by its URL, with no hub in between."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from dragoman.cli.calls.answer import question_of, show_answer
from dragoman.cli.calls.calling import Asked, hear
from dragoman.cli.calls.wanted import asked_back, content_of
from dragoman.cli.fault import Exit, Fault, wrong_usage
from dragoman.cli.output import Output
from dragoman.cli.refusals import Refusal, fault_of, read
from dragoman.model.errors import AgentUnavailable, DragomanError
from dragoman.model.json import Json, JsonObject
from dragoman.ports.clock import SystemClock
from dragoman.sdk.direct.calls import OneAgent
from dragoman.sdk.direct.direct import DirectHttp
from dragoman.security.key_manager import KeyManager

if TYPE_CHECKING:
    from dragoman.cli.calls.wanted import Wanted
    from dragoman.sdk.client.http import HubHttp


def call_directly(output: Output, wanted: "Wanted") -> None:
    """Call the agent and show its answer. Raises Fault."""
    match wanted.names:
        case (url, skill):
            pass
        case _:
            raise wrong_usage(f"expected URL SKILL, got {len(wanted.names)} words", next="dragoman call --help")
    hubs = {"--async": wanted.accepted, "--callback": wanted.callback, "--continue": wanted.continued}
    for option, given in hubs.items():
        if given:
            raise wrong_usage(f"{option} needs a hub", next=f"dragoman register {url}, then call it there")
    agent = DirectAgent(url, wanted.dialect)
    schema = agent.input_schema(skill) if wanted.given or wanted.text is not None else {}
    body: JsonObject = {**wanted.body(), "skill": skill, **content_of(wanted, schema, url)}
    body.pop("callback", None)
    if wanted.conversation:
        body["context"] = {"conversation_id": wanted.conversation}
    call = Asked(body, {}, wanted.seconds, skill, url)
    while True:
        try:
            answered = hear(agent, output, call, None if not wanted.stream else partial(_headline, output, url))
        except Fault as fault:
            question = question_of(fault)
            if question is None:
                raise
            call = asked_back(call, *question)
            continue
        if not (output.json and wanted.stream):
            show_answer(output, None, answered.answer, said=answered.said, out=wanted.out)
        return


class DirectAgent:
    """One agent in the place of a hub."""

    def __init__(self, url: str, dialect: str | None) -> None:
        """Ask nothing yet."""
        self.url = url
        self._dialect = dialect
        self._http = DirectHttp(url, dialect, KeyManager(), SystemClock())

    def http(self) -> "HubHttp":
        """What answers as a hub would."""
        return self._http

    def input_schema(self, skill: str) -> JsonObject:
        """The schema of a skill's input, by the agent's own card. Raises Fault."""
        agent = OneAgent(self.url, self._dialect, KeyManager(), SystemClock())

        async def found() -> JsonObject:
            try:
                known = (await agent.agent()).card.skill(skill)
                return dict(known.input_schema or {}) if known is not None else {}
            finally:
                await agent.close()

        try:
            return asyncio.run(found())
        except DragomanError as error:
            raise self.failed(error) from error

    def refused(self, status: int, answer: Json, *, agent: str | None = None) -> Fault:
        """The fault that an answer means which is no success."""
        fault = fault_of(read(status, answer), agent=agent)
        fault.next = f"dragoman doctor {self.url}"
        return fault

    def unreachable(self, kind: str, *, sent: bool) -> Fault:
        """The fault that there is no answer, and why."""
        message = f"{self.url} did not answer ({kind})"
        return Fault(message, next=f"dragoman doctor {self.url}", exit_code=Exit.UNREACHABLE, code="UNREACHABLE")

    def failed(self, error: DragomanError) -> Fault:
        """The fault that an error of the client means."""
        said = error.message[:1].lower() + error.message[1:].rstrip(".")
        if isinstance(error, AgentUnavailable):
            next_step = f"dragoman doctor {self.url}"
            return Fault(said, next=next_step, exit_code=Exit.UNREACHABLE, code=error.code, retryable=True)
        fault = fault_of(Refusal(error.http_status, error.code, said, dict(error.details), error.retryable))
        fault.next = f"dragoman doctor {self.url}"
        return fault


async def _headline(output: Output, url: str, _http: "HubHttp", call_id: str) -> None:
    output.note(f"{url} · {call_id}")
