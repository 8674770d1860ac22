"""A small file whose content is replaced as a whole, in steps that leave the event loop free.

    replacement = file.begin(content)     loop: the newest content of the file from now on
    replacement.write()                   anywhere: writes and syncs a temporary file of its own
    replacement.install()                 loop: gives it the file's name, unless newer content did
    …sync the directory…                  anywhere: only afterwards is the new content durable

`ReplaceJob` does all steps as a job, `write_now` does them here and now.

What holds
  1. After a crash the file holds one content, whole; after the last step no older one than this.
  2. Content begun earlier never replaces content begun later, however long the disk took. So
     `write_now` may be called while jobs of the same file run.
  3. No two replacements share a temporary file, not even those of a partition directory and of its
     successor of the same name: the names are random (decision 18). One that a crash has left does
     no harm; the next start removes it (`storage.leftovers`, `storage.log_loading`).

Belongs to the thread that owns the file, but for `Replacement.write`.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from storage.filesystem import FileSystem
from storage.jobs import Job, perform
from storage.paths import file_name, join, parent_dir, temporary_file
from storage.syncing import Done, SyncDirectory

Content = Callable[[], bytes]
"""Makes the bytes, from values of its own: it is called in the thread that writes the file."""


class ReplacedFile:
    """A small file, replaced as a whole. Its owner sets `path` when the directory is renamed."""

    __slots__ = ("_begun", "_fs", "_in_place", "_random", "path")

    def __init__(self, fs: FileSystem, path: str, random: Random) -> None:
        self._fs = fs
        self._random = random
        self.path = path
        self._begun = 0
        self._in_place = 0
        """The number of the content that the file holds; 0 before the first."""

    def begin(self, content: Content) -> "Replacement":
        """Begin a replacement: the first step."""
        self._begun += 1
        temporary = temporary_file(self.path, self._random.getrandbits(64))
        return Replacement(self, self._begun, temporary, content)

    def write_now(self, content: Content) -> None:
        """All steps; durable when this returns. Raises OSError."""

        def done(error: OSError | None) -> None:
            if error is not None:
                raise error

        perform(ReplaceJob(self.begin(content), done))


class Replacement:
    """One content on its way into a file, in the steps of the module's example."""

    __slots__ = ("_content", "_file", "_fs", "_number", "_temporary")

    def __init__(self, file: ReplacedFile, number: int, temporary: str, content: Content) -> None:
        self._file = file
        self._fs = file._fs
        self._number = number
        self._temporary = temporary
        self._content = content

    @property
    def is_in_place(self) -> bool:
        """Whether the file holds this content."""
        return self._file._in_place == self._number

    def write(self) -> None:
        """Write and sync the temporary file. In any thread; may block. Raises OSError."""
        data = self._content()
        file = self._fs.open(self._temporary, create=True)
        try:
            file.truncate(0)
            file.pwrite(data, 0)
            file.fsync()
        finally:
            file.close()

    def install(self) -> None:
        """Rename it to the file's path, or discard it if the file holds newer. Raises OSError."""
        if self._file._in_place > self._number:
            self.discard()
            return
        self._fs.rename(self._temporary, self._file.path)
        self._file._in_place = self._number

    def discard(self) -> None:
        """Remove the temporary file, also after its directory was renamed; ignores disk errors."""
        directory = parent_dir(self._file.path)
        with suppress(OSError):
            self._fs.unlink(join(directory, file_name(self._temporary)), missing_ok=True)

    def sync_job(self, done: Done) -> SyncDirectory:
        """The job of the last step: syncs the directory."""
        return SyncDirectory(self._fs, parent_dir(self._file.path), done)


class ReplaceJob:
    """Job: all steps of a replacement. `done` gets the error, or None when it is durable."""

    __slots__ = ("_done", "_replacement")

    def __init__(self, replacement: Replacement, done: Done) -> None:
        self._replacement = replacement
        self._done = done

    def run(self) -> OSError | None:
        """See `storage.jobs`."""
        try:
            self._replacement.write()
        except OSError as error:
            return error
        return None

    def complete(self, error: OSError | None, /) -> Job[Any] | None:
        """See `storage.jobs`. Raises what `done` raises."""
        if error is None:
            try:
                self._replacement.install()
            except OSError as failure:
                error = failure
        if error is not None:
            self._replacement.discard()
            return self._done(error)
        return self._replacement.sync_job(self._done)
