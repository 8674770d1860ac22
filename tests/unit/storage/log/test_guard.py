"""A log reports failures of its disk to its owner (S-REC-11)."""

import errno
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import CorruptBatch
from storage.errors import OutOfResources, StorageError
from storage.log.guard import DiskGuard

DIRECTORY = "/logs/t-0"


class Owner:
    """The guard of one log, with what was reported of it."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, OSError]] = []
        self.room_made = 0
        self.store: Any = SimpleNamespace(directory=DIRECTORY, generation=0, openings=self)
        self.guard = DiskGuard(self.store)
        self.guard.failed = lambda directory, error: self.reported.append((directory, error))

    def make_room(self) -> None:
        self.room_made += 1


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture(params=["reading", "writing"])
def within(request: pytest.FixtureRequest, owner: Owner) -> Any:
    """`guard.reading` or `guard.writing`."""
    return getattr(owner.guard, request.param)


def test_a_disk_that_fails_is_reported_and_refuses_the_call(owner: Owner, within: Any) -> None:
    broken = OSError(errno.EIO, "Input/output error")
    with pytest.raises(StorageError) as caught, within():
        raise broken
    assert (caught.value.path, caught.value.cause) == (DIRECTORY, broken)
    assert owner.reported == [(DIRECTORY, broken)]
    assert owner.room_made == 0


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_shortage_makes_room_and_is_no_failed_disk(
    owner: Owner, within: Any, number: int
) -> None:
    with pytest.raises(OutOfResources), within():
        raise OSError(number, "none left")
    assert owner.reported == []
    assert owner.room_made == 1


def test_a_failure_is_raised_where_nobody_listens(owner: Owner, within: Any) -> None:
    owner.guard.failed = owner.store.openings = None
    for number, kind in ((errno.EIO, StorageError), (errno.EMFILE, OutOfResources)):
        with pytest.raises(kind), within():
            raise OSError(number, "x")


def test_what_goes_well_is_not_reported(owner: Owner, within: Any) -> None:
    with within():
        pass
    assert owner.reported == []


def test_damaged_batches_are_the_datas_fault(owner: Owner) -> None:
    with pytest.raises(KafkaError) as caught, owner.guard.reading():
        raise CorruptBatch("a wrong size")
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert owner.reported == []


def test_a_log_out_of_service_is_neither_read_nor_flushed(owner: Owner) -> None:
    owner.guard.check()
    cause = OSError(errno.EIO, "gone")
    owner.guard.close(cause)
    assert owner.store.generation == 1, "results of running jobs are dropped"
    with pytest.raises(StorageError) as caught:
        owner.guard.check()
    assert caught.value.cause is cause
    with pytest.raises(StorageError), owner.guard.reading():
        pytest.fail("it was read")
