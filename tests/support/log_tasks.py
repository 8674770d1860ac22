"""Runs the log manager's background tasks at once, in this thread."""

from storage.log_manager import LogManager
from storage.waits import at_once


def run_task(manager: LogManager, name: str) -> int | None:
    """Run the task of that name (`storage.log_tasks`) once; return its result."""
    (task,) = [task for task in manager.tasks() if task.name == name]
    return at_once(task.run())
