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

Spark names a Python source no columns. So a job that does not need all of them should name its own
as the schema, `.schema("offset long, value binary")`: other columns are then not decoded. Ranges
are options; `batch` says when conditions decide what is read.
"""

import os
import subprocess
import sys
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from pipeline.source.datasource import PyKafkaLogDataSource
from pipeline.source.options import BadOption

__all__ = ["BadOption", "PyKafkaLogDataSource", "register"]


_WRAPPER: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def _choose_python(context: Any) -> None:
    """Have local workers run this interpreter; Spark's default is the first python3 of the path.

    If `PYSPARK_PYTHON` names one, or workers are elsewhere, that interpreter stays. It has to have
    this package: Spark would end in a traceback of Java's at the first read. Raises RuntimeError.
    """
    if "PYSPARK_PYTHON" not in os.environ and context.master.startswith("local"):
        context.pythonExec = sys.executable
    if context.pythonExec == sys.executable:
        return
    try:
        words = (context.pythonExec, "-c", f"import {__name__}")
        tried = subprocess.run(words, check=False, capture_output=True, text=True)
        reason = (tried.stderr.splitlines() or [""])[-1] if tried.returncode else None
    except OSError as error:
        reason = str(error)
    if reason is not None:
        raise RuntimeError(
            f"Spark's workers run {context.pythonExec}, which cannot import {__name__} ({reason})."
            f" Set PYSPARK_PYTHON, before the session starts, to a Python that can, such as"
            f" {sys.executable}, and install it on every executor"
        )


def register(spark: Any) -> None:
    """Register `format("pykafkalog")` with a session.

    Before Spark 4.2 a source in Python cannot say that it knows `availableNow`, and Spark makes it
    one batch: after an interruption the repeated one, and the rest is left for the next run. With
    this setting of the session Spark goes on until all is read.

    Raises RuntimeError if Spark's workers run a Python without this package.
    """
    context = getattr(spark, "_sc", None)
    if context is not None:  # with Spark Connect the server has chosen it
        _choose_python(context)
    spark.dataSource.register(PyKafkaLogDataSource)
    if not hasattr(DataSourceStreamReader, "getDefaultReadLimit"):
        spark.conf.set(_WRAPPER, "true")
