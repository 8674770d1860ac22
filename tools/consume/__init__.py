"""`pykafkalog consume`: records of topics on standard output.

`command` has the arguments. What to read is parsed by `bounds` and resolved into a range of offsets
per partition; `partitions` reads ranges, `member` reads as a member of a group, `last` finds the
last records; `filters` choose; `tools.records` makes lines of them.
"""

from tools.consume.command import add_parser

__all__ = ["add_parser"]
