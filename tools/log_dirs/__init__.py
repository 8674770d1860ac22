"""`pykafkalog log-dirs`: the logs in the log directories of brokers, and moves between them.

`command` has the arguments, `survey` asks brokers, `moves` plans, begins and follows moves,
`listing` prints.
"""

from tools.log_dirs.command import add_parser

__all__ = ["add_parser"]
