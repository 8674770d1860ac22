"""Small files replaced in steps: the newest content wins, a crash leaves a whole one."""

import errno
import itertools
from random import Random

import pytest

from storage.leftovers import remove_leftovers
from storage.paths import is_temporary
from storage.replaced_file import ReplacedFile, Replacement
from storage.waits import at_once
from tests.support.calls import Calls
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem

PATH = "/d/recovery-point-offset-checkpoint"


class Replaced:
    """A file that holds `old`; `told` is how its replacements have ended."""

    def __init__(self, fs: FaultyFileSystem | None = None) -> None:
        self.fs = fs or FaultyFileSystem()
        self.fs.write_bytes(PATH, b"old")
        self.file = ReplacedFile(self.fs, PATH, Random(1))
        self.told: list[tuple[bytes, OSError | None]] = []

    def begin(self, content: bytes) -> Calls[None]:
        return Calls(self._replace(self.file.begin(lambda: content), content))

    async def _replace(self, replacement: Replacement, content: bytes) -> None:
        error: OSError | None = None
        try:
            await replacement.finish()
        except OSError as failure:
            error = failure
        self.told.append((content, error))

    def write_now(self, content: bytes) -> None:
        at_once(self.file.begin(lambda: content).finish())

    @property
    def content(self) -> bytes:
        return self.fs.read_bytes(PATH)

    @property
    def left(self) -> list[str]:
        """Temporary files."""
        return [name for name in self.fs.list_dir("/d") if is_temporary(name)]


def test_the_content_is_durable_when_it_is_finished() -> None:
    replaced = Replaced()
    replaced.begin(b"new").finish()
    assert replaced.told == [(b"new", None)]
    assert replaced.fs.crash(forget_names=True).read_bytes(PATH) == b"new"
    assert replaced.left == []


def test_content_is_made_where_the_file_is_written() -> None:
    replaced = Replaced()
    made: list[str] = []

    def content() -> bytes:
        made.append("now")
        return b"new"

    replacement = Calls(replaced.file.begin(content).finish())
    assert made == []
    replacement.run()
    assert made == ["now"]


ORDERS = [
    order
    for order in map("".join, itertools.permutations("abcABC"))
    if all(order.index(name) < order.index(name.upper()) for name in "abc")
]


@pytest.mark.parametrize("order", ORDERS)
def test_what_was_begun_last_wins_in_whatever_order_the_disk_works(order: str) -> None:
    """a, b, c: the writes, in the order they were begun; A, B, C: what follows each."""
    replaced = Replaced()
    begun = {name: replaced.begin(name.encode()) for name in "abc"}
    latest = "old"
    for step in order:
        if step in begun:
            begun[step].run()
        else:
            name = step.lower()
            begun[name].complete()
            latest = name if latest == "old" else max(latest, name)
            assert replaced.content == latest.encode()
            begun[name].finish()
    assert [content for content, _ in replaced.told] == [
        step.lower().encode() for step in order if step.isupper()
    ]
    assert replaced.fs.crash(forget_names=True).read_bytes(PATH) == b"c"
    assert replaced.left == []


def test_a_write_at_once_supersedes_what_is_under_way() -> None:
    replaced = Replaced()
    slow = replaced.begin(b"slow")
    slow.run()
    replaced.write_now(b"quick")
    slow.complete()
    slow.finish()
    assert replaced.content == b"quick"
    assert replaced.told == [(b"slow", None)]
    assert replaced.left == []


@pytest.mark.parametrize("operation", ["open", "pwrite", "fsync", "rename", "fsync_dir"])
def test_a_failure_is_told_and_leaves_a_whole_file(operation: str) -> None:
    replaced = Replaced()
    replaced.fs.fail(operation, errno=errno.ENOSPC)
    replaced.begin(b"new").finish()
    ((_, error),) = replaced.told
    assert error is not None
    assert error.errno == errno.ENOSPC
    assert replaced.content == (b"new" if operation == "fsync_dir" else b"old")
    assert replaced.left == []
    replaced.fs.fail(operation, errno=errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        replaced.write_now(b"newer")
    replaced.write_now(b"newest")
    assert replaced.content == b"newest"


def test_at_every_moment_of_a_crash_the_file_is_whole_and_what_is_left_is_removed() -> None:
    replaced = Replaced(RecordingFileSystem(Replaced().fs))
    fs = replaced.fs
    assert isinstance(fs, RecordingFileSystem)
    before = fs.now
    first, second = replaced.begin(b"first"), replaced.begin(b"second")
    first.run()
    second.run()
    second.complete()
    first.complete()
    done = fs.now
    second.finish()
    first.finish()
    loss = PowerLoss(fs)
    for at in range(before, loss.last + 1):
        for state in (loss.kept(at), loss.names(at), loss.lost(at)):
            assert state.read_bytes(PATH) in (b"old", b"second")
            remove_leftovers(state, "/d")
            assert state.list_dir("/d") == ["recovery-point-offset-checkpoint"]
    assert loss.lost(done).read_bytes(PATH) == b"old"
    assert loss.lost(loss.last).read_bytes(PATH) == b"second"


def test_what_is_given_up_is_removed_where_its_directory_is_now() -> None:
    replaced = Replaced()
    replacement = replaced.file.begin(lambda: b"new")
    replacement.write()
    replaced.fs.rename("/d", "/e")
    replaced.file.path = PATH.replace("/d/", "/e/")
    replacement.discard()
    assert replaced.fs.list_dir("/e") == ["recovery-point-offset-checkpoint"]
