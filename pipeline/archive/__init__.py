"""Archives topics in a table of the lake, each record once, by Structured Streaming from a broker.

`command` parses, `archiving` runs the query, `values` decodes (`avro_values`), `tables/` writes one
batch into Parquet, Iceberg or Delta, `written` counts what was written. `place` has the paths,
`description` what a table was begun as, `topics` what the topics are, and `compacting` merges small
files. `batch_ranges` has the offsets of a batch for `pipeline.exact_rows`, which reads what Spark's
kafka source cannot.

No field of a value is lost without a word: `evolving` looks at each batch (`unknown` finds the
fields that Spark would leave out) and lets the schema grow, by `growth` for JSON and `avro_growth`
for Avro; `schemas` keeps it beside the table.

Why the table has each record once, whichever process is killed when:

1. Spark records the offsets of a batch (`checkpoint/offsets`) before it reads them, and the end of
   the batch (`checkpoint/commits`) after the table has it. A batch that was begun but not ended is
   repeated at the next start, with the same offsets and the same number.
2. So a table gets (writer, batch number, rows), where the writer is the checkpoint's own id, and
   does not append a batch that it has already. Delta keeps the number of a writer's last batch
   itself (`txnAppId`, `txnVersion`). An Iceberg snapshot has writer and batch as properties. A
   Parquet file has both in its name, which it gets when it is whole (`rename`).
3. Two processes never write one table: Python and its JVM both hold the lock of `place`, so a start
   waits until both processes of a killed archive are gone.

The query reads committed records (`isolation.level`), unless told otherwise, so records of aborted
transactions are not archived.
"""
