"""Restores a table of the lake, or any table, to topics: each row once, in order, despite kills.

`command` parses, `reading` turns a table into records, `preparing` numbers the rows of a table
without offsets, `wanted` says how topics are made, `topics` makes them and reads progress,
`restoring` is the Spark job, `sending` produces, `refusals` names the row that a broker refused.

Why each row is sent once:

1. A row has a place: target topic, partition, and a position (its old offset, or a number that
   `preparing` gave it and stored). One task sends each partition in this order.
2. A task produces in transactions. Each transaction also commits the next position, as the offset
   of this partition in a consumer group made for the restore (`kafka-consumer-groups --describe`
   shows it). Rows and position are committed together or not at all.
3. A task begins with `init_transactions` of an id that only this partition has. That ends the
   transaction of a task that was killed, and fences a task that only seemed dead. Then it asks for
   the position, and skips rows below it.

The new offsets differ from the old ones, because each transaction's marker takes an offset.
"""
