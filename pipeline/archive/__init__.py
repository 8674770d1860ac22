"""Topics to a table of the lake, by Structured Streaming from the broker, each record once.

`command` parses, `archiving` runs the query, `values` decodes, `tables/` writes one batch into
Parquet, Iceberg or Delta, `report` shows what was written. `place` says where everything lies.

Why each record is there once, whatever is killed when:

1. Spark writes down which offsets a batch has (`checkpoint/offsets`) before it reads them, and
   that the batch is done (`checkpoint/commits`) after the table has it. A batch that was begun and
   is not done is given again at the next start: the same offsets under the same number.
2. So a table is asked to append (writer, batch number, rows), where the writer is the checkpoint's
   own id, and appends nothing that it has already. Delta keeps the number of a writer's last batch
   itself (`txnAppId`, `txnVersion`). An Iceberg snapshot carries writer and batch as properties. A
   Parquet file has both in its name, and a file takes its name when it is whole (`rename`).
3. Two processes never write one table: the lock of `place` is held by Python and by its JVM, so a
   start waits until both of a killed process are gone.

What was read is committed (`isolation.level`), so aborted transactions never come this far.
"""
