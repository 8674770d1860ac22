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

Spark tells a Python source no columns. So a job that does not need all of them should name its own
as the schema, `.schema("offset long, value binary")`: other columns are then not decoded. Ranges
are options; `batch` says when conditions decide what is read.
"""

from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from pipeline.source.datasource import PyKafkaLogDataSource
from pipeline.source.options import BadOption

__all__ = ["BadOption", "PyKafkaLogDataSource", "register"]


_WRAPPER: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def register(spark: Any) -> None:
    """Register `format("pykafkalog")` with a session.

    Before Spark 4.2 a source in Python cannot say that it knows `availableNow`, and Spark makes it
    one batch: after an interruption the repeated one, and the rest is left for the next run. With
    this setting of the session Spark goes on until all is read.
    """
    spark.dataSource.register(PyKafkaLogDataSource)
    if not hasattr(DataSourceStreamReader, "getDefaultReadLimit"):
        spark.conf.set(_WRAPPER, "true")
