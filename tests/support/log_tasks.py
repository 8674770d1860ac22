"""Runs the log manager's background tasks at once, in this thread."""

from storage.jobs import perform_all
from storage.log_manager import LogManager


def run_task(manager: LogManager, name: str) -> int | None:
    """Run the task of that name (`storage.log_tasks`) once; return its result."""
    (task,) = [task for task in manager.tasks() if task.name == name]
    return perform_all(task.run())
