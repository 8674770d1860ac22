"""A small log directory on the disk, as a broker leaves it, for examples of the reader."""

from pathlib import Path

from protocol.records.builder import build_batch
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder

BEGIN = 1_700_000_000_000


def write_files(builder: LogBuilder, partition: Path) -> None:
    """Write the files of a log in memory to a partition directory, which is made for them."""
    partition.mkdir(parents=True)
    for path, content in builder.fs.snapshot().items():
        if path.startswith(f"{DIRECTORY}/"):
            (partition / path.rpartition("/")[2]).write_bytes(content)


def write_log_dir(directory: Path) -> None:
    """Write `orders-0` with three records in two batches, and the files beside it."""
    builder = LogBuilder()
    for records in (
        [
            (BEGIN, b"anna", b"2 teapots", (("shop", b"north"),)),
            (BEGIN + 1, b"bert", b"1 kettle", ()),
        ],
        [(BEGIN + 2, b"anna", None, ())],
    ):
        builder.log.append_as_leader(build_batch(records), leader_epoch=0)
    at_once(builder.stopped().close())
    write_files(builder, directory / "orders-0")
    (directory / "meta.properties").write_text(
        "version=1\ncluster.id=Q2x1c3RlciBvZiB0ZXN0cw\nnode.id=0\n"
    )
    (directory / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 3\n")
