"""Runs the log manager's background tasks in this thread."""

from storage.log_manager import LogManager
from storage.waits import Work, at_once


def begin_task(manager: LogManager, name: str) -> Work[int | None]:
    """Return a run of the task of that name (`storage.log_tasks`)."""
    (task,) = [task for task in manager.tasks() if task.name == name]
    return task.run()


def run_task(manager: LogManager, name: str) -> int | None:
    """Run the task of that name once; return its result."""
    return at_once(begin_task(manager, name))
