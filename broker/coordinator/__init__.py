"""Coordinators: state that lives in a partition of an internal topic and in memory.

`runtime` loads and unloads such partitions, `partition_writer` is the log as a coordinator sees
it, `timers` are cheap timers that are renewed often. `group` is the group coordinator.
"""
