"""Bugs in how workflows are carried on."""

import secrets

import msgspec

from dragoman.hub import workflow
from dragoman.hub.step_calls import Stage
from dragoman.hub.workflow import Workflows
from dragoman.model.call import Caller
from dragoman.model.errors import DragomanError
from dragoman.model.task import Task
from dragoman.ports.store import Job, Store
from tests.support.planting import put_in_place


def workflow_job_finished_early(_: int) -> None:
    """The job of a workflow ends before its steps have run: the next one is opened outside of any commit."""
    carry, build = Workflows.carry, Workflows.__init__
    stores: list[Store] = []

    def built(self: Workflows, *, store: Store, **parts: object) -> None:
        stores.append(store)
        build(self, store=store, **parts)  # pyright: ignore[reportArgumentType] - handed on as they came

    async def forgetful(self: Workflows, job: Job) -> None:
        await stores[0].finish(job)
        await carry(self, job)

    put_in_place(Workflows, "__init__", built)
    put_in_place(Workflows, "carry", forgetful)


def steps_named_anew(_: int) -> None:
    """The calls of a workflow get other names in each life of the hub: none is found again."""
    plan, life = workflow.plan, secrets.token_hex(4)

    def renamed(first: Task) -> tuple[Stage, ...]:
        return tuple(
            msgspec.structs.replace(
                stage,
                calls=tuple(msgspec.structs.replace(call, call_id=f"{call.call_id}-{life}") for call in stage.calls),
            )
            for stage in plan(first)
        )

    put_in_place(workflow, "plan", renamed)


def steps_not_stopped(_: int) -> None:
    """A workflow that has ended leaves the calls of its steps alone, as if the hub had died at that moment."""

    async def left(_self: Workflows, _caller: Caller, _task: Task) -> None:
        return

    put_in_place(Workflows, "_stop", left)


def steps_refused_for_good(_: int) -> None:
    """A step whose agent takes it only later fails, and with it the workflow."""

    def never(_refusal: DragomanError, _refused: int) -> None:
        return None

    put_in_place(workflow, "put_off_s", never)
