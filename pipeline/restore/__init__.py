"""A table of the lake, or any table, to topics: each row once, in order, whatever is killed when.

`command` parses, `reading` makes rows of a table, `preparing` numbers the rows of a table that has
no offsets, `topics` makes topics and looks at progress, `sending` produces.

Why each row is there once:

1. A row has a place: target topic, partition, and a position (the offset that it had, or a number
   that `preparing` gave it and wrote down). Each partition is sent by one task in this order.
2. A task produces in transactions. The position that comes next is committed in the same
   transaction, as the offset of this partition in a consumer group made for it (`kafka-consumer-
   groups --describe` shows it). Both are there, or neither.
3. A task begins with `init_transactions` of an id that is the partition's own: it ends the
   transaction of a task that was killed, and a task that only seems dead can commit no more. Then
   it asks for the position, and skips what lies below.

The new offsets are others than the old ones: each transaction takes one for its marker.
"""
