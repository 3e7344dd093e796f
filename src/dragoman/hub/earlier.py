"""What a call has to do with earlier ones: the task it continues, those it names, the conversation it belongs to."""

from typing import Final

import msgspec

from dragoman.dialects.uuids import uuid_of
from dragoman.hub.tasks import TaskBook
from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.content import REFERENCED, Message
from dragoman.model.errors import BadParams, TaskFinished, TaskNotFound
from dragoman.model.events import Remote
from dragoman.model.json import Json
from dragoman.model.lifecycle import artifacts_of
from dragoman.model.objects import plain_part
from dragoman.model.operations import SendTask
from dragoman.model.task import Task
from dragoman.ports.store import Scope, Tasks

MOST_REFERENCES: Final = 16


class Earlier:
    """Looks back."""

    def __init__(self, *, store: Tasks, tasks: TaskBook) -> None:
        self._store = store
        self._tasks = tasks

    async def continued(self, caller: Caller, asked: SendTask) -> Task:
        """The open task that a message goes into. Raises TaskNotFound, TaskFinished, BadParams."""
        task_id = asked.continues or ""
        task = await self._tasks.load(caller, task_id)
        if asked.context_id is not None and asked.context_id != task.context_id:
            raise BadParams(f"{task_id} belongs to another context.", call_id=task_id)
        if task.ended:
            raise TaskFinished(
                f"{task_id} is finished and takes no more messages.", call_id=task_id, state=task.state.value
            )
        return task

    async def alias_continued(self, caller: Caller, asked: SendTask) -> SendTask:
        """The request, as one that continues, if the caller's own name for its task is known already."""
        if asked.alias is None or asked.key_decides:
            return asked
        known = await self._tasks.by_alias(caller, asked.sender, asked.alias)
        return asked if known is None else msgspec.structs.replace(asked, continues=known.id)

    async def with_references(self, caller: Caller, message: Message, agent: Agent) -> Message:
        """The message with the tasks it names as the target knows them, and with what they made.

        Unknown and foreign ones stay as they are: they may be the target's own.
        """
        named: list[str] = []
        made = dict[str, Json]()
        for task_id in message.references[:MOST_REFERENCES]:
            try:
                task = await self._tasks.load(caller, task_id)
            except TaskNotFound:
                named.append(task_id)
                continue
            same = task.agent_id == agent.id and task.remote is not None and task.remote.task_id is not None
            named.append(task.remote.task_id if same and task.remote and task.remote.task_id else task_id)
            made[named[-1]] = [
                {"artifactId": each.id, "parts": [plain_part(part) for part in each.parts]}
                for each in artifacts_of(task)
            ]
        metadata = {**(message.metadata or {}), REFERENCED: made} if made else message.metadata
        return msgspec.structs.replace(message, references=tuple(named), metadata=metadata)

    async def remote_context(self, caller: Caller, context_id: str, agent: Agent) -> Remote | None:
        """What the target is to call a conversation, where that is not its caller's own name for it.

        The target's name, where it gave one. Whoever names a conversation as another did before has one of its own
        nevertheless: the target must not take the two for one.
        """
        last = await self._store.last_turn(Scope(tenant=caller.tenant, principal=caller.id), context_id, agent.id)
        if last is not None and last.remote is not None and last.remote.context_id is not None:
            return Remote(context_id=last.remote.context_id)
        owner = await self._store.context_owner(caller.tenant, context_id)
        if owner is None or owner == caller.id:
            return None
        return Remote(context_id=uuid_of(caller.tenant, caller.id, context_id))
