"""Reading a log directory in parallel, second half: one task's records as Arrow record batches.

    for batch in read_task(task, ["offset", "value"]): ...

The columns are those of Spark's kafka source (`SCHEMA`). Nothing is done per record in Python
(headers excepted): see `chunks` and `batches`. Needs pyarrow, which comes with the extras that read
logs by columns; it is imported here and nowhere else below the pipeline. `dataset` has a topic as
an Arrow dataset (of its own, because its import takes longer).
"""

from storage.reader.arrow.reading import read_task
from storage.reader.arrow.schema import SCHEMA, schema_of

__all__ = ["SCHEMA", "read_task", "schema_of"]
