"""Coordinators: state that lives in a partition of an internal topic and in memory.

`runtime/` loads such partitions and is the one way to write to them, `partition_writer` is the log
as it sees it. `group/` and `transaction/` are the
coordinators; they do not know each other. `transactional_commits` is for the one request that
concerns both.
"""
