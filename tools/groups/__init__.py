"""`pykafkalog groups`: consumer groups, their members and lag; reset, delete, delete offsets.

`command` has the arguments; `survey` asks a broker what there is of groups, `listing` shows it.
A reset is planned (`reset_plan`, plain values) before anything is changed, from what `reset_target`
parsed; `offsets_file` reads and writes the CSV of Kafka's own tool.
"""

from tools.groups.command import add_parser

__all__ = ["add_parser"]
