"""A Spark source that reads log directories without a broker: `format("pykafkalog")`.

    from pipeline.source import register

    register(spark)
    orders = (
        spark.read.format("pykafkalog")
        .option("log.dirs", "/tmp/kafka-logs").option("subscribe", "orders").load()
    )

Columns and options are those of Spark's kafka source (`options`). One Spark task reads one segment,
or a part of a large one (`storage.reader.scan`), and hands Arrow record batches to the JVM. The
directories, or copies of them, must have the same paths on the driver and on every executor.

Spark 4.0 pushes neither columns nor filters down into a Python source. So a job that does not need
all columns should name its own as the schema, `.schema("offset long, value binary")`: other columns
are then not decoded. Ranges are options.
"""

from typing import Any

from pipeline.source.datasource import PyKafkaLogDataSource
from pipeline.source.options import BadOption

__all__ = ["BadOption", "PyKafkaLogDataSource", "register"]


def register(spark: Any) -> None:
    """Register `format("pykafkalog")` with a session."""
    spark.dataSource.register(PyKafkaLogDataSource)
