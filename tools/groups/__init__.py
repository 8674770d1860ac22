"""`pykafkalog groups`: consumer groups, their members and lag; reset, delete, delete offsets.

`command` has the arguments, `survey` asks a broker about groups, `listing` prints them, `deletion`
deletes groups and offsets. `reset` carries out a reset: `reset_target` parses where to, and
`reset_plan` decides all offsets before anything is changed. `offsets_file` reads and writes the CSV
of Kafka's own tool.
"""

from tools.groups.command import add_parser

__all__ = ["add_parser"]
