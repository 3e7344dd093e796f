"""`testing.check(agent)`: is this agent fit to be called? Its card, schemas and examples, and its examples for real.

Each example of a skill that is an input object is run: through a hub that has the agent, and through a second one that
knows it only by each of the dialects in turn. So every dialect's words are spoken on both sides. Without an example, or
`inputs=`, a skill is not run: nobody else knows what it may do.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.model.agent import AgentCard, Skill
from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.serve.serve import require_server

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent

GOOD: Final = "✔"
NOTE: Final = "!"
FAULT: Final = "✘"
TIMEOUT_MS: Final = 30_000
SHOWN: Final = 200


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at, and what was found."""

    mark: str
    subject: str
    said: str

    def __str__(self) -> str:
        return f" {self.mark} {self.subject.ljust(11)} {self.said}"


class Run(msgspec.Struct, frozen=True, eq=False):
    """One skill and what it is given."""

    skill: str
    input: JsonObject


class Report(msgspec.Struct, frozen=True):
    """What a check found; `str` of it is for people."""

    agent: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no fault; notes are none."""
        return not self.faults

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What is wrong."""
        return tuple(each for each in self.findings if each.mark == FAULT)

    def __str__(self) -> str:
        count = len(self.faults)
        verdict = "fit to be called" if self.ok else f"{count} fault{'' if count == 1 else 's'}"
        return "\n".join((self.agent, *map(str, self.findings), verdict))


async def check(agent: "Agent", *, inputs: Mapping[str, Sequence[JsonObject]] | None = None) -> Report:
    """Look at everything an agent publishes, and run its examples (and `inputs`, by skill) through every dialect.

    Raises MissingExtra without the server.
    """
    require_server("testing.check()")
    findings = [*_card(agent), *_skills(agent)]
    runs = {name: [*_objects(skill.examples), *(inputs or {}).get(name, ())] for name, skill in agent.skills.items()}
    for name in [name for name, given in runs.items() if not given]:
        findings.append(Finding(NOTE, name, "not run: give it examples=[…], or check(agent, inputs={…})"))
    if any(runs.values()) and not any(each.mark == FAULT for each in findings):
        findings += [each async for each in _round_trips(agent, runs)]
    return Report(f"{agent.name} ({agent.id})", tuple(findings))


def _card(agent: "Agent") -> Iterator[Finding]:
    written = 0
    for slug in DIALECTS:
        try:
            agent.card(slug)
            written += 1
        except (DragomanError, ValueError) as error:
            yield Finding(FAULT, "card", f"{slug}: {error}")
    yield Finding(GOOD, "card", f"in {written} dialects")
    if not agent.description and not agent.instructions:
        yield Finding(NOTE, "card", "no description: callers choose agents by it")
    if not agent.skills:
        yield Finding(
            FAULT, "card", "no skill: publish a function with @agent.skill, or a handler with @agent.on_message"
        )


def _skills(agent: "Agent") -> Iterator[Finding]:
    # Compiling schemas needs a package of the hub's.
    from dragoman.hub.validate import compile_skill

    card = AgentCard(id=agent.id, name=agent.name, description="", version=agent.version)
    for name, skill in agent.skills.items():
        if not skill.description:
            yield Finding(NOTE, name, "no description: write a docstring")
        shown = Skill(id=name, name=name, input_schema=skill.input_schema, output_schema=skill.output_schema)
        try:
            compiled = compile_skill(card, shown)
        except DragomanError as error:
            yield Finding(FAULT, name, error.message)
            continue
        yield Finding(GOOD, name, "its schemas can be used")
        for example in _objects(skill.examples):
            wrong = [] if compiled.input is None else compiled.input(example)
            if wrong:
                said = "; ".join(f"{each['path']}: {each['message']}" for each in wrong)
                yield Finding(FAULT, name, f"the example {_short(example)} does not fit its schema: {said}")


async def _round_trips(agent: "Agent", runs: Mapping[str, Sequence[JsonObject]]) -> AsyncIterator[Finding]:
    """Each run through the agent's own hub twice, then through another that knows it by one dialect."""
    from dragoman.sdk.testing.hub_in_process import hub_in_process

    async with hub_in_process() as own, hub_in_process() as other, own.client() as near, other.client() as far:
        await own.add(agent)
        expected: dict[Run, Json] = {}
        for run in [Run(name, given) for name, several in runs.items() for given in several]:
            try:
                first, second = [dict(await _called(near, agent.id, run)) for _ in range(2)]
            except DragomanError as error:
                yield Finding(FAULT, run.skill, f"fails on {_short(run.input)}: {error}")
            else:
                # What differs from one call to the next cannot be compared.
                expected[run] = first if first == second else None
        for slug in DIALECTS if expected else ():
            known = f"{agent.id}-by-{slug}"
            base = f"{own.url}/agents/{agent.id}/{slug}/"
            try:
                await far.register(base, id=known, dialect=slug)
                wrong = [each async for each in _wrong(far, known, expected)]
            except DragomanError as error:
                wrong = [str(error)]
            if wrong:
                yield Finding(FAULT, slug, "; ".join(wrong))
            else:
                yield Finding(GOOD, slug, f"{len(expected)} of {len(expected)} answered alike")


async def _wrong(client: A2AClient, agent_id: str, expected: Mapping["Run", Json]) -> AsyncIterator[str]:
    for run, answer in expected.items():
        try:
            got = dict(await _called(client, agent_id, run))
        except DragomanError as error:
            yield f"{run.skill} fails: {error}"
        else:
            if answer is not None and got != answer:
                yield f"{run.skill} answers {_short(got)}, not {_short(answer)}"


async def _called(client: A2AClient, agent_id: str, run: "Run") -> Mapping[str, Json]:
    return await client.call(agent_id, run.skill, run.input, timeout_ms=TIMEOUT_MS)


def _objects(examples: Sequence[Json]) -> list[JsonObject]:
    """Examples that are inputs; others are words for people."""
    return [example for example in examples if is_object(example)]


def _short(value: Json) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
