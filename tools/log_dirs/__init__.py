"""`pykafkalog log-dirs`: what lies in the log directories of brokers, and moves between them.

`command` has the arguments; `survey` asks brokers for values, `moves` plans, begins and follows
moves, `listing` shows.
"""

from tools.log_dirs.command import add_parser

__all__ = ["add_parser"]
