"""Which directories are Kafka's: by their files, not by their names."""

import pytest

from storage.directory_kind import DirectoryKind, directory_kind
from tests.support.faulty_filesystem import FaultyFileSystem

SEGMENT = f"{0:020}.log"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ([], DirectoryKind.EMPTY),
        ([".lock"], DirectoryKind.EMPTY),
        (["meta.properties"], DirectoryKind.LOG_DIR),
        ([".kafka_cleanshutdown"], DirectoryKind.LOG_DIR),
        (["recovery-point-offset-checkpoint", "x"], DirectoryKind.LOG_DIR),
        ([f"orders-0/{SEGMENT}", "notes.txt"], DirectoryKind.LOG_DIR),
        (["orders-0/partition.metadata"], DirectoryKind.LOG_DIR),
        ([SEGMENT], DirectoryKind.PARTITION),
        (["leader-epoch-checkpoint"], DirectoryKind.PARTITION),
        (["notes.txt"], DirectoryKind.FOREIGN),
        (["node-20/package.json"], DirectoryKind.FOREIGN),
        (["orders-0"], DirectoryKind.FOREIGN),
        ([f"deep/orders-0/{SEGMENT}"], DirectoryKind.FOREIGN),
        (["app.log", "2026.log"], DirectoryKind.FOREIGN),
    ],
)
def test_a_directory_is_known_by_its_files(
    fs: FaultyFileSystem, files: list[str], kind: DirectoryKind
) -> None:
    for name in files:
        path = f"/d/{name}"
        fs.make_dirs(path.rpartition("/")[0])
        fs.open(path, create=True).close()
    assert directory_kind(fs, "/d") is kind
