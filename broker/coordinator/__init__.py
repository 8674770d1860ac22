"""Coordinators: state that lives in a partition of an internal topic and in memory.

`runtime/` loads such partitions and is the only way to write to them; `partition_writer` is its
view of the log. `group/` and `transaction/` are the coordinators, and neither imports the other.
`tasks` runs what no request waits for: loads, walks through a partition's state, late markers.
`transactional_commits` serves TxnOffsetCommit, the one request that concerns both.
"""
