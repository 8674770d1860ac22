"""Files on any file system of Hadoop, through the session's JVM: lists, renames, small texts."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    path: str
    name: str
    is_directory: bool
    size: int


class Files:
    """The file systems of a session. Errors are Py4J's, with Hadoop's exception in them."""

    def __init__(self, session: Any) -> None:
        self._jvm = session._jvm
        self._configuration = session._jsparkSession.sessionState().newHadoopConf()

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        where = self._path(path)
        return bool(self._system(where).exists(where))

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        where = self._path(path)
        return int(self._system(where).getFileStatus(where).getLen())

    def entries(self, directory: str) -> list[Entry]:
        """Return a directory's entries, sorted by name; none if it does not exist."""
        where = self._path(directory)
        system = self._system(where)
        if not system.exists(where):
            return []
        found = []
        for status in system.listStatus(where):
            name = status.getPath().getName()
            found.append(Entry(f"{directory}/{name}", name, status.isDirectory(), status.getLen()))
        return sorted(found, key=lambda entry: entry.name)

    def files_below(self, directory: str) -> list[Entry]:
        """Return all files at any depth, without names that begin with `_` or `.`."""
        found: list[Entry] = []
        for entry in self.entries(directory):
            if entry.name.startswith(("_", ".")):
                continue
            found += self.files_below(entry.path) if entry.is_directory else [entry]
        return found

    def rename(self, source: str, target: str) -> None:
        """Rename a file, making the target's directory. Raises OSError if that fails."""
        from_, to = self._path(source), self._path(target)
        system = self._system(to)
        system.mkdirs(to.getParent())
        if not system.rename(from_, to):
            raise OSError(f"cannot rename {source} to {target}")

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content; it need not exist."""
        where = self._path(path)
        self._system(where).delete(where, True)

    def read(self, path: str) -> str | None:
        """Return the text of a small file; None if it does not exist."""
        where = self._path(path)
        system = self._system(where)
        if not system.exists(where):
            return None
        stream = system.open(where)
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
        finally:
            stream.close()
        return bytes(text).decode()

    def write(self, path: str, text: str) -> None:
        """Replace a small text file as a whole."""
        aside = self._path(f"{path}.tmp")
        system = self._system(aside)
        system.mkdirs(aside.getParent())
        stream = system.create(aside, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        target = self._path(path)
        if not system.rename(aside, target):
            system.delete(target, False)  # where a rename does not replace
            if not system.rename(aside, target):
                raise OSError(f"cannot write {path}")

    def offsets_in(self, path: str) -> tuple[int, int, int]:
        """Return (records, least, greatest) of a Parquet file's `offset`, from its footer."""
        hadoop = self._jvm.org.apache.parquet.hadoop
        source = hadoop.util.HadoopInputFile.fromPath(self._path(path), self._configuration)
        reader = hadoop.ParquetFileReader.open(source)
        try:
            records, least, greatest = 0, 2**63, -1
            for block in reader.getFooter().getBlocks():
                records += block.getRowCount()
                for column in block.getColumns():
                    if column.getPath().toDotString() == "offset":
                        statistics = column.getStatistics()
                        least = min(least, statistics.genericGetMin())
                        greatest = max(greatest, statistics.genericGetMax())
                        break
        finally:
            reader.close()
        return records, least, greatest

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: Any) -> Any:
        return path.getFileSystem(self._configuration)
