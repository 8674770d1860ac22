"""A small file whose content is replaced as a whole, while the event loop is free.

    replacement = file.begin(content)     the newest content of the file from now on
    await replacement.finish()            writes it; durable afterwards

Guarantees
  1. After a crash the file holds one content, whole; after `finish` no older one than this.
  2. Content begun earlier never replaces content begun later, however long the disk took. So
     content may be written at once while other content of the same file is on its way.
  3. No two replacements share a temporary file, not even those of a partition directory and of its
     successor of the same name: the names are random (decision 18). One that a crash has left does
     no harm; the next start removes it (`storage.leftovers`, `storage.log_loading`).

Belongs to the thread that owns the file, but for `Replacement.write`.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random

from storage.filesystem import FileSystem
from storage.paths import file_name, join, parent_dir, temporary_file
from storage.waits import call

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
        """Take `content` for newer than all that was begun before, and return its replacement."""
        self._begun += 1
        temporary = temporary_file(self.path, self._random.getrandbits(64))
        return Replacement(self, self._begun, temporary, content)


class Replacement:
    """One content on its way into a file. `write`, `install` and `sync` are the parts of `finish`,
    for who has more to do between them."""

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

    async def finish(self) -> None:
        """Replace the content, unless newer content did; durable on return. Raises OSError."""
        try:
            await call(self.write)
            self.install()
        except OSError:
            self.discard()
            raise
        await self.sync()

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
        """Rename it to the file's path, or discard it if the file holds newer. Raises OSError.

        On the loop.
        """
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

    async def sync(self) -> None:
        """Make the file's name durable, after `install`. Raises OSError."""
        await call(self._fs.fsync_dir, parent_dir(self._file.path))
