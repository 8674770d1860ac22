"""Gives rows of a table without offsets a partition and a position, once, and stores them.

Spark returns rows in an order that differs from run to run, but a resumed restore needs the same
order again. So the numbered rows are written to a directory of the restore, which is renamed when
it is whole; each later start reads them there.
"""

from typing import Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.archive.files import Files
from pipeline.errors import PipelineError
from pipeline.restore.partitioner import partition_of

_ROW: Final = "_row"


def prepared(session: Any, rows: Any, directory: str, partitions: int, order: list[str]) -> Any:
    """Number the rows and store them, unless that was done before; return the stored rows.

    `rows` has the columns of a record and those of `order`.
    """
    files = Files(session)
    if not files.exists(directory):
        files.delete(f"{directory}.tmp")
        _numbered(rows, partitions, order).write.parquet(f"{directory}.tmp")
        files.rename(f"{directory}.tmp", directory)
    return session.read.parquet(directory)


def _numbered(rows: Any, partitions: int, order: list[str]) -> Any:
    by_key = F.udf(lambda key: partition_of(bytes(key), partitions), "int")
    place = F.coalesce(
        F.col("partition"),
        F.when(F.col("key").isNotNull(), by_key("key")),
        F.pmod(F.col(_ROW), F.lit(partitions)).cast("int"),
    )
    numbers = Window.partitionBy("topic", "partition").orderBy(*order)
    return (
        rows.withColumn("partition", place)
        .withColumn("position", F.row_number().over(numbers).cast("bigint") - 1)
        .select("topic", "partition", "position", "timestamp", "key", "value", "headers")
    )


def ordered(frame: Any, by: list[str]) -> tuple[Any, list[str]]:
    """Return (the frame with columns that order its rows, their names). Raises PipelineError.

    Rows are ordered by the columns `by`, then by file name and position in the file.
    """
    for name in by:
        if name not in frame.columns:
            raise PipelineError(f"there is no column {name} to order by")
    wanted = {f"_by_{number}": F.col(f"`{name}`") for number, name in enumerate(by)}
    return frame.withColumns(
        {
            **wanted,
            "_file": F.col("_metadata.file_path"),
            "_block": F.col("_metadata.file_block_start"),
            _ROW: F.monotonically_increasing_id(),
        }
    ), [*wanted, "_file", "_block", _ROW]
