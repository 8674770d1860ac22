"""Jobs here and now, watched, and in generators."""

from collections.abc import Callable
from typing import Any

import pytest

from storage.errors import StorageError
from storage.jobs import Job, Steps, Watched, perform, perform_all


class Noting:
    """A job of several steps that notes what is called."""

    def __init__(
        self, notes: list[str], name: str, steps: int = 1, error: Exception | None = None
    ) -> None:
        self.notes = notes
        self.name = name
        self.steps = steps
        self.error = error

    def run(self) -> str:
        self.notes.append(f"run {self.name}")
        return self.name

    def complete(self, result: str, /) -> Job[Any] | None:
        self.notes.append(f"complete {result}")
        if self.steps > 1:
            return Noting(self.notes, self.name + "'", self.steps - 1, self.error)
        if self.error is not None:
            raise self.error
        return None


def test_a_job_is_followed_to_its_last_step() -> None:
    notes: list[str] = []
    perform(Noting(notes, "a", 2))
    perform(None)
    assert notes == ["run a", "complete a", "run a'", "complete a'"]


def test_a_watched_job_tells_its_end_once() -> None:
    notes: list[str] = []
    perform(Watched(Noting(notes, "a", 2), done=lambda: notes.append("done")))
    assert notes == ["run a", "complete a", "run a'", "complete a'", "done"]


def test_a_watched_job_keeps_a_disks_failure_to_itself_and_no_other() -> None:
    notes: list[str] = []

    def watched(error: Exception, failed: Callable[[StorageError], None] | None) -> Watched:
        job = Noting(notes, "a", 2, error)
        return Watched(job, done=lambda: notes.append("done"), failed=failed)

    perform(watched(StorageError("/d", "gone"), lambda error: notes.append("failed")))
    assert notes[-1] == "failed"
    with pytest.raises(StorageError):
        perform(watched(StorageError("/d", "gone"), None))
    with pytest.raises(ZeroDivisionError):
        perform(watched(ZeroDivisionError(), lambda error: notes.append("failed")))
    assert notes.count("failed") == 1
    assert "done" not in notes


def test_steps_are_jobs_groups_of_jobs_and_turns() -> None:
    notes: list[str] = []

    def steps() -> Steps:
        yield Noting(notes, "a")
        yield None
        yield [Noting(notes, "b"), Noting(notes, "c")]
        notes.append("end")
        return 7

    assert perform_all(steps()) == 7
    assert [note for note in notes if not note.startswith("complete")] == [
        *("run a", "run b", "run c", "end"),
    ]


def test_a_step_that_fails_closes_the_generator() -> None:
    notes: list[str] = []

    def steps() -> Steps:
        try:
            yield Noting(notes, "a", error=StorageError("/d", "gone"))
        finally:
            notes.append("closed")
        return None

    with pytest.raises(StorageError):
        perform_all(steps())
    assert notes[-1] == "closed"
