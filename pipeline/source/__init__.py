"""Spark reads the log directories themselves: `format("pykafkalog")`, no broker in between.

    from pipeline.source import register

    register(spark)
    orders = (
        spark.read.format("pykafkalog")
        .option("log.dirs", "/tmp/kafka-logs").option("subscribe", "orders").load()
    )

The columns are those of Spark's kafka source and so are the options (`options`). One Spark task
reads one segment, or a part of a large one (`storage.reader.scan`), and hands Arrow record batches
to the JVM. The directories, or copies of them, have to be there under the same names on the driver
and on every executor.

Spark 4.0 pushes neither columns nor filters down into a Python source. So a job that does not need
all columns names those it does as its schema, `.schema("offset long, value binary")`: others are
not decoded and not handed over. Ranges are options.
"""

from typing import Any

from pipeline.source.datasource import PyKafkaLogDataSource
from pipeline.source.options import BadOption

__all__ = ["BadOption", "PyKafkaLogDataSource", "register"]


def register(spark: Any) -> None:
    """Make `format("pykafkalog")` known to a session."""
    spark.dataSource.register(PyKafkaLogDataSource)
