"""Reading a log directory in parallel, second half: one task's records as Arrow record batches.

    for batch in read_task(task, ["offset", "value"]): ...

The columns are those of Spark's kafka source (`SCHEMA`), and `timestampMs`. Records are not handled
one by one in Python, except headers and old formats: see `chunks`, `batches` and `legacy`. Needs
pyarrow, which comes with the extras that read logs by columns. `dataset` shows a topic as an Arrow
dataset; it is imported separately, because that takes longer.
"""

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "topics in Arrow need pyarrow: python -m pip install 'pykafkalog[sql]'", name="pyarrow"
    ) from None

from storage.reader.arrow.reading import read_task
from storage.reader.arrow.schema import SCHEMA, schema_of

__all__ = ["SCHEMA", "read_task", "schema_of"]
