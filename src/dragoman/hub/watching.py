"""Who is told of a task: its callbacks, set, shown and taken away by the task's own caller.

Each dialect sees the callbacks that were set in its own words; they are told in those words, too.
"""

from typing import Final, assert_never

from dragoman.hub.registry import Registry
from dragoman.hub.tasks import TaskBook
from dragoman.model.answers import Answer, CallbackList, Done
from dragoman.model.call import Caller
from dragoman.model.callbacks import Callback
from dragoman.model.errors import BadParams, CallbackNotFound, TaskNotFound
from dragoman.model.operations import DeleteCallback, GetCallback, ListCallbacks, SetCallback
from dragoman.model.task import Task

MOST: Final = 16


class Watching:
    """Answers what is asked of a task's callbacks."""

    def __init__(self, *, registry: Registry, tasks: TaskBook) -> None:
        self._registry = registry
        self._tasks = tasks

    async def answer(self, caller: Caller, asked: SetCallback | GetCallback | ListCallbacks | DeleteCallback) -> Answer:
        """The answer. Raises TaskNotFound, CallbackNotFound, BadParams for an address that may not be called."""
        task = await self._tasks.load(caller, asked.task_id)
        if asked.agent is not None and (await self._registry.resolve(caller, asked.agent)).id != task.agent_id:
            raise TaskNotFound(f"There is no call or task {task.id!r}.", call_id=task.id)
        match asked:
            case SetCallback(callback=callback):
                return await self._set(task, callback)
            case GetCallback(callback_id=callback_id, dialect=dialect):
                return _found(task, callback_id, dialect)
            case ListCallbacks(dialect=dialect):
                return CallbackList(callbacks=tuple(each for each in task.callbacks if each.dialect == dialect))
            case DeleteCallback(callback_id=callback_id, dialect=dialect):
                return await self._delete(task, callback_id, dialect)
            case _ as never:
                assert_never(never)

    async def _set(self, task: Task, callback: Callback) -> Callback:
        if callback.url is not None:
            await self._registry.may_dial(callback.url)

        def change(callbacks: tuple[Callback, ...]) -> tuple[Callback, ...]:
            others = tuple(each for each in callbacks if each.id != callback.id)
            if len(others) >= MOST:
                raise BadParams(f"{task.id} has {MOST} callbacks; that is the most.", call_id=task.id)
            return (*others, callback)

        await self._tasks.watch(task, change)
        return callback

    async def _delete(self, task: Task, callback_id: str, dialect: str) -> Done:
        """Taking away what is not there is fine: it is gone."""
        if any(_is(each, callback_id, dialect) for each in task.callbacks):
            await self._tasks.watch(
                task, lambda callbacks: tuple(each for each in callbacks if not _is(each, callback_id, dialect))
            )
        return Done()


def _found(task: Task, callback_id: str | None, dialect: str) -> Callback:
    for callback in task.callbacks:
        if callback.dialect == dialect and callback_id in (None, callback.id):
            return callback
    raise CallbackNotFound(f"{task.id} has no such callback.", call_id=task.id)


def _is(callback: Callback, callback_id: str, dialect: str) -> bool:
    return callback.id == callback_id and callback.dialect == dialect
