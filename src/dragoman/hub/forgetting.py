"""Forgetting: what people and agents wrote in calls is removed; that the calls were made stays.

A call that is open is cancelled first. Who made a call may have its content forgotten, an administrator that of a whole
conversation or caller. Does not reach backups.
"""

import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.hub.acts import act_of
from dragoman.hub.authorize import lacking
from dragoman.hub.cancel import Canceller
from dragoman.hub.key_ring import require_admin
from dragoman.hub.tasks import TaskBook, scope_of
from dragoman.model.call import Caller
from dragoman.model.errors import DragomanError, TaskNotFound
from dragoman.model.operations import ListTasks
from dragoman.model.task import Task
from dragoman.ports.store import Scope, Store
from dragoman.security.scopes import CALL

AT_ONCE: Final = 100
REASON: Final = "its content is to be forgotten"


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls were emptied and how many of them were cancelled for it; `cursor`: there are more."""

    forgotten: int
    cancelled: int
    cursor: str | None = None


class Forgetter:
    """Removes what was written in calls."""

    def __init__(self, *, store: Store, tasks: TaskBook, canceller: Canceller) -> None:
        self._store = store
        self._tasks = tasks
        self._canceller = canceller

    async def one(self, caller: Caller, task_id: str, request_id: str) -> Forgotten:
        """Forget one of the caller's calls. Raises NotAuthorized, TaskNotFound."""
        if CALL not in caller.scopes:
            raise lacking(caller, (CALL,))
        task = await self._tasks.load(caller, task_id)
        return await self._forget(caller, scope_of(caller), [task], f"call {task.id}", request_id)

    async def many(
        self, caller: Caller, asked: ListTasks, object: str, request_id: str, *, all_pages: bool
    ) -> Forgotten:
        """Forget the calls of a list: one page, or all of it. Raises NotAuthorized, BadParams."""
        require_admin(caller)
        scope = Scope(tenant=caller.tenant, principal=None)
        forgotten = cancelled = 0
        while True:
            page = await self._store.list_tasks(scope, asked)
            done = await self._forget(caller, scope, page.tasks, object, request_id)
            forgotten, cancelled = forgotten + done.forgotten, cancelled + done.cancelled
            if page.cursor is None or not all_pages:
                return Forgotten(forgotten=forgotten, cancelled=cancelled, cursor=page.cursor)
            asked = msgspec.structs.replace(asked, cursor=page.cursor)

    async def _forget(
        self, caller: Caller, scope: Scope, tasks: Sequence[Task], object: str, request_id: str
    ) -> Forgotten:
        cancelled = 0
        for task in tasks:
            if not task.ended:
                cancelled += 1
                with contextlib.suppress(DragomanError):  # It has ended meanwhile, or its agent cannot be told.
                    await self._canceller.cancel(caller, task, REASON)
        if not tasks:
            return Forgotten(forgotten=0, cancelled=0)
        act = act_of(caller, "calls.forgotten", object, request_id)
        done = await self._store.forget(scope, [task.id for task in tasks], act)
        if not done and len(tasks) == 1:
            raise TaskNotFound(f"There is no call or task {tasks[0].id!r}.", call_id=tasks[0].id)
        return Forgotten(forgotten=len(done), cancelled=cancelled)
