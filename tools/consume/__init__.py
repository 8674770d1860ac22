"""`pykafkalog consume`: records of topics on standard output.

`command` has the arguments. `bounds` parses where to begin and end, and resolves that to a range of
offsets per partition. `partitions` reads ranges, `member` reads as a member of a group, `last`
finds the last records. `filters` chooses records, and `lines` formats them with `tools.records`.
"""

from tools.consume.command import add_parser

__all__ = ["add_parser"]
