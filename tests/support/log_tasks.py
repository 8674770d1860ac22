"""The log manager's background work, here and now."""

from storage.jobs import perform_all
from storage.log_manager import LogManager


def run_task(manager: LogManager, name: str) -> int | None:
    """Run the task of that name (`storage.log_tasks`) once; what it returns."""
    (task,) = [task for task in manager.tasks() if task.name == name]
    return perform_all(task.run())
